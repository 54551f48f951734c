"""FEMNIST as TensorFlow Federated keeps it: HDF5 (its `fed_emnist_train.h5` and `fed_emnist_test.h5`).

The group `examples` holds a group for each writer with `pixels` (float32, [n, 28, 28] in [0, 1], paper 1 and ink 0)
and `label` (integers, [n], in LEAF's order of the classes).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

from fedpapers.data.characters import (
    SIDE,
    Report,
    Samples,
    Seen,
    in_order,
    label_problem,
    name_problem,
    pixel_problem,
    shown,
    to_bytes,
)
from fedpapers.data.format import one_line
from fedpapers.errors import InputError

_SUFFIXES = (".h5", ".hdf5")
_MOST_SAMPLES = 100_000  # of a writer; a header may claim any number
_LIBRARY = (OSError, RuntimeError, ValueError, KeyError, TypeError, AttributeError)  # what h5py raises on damage


def find_hdf5(path: Path) -> list[Path]:
    """The HDF5 files in a folder, train before test; empty where there are none. A file stands for itself."""
    candidates = path.iterdir() if path.is_dir() else [path]
    return in_order(file for file in candidates if file.suffix.lower() in _SUFFIXES)


def read_hdf5(files: list[Path], report: Report) -> Iterator[Samples]:
    """The samples of each writer; a writer with a problem is told to `report` and left out."""
    seen = Seen()
    for path in files:
        try:
            file = h5py.File(path, "r")
        except OSError as error:
            report(f"{path}: not an HDF5 file: {one_line(error)[:160]}; expected one as TensorFlow Federated has it")
            continue
        with file:
            try:
                yield from _read_file(path, file, seen, report)
            except InputError:
                raise
            except _LIBRARY as error:
                report(f"{path}: damaged: {one_line(error)[:160]}; fetch the file again")


def _read_file(path: Path, file: h5py.File, seen: Seen, report: Report) -> Iterator[Samples]:
    examples = _own(file, "examples")
    if not isinstance(examples, h5py.Group):
        report(f"{path}: no group 'examples'; expected examples/<writer>/pixels and label")
        return
    if len(examples) == 0:
        report(f"{path}: no writers in 'examples'; expected at least one")
    for writer in examples:
        where = f"{path}: writer {shown(writer)}"
        if problem := name_problem(writer):
            report(f"{path}: the name of writer {shown(writer)} {problem}")
        elif (before := seen.before(writer, path)) is not None:
            report(f"{where}: already in {before}; expected each writer once")
        else:
            try:
                samples = _samples(writer, _own(examples, writer), where, report)
            except InputError:
                raise
            except _LIBRARY as error:
                report(f"{where}: cannot be read: {one_line(error)[:160]}; fetch the file again")
                continue
            if samples is not None:
                yield samples


def _samples(writer: str, group: Any, where: str, report: Report) -> Samples | None:
    pixels, label = (_own(group, "pixels"), _own(group, "label")) if isinstance(group, h5py.Group) else (None, None)
    # Shapes and types are checked before anything is read: a header may claim any size.
    problem = _form_problem(pixels, label)
    values, labels = (np.empty((0, SIDE, SIDE)), np.empty(0, np.int64)) if problem else _arrays(pixels, label)
    problem = problem or label_problem(labels) or pixel_problem(values)
    if problem:
        report(f"{where}: {problem}")
        return None
    return Samples(writer, to_bytes(values), labels)


def _own(group: Any, name: str) -> Any:
    """A part of a group; None where it is not there, or stands in another file, which a link may name at any place."""
    if not isinstance(group.get(name, getlink=True), h5py.HardLink):
        return None
    part = group.get(name)
    return None if isinstance(part, h5py.Dataset) and (part.external or part.is_virtual) else part


def _arrays(pixels: Any, label: Any) -> tuple[NDArray[np.floating[Any]], NDArray[np.int64]]:
    return pixels[()], label[()].astype(np.int64)


def _form_problem(pixels: Any, label: Any) -> str | None:
    for name, array in (("pixels", pixels), ("label", label)):
        if not isinstance(array, h5py.Dataset):
            return f"no '{name}'; expected pixels and label"
    if pixels.ndim != 3 or pixels.shape[1:] != (SIDE, SIDE):
        return f"pixels of shape {pixels.shape}; expected (n, {SIDE}, {SIDE})"
    if pixels.dtype.kind != "f":
        return f"pixels of type {pixels.dtype}; expected float32 from 0 (ink) to 1 (paper)"
    if label.dtype.kind not in "iu" or label.ndim != 1:
        return f"label of type {label.dtype} and shape {label.shape}; expected integers (n,)"
    if len(pixels) != len(label):
        return f"pixels has {len(pixels)} images, label has {len(label)}; expected as many"
    if len(label) > _MOST_SAMPLES:
        return f"pixels has {len(label):,} images; expected at most {_MOST_SAMPLES:,}"
    return None
