"""A run's folder: the states from which training resumes, its metrics, and the record beside them.

`round-000040.safetensors` is the state after round 40, `….metrics.csv` the evaluations since the state before,
`….clients.csv` each client's last result, `….json` the record: how they were made, and their checksums.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

from fedpapers.errors import InputError
from fedpapers.federated.rounds import State
from fedpapers.files import canonical_json, parse_json, replacing, seal_of, sealed, sha256, write_json
from fedpapers.memory import room
from fedpapers.models import Layout

FORMAT = 1


def state_path(folder: Path, round: int) -> Path:
    """Where the state after a round lies."""
    return folder / f"round-{round:06d}.safetensors"


def write_state(path: Path, state: State, layout: Layout) -> None:
    """Write a state: `shared.NAME` of shape [M, …] for each group, `private.NAME` of shape [N, …] for each client."""
    tensors = {}
    for name, (kind, columns) in _places(layout).items():
        part: torch.Tensor = getattr(state, kind)[:, columns].cpu()
        tensors[f"{kind}.{name}"] = room(len(part), *layout.shapes[name], like=part)
        tensors[f"{kind}.{name}"].view(part.shape).copy_(part)
    about = canonical_json({"format": FORMAT, "round": state.round})
    with replacing(path) as temporary:
        save_file(tensors, temporary, metadata={"fedpapers": about})


def read_state(path: Path, layout: Layout, groups: int, clients: int, device: torch.device) -> State:
    """Read a state.

    Raises:
        InputError: The file is missing, damaged, of another version, or of another round, model or number of groups.
    """
    try:
        with safe_open(path, framework="pt") as file:
            about = parse_json((file.metadata() or {}).get("fedpapers", "{}"))
            found = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a mapping)
    except FileNotFoundError:
        raise InputError(f"{path}: no such file; expected the state of an earlier segment") from None
    except (SafetensorError, ValueError, OSError) as error:
        raise InputError(f"{path}: damaged ({error}); delete it to train this segment again") from None
    about = about if isinstance(about, dict) else {}
    if about.get("format") != FORMAT:
        raise InputError(f"{path}: format {about.get('format')}; expected {FORMAT}; delete it to train it again")
    round = about.get("round")
    if not isinstance(round, int) or path != state_path(path.parent, round):
        raise InputError(f"{path}: the state after round {round}; expected that of its name; delete it")
    rows = {"shared": groups, "private": clients}
    expected = {f"{k}.{name}": [rows[k], *layout.shapes[name]] for name, (k, _) in _places(layout).items()}
    if {name: list(tensor.shape) for name, tensor in found.items()} != expected:
        raise InputError(f"{path}: another model's parameters; expected {', '.join(expected)}")
    sizes = {"shared": layout.shared_size, "private": layout.private_size}
    parts = {kind: room(rows[kind], sizes[kind], like=torch.empty(0, device=device)) for kind in rows}
    for name, (kind, columns) in _places(layout).items():
        parts[kind][:, columns] = found[f"{kind}.{name}"].reshape(rows[kind], -1).to(device)
    return State(round=round, **parts)


def write_csv(path: Path, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Write a table, whole or not at all; floats in full."""
    with replacing(path) as temporary, temporary.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(rows)


def write_record(state: Path, made: Mapping[str, Any]) -> None:
    """Write the record of a segment, last of its files: with it the segment is complete."""
    checksums = {file.name: sha256(file) for file in _recorded(state)}
    record = {"format": FORMAT, **made, "sha256": checksums}
    write_json(state.with_suffix(".json"), sealed(record))


def read_record_of_run(state: Path) -> dict[str, Any]:
    """The record of a segment that lies in its run's folder, which is named after the run's hash; see `read_record`."""
    return read_record(state, state.parent.name.rpartition("_")[2])


def read_record(state: Path, hash: str | None = None) -> dict[str, Any]:
    """The record of a segment, checked against the files that it speaks of.

    Args:
        state: The state; its name says after which round.
        hash: Of the run that it has to be of; None where any will do.

    Raises:
        InputError: The record is missing or damaged, of another run or round, or a file is not the one that was
            recorded.
    """
    path = state.with_suffix(".json")
    try:
        record: dict[str, Any] = parse_json(path.read_text(encoding="utf-8"))
        version, checksums = record["format"], {file: record["sha256"][file.name] for file in _recorded(state)}
        whole = record.pop("seal") == seal_of(record)  # its ledger decides on ε
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        raise InputError(f"{path}: missing or damaged; delete {state.stem}.* there to train it again") from None
    if version != FORMAT:
        raise InputError(f"{path}: format {version}; expected {FORMAT}; delete {state.stem}.* to train it again")
    if not whole:
        raise InputError(f"{path}: not the record that was written; delete {state.stem}.* there to train it again")
    if hash is not None and (record.get("hash"), record.get("last")) != (hash, int(state.stem.rpartition("-")[2])):
        raise InputError(f"{path}: of another run or round; delete {state.stem}.* there to train it again")
    for file, expected in checksums.items():
        if not file.is_file() or sha256(file) != expected:
            raise InputError(f"{file}: not the file that was written; delete {state.stem}.* there to train it again")
    return record


def _recorded(state: Path) -> list[Path]:
    """The files of a segment whose checksums its record holds."""
    return [state, state.with_suffix(".metrics.csv"), state.with_suffix(".clients.csv")]


def _places(layout: Layout) -> dict[str, tuple[str, slice]]:
    """For each parameter whether it is shared or private, and its columns there."""
    places, offset = {}, 0
    for name, shape in layout.shapes.items():
        kind, base = ("shared", 0) if offset < layout.shared_size else ("private", layout.shared_size)
        places[name] = (kind, slice(offset - base, offset - base + shape.numel()))
        offset += shape.numel()
    return places
