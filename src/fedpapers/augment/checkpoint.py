"""The files of trained networks: the states of a generator and its discriminator, and a network for judging."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from safetensors.torch import save, save_file
from torch import Tensor, nn

from fedpapers.augment.cgan import Gan, Generator
from fedpapers.augment.classifier import network
from fedpapers.errors import InputError
from fedpapers.files import canonical_json, parse_json, replacing, seal_of, sealed, sha256, write_json

FORMAT = 1

_AGAIN = "delete it to train it again"


def write_state(path: Path, gan: Gan, made: dict[str, Any]) -> None:
    """Write `step-….safetensors`, from which training goes on, and last the record `step-….json` beside it.

    Args:
        path: Of the state.
        gan: After its last step.
        made: What the record says of it.
    """
    _save(path, gan.tensors(), {"step": gan.step})
    record = {"format": FORMAT, **made, "step": gan.step, "sha256": sha256(path)}
    write_json(path.with_suffix(".json"), sealed(record))


def read_state(path: Path, gan: Gan, step: int, hash: str) -> None:
    """Bring a new network to a stored state.

    Raises:
        InputError: The state is missing, damaged, of another step or of another description.
    """
    check_record(path, step, hash)
    try:
        gan.load(_load(path, step), step)
    except (KeyError, RuntimeError) as error:
        raise InputError(f"{path}: another network's state ({error}); {_AGAIN}") from None


def read_generator(path: Path, step: int, hash: str) -> Generator:
    """The generator of a stored state.

    Raises:
        InputError: As `read_state`.
    """
    check_record(path, step, hash)
    made = Generator()
    _fill(path, made, _load(path, step, "generator."), "generator.")
    return made


def write_judge(path: Path, judge: nn.Sequential) -> None:
    """Write a network's parameters, and a checksum of them in the same file."""
    tensors = {name: value.contiguous() for name, value in judge.state_dict().items()}
    _save(path, tensors, {"step": 0, "sha256": _checksum(tensors)})


def read_judge(path: Path) -> nn.Sequential:
    """Read what `write_judge` wrote; InputError where it is missing or damaged."""
    judge = network()
    head, tensors = _open(path)
    if head != {"format": FORMAT, "step": 0, "sha256": _checksum(tensors)}:
        raise InputError(f"{path}: not the network that was written; {_AGAIN}")
    _fill(path, judge, tensors, "")
    return judge


def check_record(path: Path, step: int, hash: str) -> None:
    """Check the record of a state against the state and what it should be.

    Raises:
        InputError: It is missing, damaged, or of something else.
    """
    record = path.with_suffix(".json")
    try:
        content = parse_json(record.read_text(encoding="utf-8"))
        stated = tuple(content[key] for key in ("format", "step", "hash", "sha256"))
        whole = content.pop("seal") == seal_of(content)
    except (OSError, ValueError, KeyError, TypeError):
        raise InputError(f"{record}: missing or damaged; {_AGAIN}") from None
    if stated[:3] != (FORMAT, step, hash):
        raise InputError(f"{record}: of format, step and hash {stated[:3]}; expected {(FORMAT, step, hash)}; {_AGAIN}")
    if not whole:
        raise InputError(f"{record}: not the record that was written; {_AGAIN}")
    if not path.is_file() or sha256(path) != stated[3]:
        raise InputError(f"{path}: not the file that was written; {_AGAIN}")


def _fill(path: Path, module: nn.Module, tensors: dict[str, Tensor], prefix: str) -> None:
    try:
        module.load_state_dict({key: tensors[prefix + key] for key in module.state_dict()})
    except (KeyError, RuntimeError) as error:
        raise InputError(f"{path}: another network's parameters ({error}); {_AGAIN}") from None


def _save(path: Path, tensors: dict[str, Tensor], about: dict[str, Any]) -> None:
    with replacing(path) as temporary:
        save_file(tensors, temporary, metadata={"fedpapers": canonical_json({"format": FORMAT, **about})})


def _checksum(tensors: dict[str, Tensor]) -> str:
    return hashlib.sha256(save(tensors)).hexdigest()


def _load(path: Path, step: int, prefix: str = "") -> dict[str, Tensor]:
    head, found = _open(path, prefix)
    if head != {"format": FORMAT, "step": step}:
        raise InputError(f"{path}: {head}; expected format {FORMAT}, step {step}; {_AGAIN}")
    return found


def _open(path: Path, prefix: str = "") -> tuple[Any, dict[str, Tensor]]:
    """What a file says of itself, and those of its tensors whose names begin so."""
    try:
        with safe_open(path, framework="pt") as file:
            head = parse_json((file.metadata() or {}).get("fedpapers", "{}"))
            found = {name: file.get_tensor(name) for name in file.keys() if name.startswith(prefix)}  # noqa: SIM118
    except FileNotFoundError:
        raise InputError(f"{path}: no such file; expected a trained network") from None
    except (SafetensorError, ValueError, OSError) as error:
        raise InputError(f"{path}: damaged ({error}); {_AGAIN}") from None
    return head, found
