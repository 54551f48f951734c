"""A corpus of bad inputs: whatever the command, each ends in one line that names what is wrong, and leaves no trace.

`corpus/cases.yaml` says which command meets which input, and what its line must say.
"""

from __future__ import annotations

import gzip
import io
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from contextlib import redirect_stderr
from pathlib import Path

import numpy as np
import pytest
import yaml
from data_folders import parquet_rows, some_writers, write_celeba, write_hdf5, write_parquet
from safetensors.numpy import load_file, save_file

from fedpapers.cli import main
from fedpapers.files import sealed, sha256

CORPUS = Path(__file__).parent / "corpus"
TINY = Path(__file__).parents[1] / "configs" / "tiny.yaml"
GROUPS = "groups: {north: [ann, bob], south: {workers: [bob, cem], noise_multiplier: 1}}\n"
TABLE = yaml.safe_load((CORPUS / "cases.yaml").read_text(encoding="utf-8"))
CASES = [(part["command"], name, says) for part in TABLE for name, says in part["cases"].items()]

DIGITS = "results/data/digits"
PARTITION = "results/partitions/p/partition.safetensors"
STATE = "results/runs/r/round-000001.safetensors"
DEVICES = "results/multfaug/devices/d/devices.safetensors"
SEEDS = "results/multfaug/seeds/s/seeds.safetensors"
GAN = "results/multfaug/gans/g/step-000001.safetensors"
IMAGES, LABELS = "raw/train-images-idx3-ubyte", "raw/train-labels-idx1-ubyte"
PARQUET, HDF5 = "raw/train.parquet", "raw/clients_train.h5"
PICKLE = b"\x80\x04\x95\x0b\x00\x00\x00\x00\x00\x00\x00\x8c\x07unwanted."


# Good inputs


@pytest.fixture(scope="module")
def good(digits, make_run, partition_of, tmp_path_factory):
    """A folder with one of each file that commands read, and the options of these commands."""
    from fedpapers.experiment.compress_seeds import make_seeds
    from fedpapers.experiment.config import read_config
    from fedpapers.experiment.plan import Plan
    from fedpapers.experiment.prepare_devices import prepare_devices
    from fedpapers.experiment.train import Segment, train_segment
    from fedpapers.experiment.train_gan import GanSegment, train_gan

    folder = tmp_path_factory.mktemp("good")
    run = make_run(interval=1)
    shutil.copytree(digits, folder / DIGITS)
    shutil.copytree(partition_of(run).parent, (folder / PARTITION).parent)
    shutil.copytree(partition_of(make_run(interval=1, seed=2)).parent, folder / "other")
    for name, some in (((folder / STATE).parent, run), (folder / "wide", make_run(interval=1, model="mnist-cnn"))):
        train_segment(Segment(some, name, 0, 1, digits, partition_of(some)), lambda *_: None)
    spec = next(iter(Plan(read_config([TINY])).augmentation._gans.values()))
    prepare_devices(spec.devices, digits, (folder / DEVICES).parent)
    make_seeds(spec, digits, folder / DEVICES, (folder / SEEDS).parent)
    train_gan(GanSegment(spec, folder / SEEDS, folder / GAN, 0, 1))
    (folder / "raw").mkdir()
    write_idx(folder, np.arange(5 * 784).reshape(5, 28, 28) % 256, np.arange(5) % 10)
    write_celeba(folder / "faces", [(f"00000{k}.jpg", k, True) for k in (1, 2, 3)])
    shutil.copy(TINY, folder / "tiny.yaml")
    (folder / "groups.yaml").write_text(GROUPS)
    told = {
        "train": f"--run {shlex.quote(run.canonical())} --folder results/runs/r --first 1 --last 2 --data {DIGITS}"
        f" --partition {PARTITION}",
        "data partition": f"--recipe {shlex.quote(run.recipe.canonical())} --data {DIGITS} --output results/new",
        "augment train": f"--spec {shlex.quote(spec.canonical())} --seeds {SEEDS}"
        f" --state {Path(GAN).with_name('step-000002.safetensors')} --first 1 --last 2",
        "augment seeds": f"--spec {shlex.quote(spec.canonical())} --data {DIGITS} --devices {DEVICES}"
        " --output results/new",
    }
    return folder, told


def write_idx(folder, images, labels):
    for name, array in ((IMAGES, images), (LABELS, labels)):
        head = bytes([0, 0, 8, array.ndim]) + np.array(array.shape, ">u4").tobytes()
        write(folder / name, head + array.astype(np.uint8).tobytes())


# What is done to them


