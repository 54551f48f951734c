"""Checks of what commands make, each by the checksums that lie in it or beside it."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import torch

from fedpapers.augment.checkpoint import check_record, read_judge
from fedpapers.augment.seeds import read_seeds
from fedpapers.data.devices import read_devices
from fedpapers.data.format import read_dataset, verify_dataset
from fedpapers.data.partition import read_partition
from fedpapers.errors import InputError
from fedpapers.experiment.environment import environment
from fedpapers.experiment.fingerprint import fingerprint
from fedpapers.experiment.plan import Plan
from fedpapers.experiment.run_files import dataset_about, partition_file
from fedpapers.experiment.store import read_record_of_run
from fedpapers.files import parse_json, read_sealed, sha256

_CODE = {
    "train": "fedpapers.experiment.train",
    "train_gan": "fedpapers.experiment.train_gan",
    "train_classifier": "fedpapers.experiment.train_classifier",
}
BESIDE_DATA = ("writers.npy", "clients.csv")  # in the folders of some data sets, whose rule does not name them
_STATES = ("train", "train_gan")
_FOLDERS = {
    "prepare_data": "about.json",
    "prepare_partition": "partition.safetensors",
    "prepare_devices": "devices.safetensors",
    "compress_seeds": "seeds.safetensors",
    "judge_generator": "quality.json",
}


def damage(rule: str, path: Path, plan: Plan) -> str | None:
    """Why a file is not the one that its rule wrote; None if it is, or if nothing can tell.

    Args:
        rule: The rule that made it.
        path: The file.
        plan: Of the configuration.
    """
    try:
        _check(rule, _checked(rule, path), plan)
    except InputError as error:
        place, _, why = str(error).partition(": ")
        if Path(place).name in BESIDE_DATA:
            return f"{error}".partition("; ")[0] if path.name == "about.json" else None
        return why.partition("; ")[0] if place == str(path) else None
    return None


def code_of_record(rule: str, path: Path) -> tuple[str, str] | None:
    """The fingerprint that a record holds, and that of the code now; None for what has no record."""
    made = _made(rule, path)
    return None if made is None else (str(made.get("code", "")), _code_now(rule))


def other_versions(rule: str, path: Path) -> set[str]:
    """The versions that a record speaks of which are not those here."""
    made, here = _made(rule, path) or {}, environment(torch.device("cpu"), "")
    known = {key: made[key] for key in ("fedpapers", "python", "torch", "numpy", "numba") if key in made}
    return {f"{key.replace('python', 'Python')} {number}" for key, number in known.items() if number != here[key]}


def other_input(rule: str, path: Path, plan: Plan) -> Path | None:
    """What a record of training says to be made from and is another file by now; None where all is as it was."""
    if rule != "train" or path.suffix != ".json":
        return None
    planned, stated = plan.runs[path.parent.name], _record(path, "inputs")
    about = dataset_about(planned.run.dataset_name, planned.run.dataset)
    files = {"data": about, "partition": partition_file(planned)}
    return next((file for key, file in files.items() if stated.get(key) != _sha256(file)), None)


@cache
def _sha256(file: Path) -> str | None:
    return sha256(file) if file.is_file() else None


def _made(rule: str, path: Path) -> dict[str, Any] | None:
    """What a record says of the environment; None for what has no record."""
    return _record(path, "made") if rule in _CODE and path.suffix == ".json" else None


def _record(path: Path, key: str) -> dict[str, Any]:
    """A part of a record, empty if it cannot be read."""
    try:
        return dict(parse_json(path.read_bytes())[key])
    except (OSError, ValueError, KeyError, TypeError):
        return {}


def _checked(rule: str, path: Path) -> Path:
    """The file by which all files of a job are checked."""
    if rule in _FOLDERS:
        return path.with_name(_FOLDERS[rule])
    return path.with_name(path.name.partition(".")[0] + ".safetensors") if rule in _STATES else path


@cache
def _check(rule: str, path: Path, plan: Plan) -> None:
    """Raise an `InputError` that begins with the file in which something is wrong."""
    match rule:
        case "prepare_data":
            verify_dataset(path.parent)
        case "prepare_partition":
            read_partition(path, spec=plan.recipe_of(path.parent.name).noted())
            _check_beside(path.with_name("about.json"), "histogram.csv")
        case "train":
            read_record_of_run(path)
        case "prepare_devices":
            read_devices(path, len(read_dataset(Path(plan.augmentation.dataset_about(None)).parent)))
            _check_beside(path.with_name("about.json"), "histogram.csv")
        case "compress_seeds":
            read_seeds(path)
        case "train_gan":
            check_record(path, int(path.stem.rpartition("-")[2]), path.parent.name.rpartition("_")[2])
        case "train_judge":
            read_judge(path)
        case "train_classifier":
            _check_hash(path, path.stem)
        case "judge_generator":
            _check_hash(path, path.parent.name)
            _check_beside(path, "generated.safetensors")


def _check_beside(about: Path, file: str) -> None:
    """Compare a file that lies beside a sealed one with the checksum in it."""
    beside = about.with_name(file)
    if not beside.is_file() or sha256(beside) != read_sealed(about).get(f"{beside.stem}_sha256"):
        raise InputError(f"{beside}: not the file that was written; delete it to make it again")


def _check_hash(path: Path, name: str) -> None:
    """Compare a sealed file with its seal, and its hash with that at the end of a name."""
    if read_sealed(path).get("hash") != name.rpartition("_")[2]:
        raise InputError(f"{path}: of another description; delete it to make it again")


@cache
def _code_now(rule: str) -> str:
    return fingerprint(_CODE[rule])
