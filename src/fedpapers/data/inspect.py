"""What a folder with a data set holds, and what is wrong with it, before anything is prepared."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from fedpapers.data.celeba import CLASSES, check_images, has_celeba, read_faces
from fedpapers.data.characters import Problems, Report
from fedpapers.data.femnist import Format, dark_ground, find_formats
from fedpapers.data.mnist import has_idx, read_idx_labels
from fedpapers.errors import InputError

_EXPECTED = (
    "expected LEAF's all_data_*.json or train/ and test/, *.parquet, *.h5, CelebA's img_align_celeba/ and two tables, "
    "or MNIST's idx files"
)

Counts = tuple[int | None, int, int]


def data_inspect(path: Path) -> dict[str, Any]:
    """Count what is in a folder and collect what is wrong; every sample is read, so this takes as long as preparing.

    Args:
        path: A folder in one of the known formats, or one JSON, parquet or HDF5 file.

    Returns:
        `kind` (leaf-json, writer-parquet, tff-hdf5, celeba or idx), `clients` (None where they are not known),
        `samples`, `classes` (distinct labels; 2 for CelebA) and `problems` (one line each). Counts are of what can
        be read, before any minimum of samples.

    Raises:
        InputError: There is no such folder, it is of no known format, or of several.
    """
    kind, count = _kind(path)
    problems = Problems()
    clients, samples, classes = count(problems)
    if samples == 0 and not problems.found:
        problems(f"{path}: no samples; expected at least one")
    return {"kind": kind, "clients": clients, "samples": samples, "classes": classes, "problems": problems.lines}


def format_inspection(found: dict[str, Any]) -> str:
    """The answer of `data_inspect` as text."""
    clients = "not known" if found["clients"] is None else f"{found['clients']:,}"
    lines = [
        f"kind      {found['kind']}",
        f"clients   {clients}",
        f"samples   {found['samples']:,}",
        f"classes   {found['classes']}",
        f"problems  {len(found['problems']) or 'none'}",
    ]
    return "\n".join([*lines, *(f"  {problem}" for problem in found["problems"])])


def _kind(path: Path) -> tuple[str, Callable[[Report], Counts]]:
    if not path.exists():
        raise InputError(f"{path}: no such folder; {_EXPECTED} in it")
    kinds: dict[str, Callable[[Report], Counts]] = {
        one.kind: _characters(path, one, files) for one, files in find_formats(path)
    }
    if has_celeba(path):
        kinds["celeba"] = lambda report: _count_faces(path, report)
    if has_idx(path):
        kinds["idx"] = lambda report: _count_digits(path, report)
    if not kinds:
        raise InputError(f"{path}: nothing known in it; {_EXPECTED}")
    if len(kinds) > 1:
        raise InputError(f"{path}: files of {len(kinds)} formats: {', '.join(kinds)}; expected one; move others away")
    return next(iter(kinds.items()))


def _characters(path: Path, one: Format, files: list[Path]) -> Callable[[Report], Counts]:
    return lambda report: _count_characters(path, one, files, report)


def _count_characters(path: Path, one: Format, files: list[Path], report: Report) -> Counts:
    writers: set[str] = set()
    labels: set[int] = set()
    samples = pixels = total = 0
    for some in one.read(files, report):
        if len(some.labels):
            writers.add(some.writer)
        labels.update(np.unique(some.labels).tolist())
        samples += len(some.labels)
        pixels += some.images.size
        total += int(some.images.sum(dtype=np.int64))
    if one.light and pixels and total / pixels <= 127.5:
        report(f"{path}: {dark_ground(total / pixels)}")
    return len(writers), samples, len(labels)


def _count_faces(path: Path, report: Report) -> Counts:
    faces = read_faces(path, report)
    check_images(path, faces.files, report)
    return len(set(faces.identities)), len(faces.files), len(CLASSES)


def _count_digits(path: Path, report: Report) -> Counts:
    labels = read_idx_labels(path, report)
    return None, len(labels), len(np.unique(labels))