def write(path, content):
    """Give a file other content; the file may be a hard link to a good one."""
    path.unlink(missing_ok=True)
    path.write_bytes(content)


def changed(file: str, change: Callable[[bytes], bytes]):
    return lambda folder: write(folder / file, change((folder / file).read_bytes()))


def cut(content):
    return content[: len(content) - 100]


def flipped(content):
    """One bit near the end, where the numbers are."""
    return content[:-7] + bytes([content[-7] ^ 0x10]) + content[-6:]


def put(file: str, content: bytes):
    return lambda folder: write(folder / file, content)


def other_version(file: str, record_again: Callable[[Path], object] = lambda path: None):
    """A safetensors file that says to be of format 99, otherwise whole."""

    def spoil(folder):
        change_metadata(folder / file, format=99)
        record_again(folder / file)

    return spoil


def change_metadata(path, **keys):
    from safetensors import safe_open

    with safe_open(path, framework="np") as file:
        head = json.loads(file.metadata()["fedpapers"])
    tensors = load_file(path)
    path.unlink()
    save_file(tensors, path, metadata={"fedpapers": json.dumps(head | keys)})


def record_state(state):
    """Make the record fit the files, as if they had been written so."""
    path = state.with_suffix(".json")
    record = json.loads(path.read_text())
    del record["seal"]
    record["sha256"] = {name: sha256(state.with_name(name)) for name in record["sha256"]}
    write(path, json.dumps(sealed(record)).encode())


def record_seeds(seeds):
    about = json.loads(seeds.with_name("about.json").read_text())
    del about["seal"]
    write(seeds.with_name("about.json"), json.dumps(sealed(about | {"sha256": sha256(seeds)})).encode())


def state_of_another_model(folder):
    write(folder / STATE, (folder / "wide" / Path(STATE).name).read_bytes())
    record_state(folder / STATE)


def state_of_another_round(folder):
    change_metadata(folder / STATE, round=7)
    record_state(folder / STATE)


def state_missing(folder):
    (folder / STATE).unlink()


def remove(*files: str):
    return lambda folder: [(folder / file).unlink() for file in files]


def parquet(edit):
    def spoil(folder):
        rows = parquet_rows(some_writers())
        edit(rows)
        remove(IMAGES, LABELS)(folder)
        write_parquet(folder / "raw", rows, "train.parquet")

    return spoil


def hdf5(edit):
    def spoil(folder):
        import h5py

        remove(IMAGES, LABELS)(folder)
        write_hdf5(folder / "raw", some_writers((3, 3)), "clients_train.h5")
        with h5py.File(folder / HDF5, "r+") as file:
            edit(file["examples"], next(iter(file["examples"])))

    return spoil


def relabelled(examples, first):
    del examples[first]["label"]
    examples[first]["label"] = np.zeros(1, np.int32)


def in_bytes(examples, first):
    del examples[first]["pixels"]
    examples[first]["pixels"] = np.zeros((3, 28, 28), np.uint8)


def linked(examples, first):
    import h5py

    del examples[first]["pixels"]
    examples[first]["pixels"] = h5py.ExternalLink("/etc/passwd", "pixels")


def a_trillion(examples, first):
    for name, shape, kind in (("pixels", (10**12, 28, 28), np.float32), ("label", (10**12,), np.int32)):
        del examples[first][name]
        examples[first].create_dataset(name, shape, kind, chunks=(1, *shape[1:]))


def without_examples(examples, first):
    examples.file.move("examples", "clients")


def faces(spoil):
    def made(folder):
        shutil.rmtree(folder / "raw")
        (folder / "faces").rename(folder / "raw")
        spoil(folder)

    return made


RECORD = STATE.replace(".safetensors", ".json")
METRICS = STATE.replace(".safetensors", ".metrics.csv")
ABOUT = f"{DIGITS}/about.json"
JPEG = "raw/img_align_celeba/000002.jpg"
DEEP = b"[" * 100_000
MADE: dict[str, Callable[[Path], object]] = {
    "idx-truncated": changed(IMAGES, cut),
    "idx-wrong-magic": changed(IMAGES, lambda content: b"PK\3\4" + content[4:]),
    "idx-other-size": lambda folder: write_idx(folder, np.zeros((5, 32, 32)), np.zeros(5)),
    "idx-fewer-labels": lambda folder: write_idx(folder, np.zeros((5, 28, 28)), np.zeros(4)),
    "idx-label-10": changed(LABELS, lambda content: content[:-1] + b"\x0a"),
    "idx-corrupt-gzip": changed(IMAGES, lambda content: gzip.compress(content)[:-9]),
    "idx-four-billion": changed(IMAGES, lambda content: content[:4] + b"\xff" * 4 + content[8:]),
    "idx-no-labels": remove(LABELS),
    "idx-nothing": remove(IMAGES, LABELS),
    "parquet-garbage": lambda folder: (remove(IMAGES, LABELS)(folder), write(folder / PARQUET, b"no" * 50)),
    "parquet-no-label": parquet(lambda rows: rows.pop("label")),
    "parquet-text-for-an-image": parquet(lambda rows: rows["image"].__setitem__(0, {"bytes": b"x", "path": None})),
    "parquet-label-null": parquet(lambda rows: rows["label"].__setitem__(0, None)),
    "hdf5-garbage": lambda folder: (remove(IMAGES, LABELS)(folder), write(folder / HDF5, b"\x89PNG" * 50)),
    "hdf5-truncated": lambda folder: (hdf5(lambda *_: None)(folder), changed(HDF5, lambda all: all[:3000])(folder)),
    "hdf5-no-examples": hdf5(without_examples),
    "hdf5-fewer-labels": hdf5(relabelled),
    "hdf5-bytes-for-floats": hdf5(in_bytes),
    "hdf5-a-link-to-another-file": hdf5(linked),
    "hdf5-a-trillion-images": hdf5(a_trillion),
    "hdf5-bad-symbol-table": lambda folder: (
        hdf5(lambda *_: None)(folder),
        changed(HDF5, lambda content: content.replace(b"SNOD", b"SNOB"))(folder),
    ),
    "jpeg-garbage": faces(put(JPEG, b"<html>")),
    "jpeg-truncated": faces(changed(JPEG, cut)),
    "data-no-about": remove(ABOUT),
    "data-other-version": changed(ABOUT, lambda content: json.dumps(json.loads(content) | {"format": 99}).encode()),
    "data-truncated": changed(f"{DIGITS}/images.npy", cut),
    "data-bit-flipped": changed(f"{DIGITS}/labels.npy", flipped),
    "data-about-deep": put(ABOUT, DEEP),
    "data-a-pickle": changed(f"{DIGITS}/images.npy", lambda content: PICKLE.ljust(len(content), b"\0")),
    "partition-truncated": changed(PARTITION, cut),
    "partition-bit-flipped": changed(PARTITION, flipped),
    "partition-empty": put(PARTITION, b""),
    "partition-other-version": other_version(PARTITION),
    "partition-of-another-seed": lambda folder: put(PARTITION, (folder / "other" / Path(PARTITION).name).read_bytes())(
        folder
    ),
    "state-truncated": changed(STATE, cut),
    "state-bit-flipped": changed(STATE, flipped),
    "state-empty": put(STATE, b""),
    "state-a-pickle": put(STATE, PICKLE),
    "state-missing": remove(STATE),
    "state-of-another-model": state_of_another_model,
    "state-of-another-round": state_of_another_round,
    "state-other-version": other_version(STATE, record_state),
    "metrics-edited": changed(METRICS, lambda content: content.replace(b"0.", b"0.9")),
    "record-missing": remove(RECORD),
    "record-edited": changed(RECORD, lambda content: content.replace(b'"releases": 1', b'"releases": 0')),
    "record-deep": put(RECORD, DEEP),
    "seeds-truncated": changed(SEEDS, cut),
    "seeds-bit-flipped": changed(SEEDS, flipped),
    "seeds-other-version": other_version(SEEDS, record_seeds),
    "gan-truncated": changed(GAN, cut),
    "gan-a-pickle": put(GAN, PICKLE),
    "gan-record-missing": remove(GAN.replace(".safetensors", ".json")),
    "devices-truncated": changed(DEVICES, cut),
    "devices-bit-flipped": changed(DEVICES, flipped),
    "devices-other-version": other_version(DEVICES),
}


# What is asked of each


def bring(good, command, name, here):
    """Copy what the command reads, with the bad input in its place; what is to be typed."""
    folder, told = good
    kind, _, target = command.removeprefix("data prepare ").partition(" ")
    if command in told or command.startswith("data prepare"):
        shutil.copytree(folder, here, copy_function=os.link)
    else:
        here.mkdir()
        (here / "results").mkdir()
        (here / "results" / "mine.csv").write_text("a\n")
        shutil.copy(TINY, here / "tiny.yaml")
        (here / "groups.yaml").write_text(GROUPS)
    if name in MADE:
        MADE[name](here)
    elif kind == "FEMNIST":
        remove(IMAGES, LABELS)(here)
        shutil.copy(CORPUS / name, here / "raw" / "all_data_0.json")
    elif kind == "CELEBA":
        faces(put(f"raw/{target}", (CORPUS / name).read_bytes()))(here)
    else:
        shutil.copy(CORPUS / name, here)
    if command.startswith("data prepare"):
        few = {"min_samples": 1} if kind == "CELEBA" else {}
        spec = json.dumps({"kind": kind.lower(), "source": "folder", "path": "raw"} | few)
        return f"data prepare --spec {shlex.quote(spec)} --output results/data/new"
    return f"{command} {told[command]}" if command in told else command.replace("FILE", Path(name).name)


def files(folder):
    """What tells files and their content apart, fast."""
    about = {str(path.relative_to(folder)): path.stat() for path in sorted(folder.rglob("*")) if path.is_file()}
    return {name: (stat.st_ino, stat.st_size, stat.st_mtime_ns) for name, stat in about.items()}


def run(arguments, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["fedpapers", *shlex.split(arguments)])
    complaint = io.StringIO()
    with redirect_stderr(complaint), pytest.raises(SystemExit) as stop:
        main()
    return stop.value.code, complaint.getvalue()


def check(status, complaint, says):
    assert status == 2
    assert complaint.startswith("error: ") and complaint.endswith("\n")
    assert complaint[:-1].isprintable(), complaint
    assert len(complaint) < 1200
    assert re.search(".*".join(map(re.escape, re.split(" ?… ?", says))), complaint), complaint


@pytest.mark.parametrize(("command", "name", "says"), CASES, ids=[name for _, name, _ in CASES])
def test_a_bad_input_is_one_line_and_leaves_no_trace(command, name, says, good, tmp_path, monkeypatch):
    here = tmp_path / "here"
    arguments = bring(good, command, name, here)
    monkeypatch.chdir(here)
    before = files(here)
    status, complaint = run(arguments, monkeypatch)
    check(status, complaint, says)
    assert files(here) == before
    if command.startswith("data prepare"):
        monkeypatch.setattr(sys, "argv", ["fedpapers", "data", "inspect", "raw", "--json"])
        with pytest.raises(SystemExit) as stop:
            main()
        assert stop.value.code in (1, 2)


@pytest.mark.parametrize("name", ["config/a-python-object.yaml", "leaf/truncated.json", "state-truncated"])
def test_a_process_says_the_same(name, good, tmp_path):
    (command, says), *_ = ((command, says) for command, other, says in CASES if other == name)
    here = tmp_path / "here"
    arguments = bring(good, command, name, here)
    before = files(here)
    done = subprocess.run(
        [sys.executable, "-m", "fedpapers", *shlex.split(arguments)], cwd=here, capture_output=True, text=True
    )
    check(done.returncode, done.stderr, says)
    assert done.stdout == "" and files(here) == before


CACHED = {
    "train": (STATE, METRICS, STATE.replace(".safetensors", ".clients.csv"), RECORD, PARTITION),
    "data partition": (ABOUT, f"{DIGITS}/images.npy", f"{DIGITS}/labels.npy"),
    "augment train": (SEEDS, GAN, GAN.replace(".safetensors", ".json")),
    "augment seeds": (DEVICES,),
}
DAMAGES = {
    "a bit flipped": flipped,
    "a bit flipped at the start": lambda content: content[:9] + bytes([content[9] ^ 0x10]) + content[10:],
    "truncated": lambda content: content[: len(content) // 2],
    "no bytes": lambda content: b"",
    "another version": lambda content: re.sub(rb'(format\\?"): ?1', rb"\1:9", content),
}


@pytest.mark.parametrize(
    ("command", "file", "damage"),
    [
        (command, file, damage)
        for command in CACHED
        for file in CACHED[command]
        for damage in DAMAGES
        if damage != "another version" or file.endswith(("json", "safetensors"))  # the others' version is in a record
    ],
)
def test_a_damaged_cached_file_is_named_and_never_used(command, file, damage, good, tmp_path, monkeypatch):
    folder, told = good
    here = tmp_path / "here"
    shutil.copytree(folder, here, copy_function=os.link)
    changed(file, DAMAGES[damage])(here)
    assert (here / file).read_bytes() != (folder / file).read_bytes()
    monkeypatch.chdir(here)
    before = files(here)
    status, complaint = run(f"{command} {told[command]}", monkeypatch)
    check(status, complaint, f"{Path(file).with_suffix('').with_suffix('').name} … again")
    assert files(here) == before


def test_every_case_has_its_input_and_every_input_its_case():
    stored = {str(path.relative_to(CORPUS)) for path in CORPUS.rglob("*.*")} - {"cases.yaml"}
    assert sorted(name for _, name, _ in CASES) == sorted(stored | MADE.keys())
    assert len(CASES) >= 80
