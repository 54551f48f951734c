"""FEMNIST: handwritten characters of 62 classes, 28 × 28, each known by its writer (Caldas et al., arXiv 1812.01097).

Three folder formats give the same prepared data set, byte for byte: writers in the order of their names, each
writer's samples in the order of the file, ink 255 on a ground of 0. What is generated in place of it is in `glyphs`.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from fedpapers.data.characters import CLASSES, PIXELS, SIDE, Report, Samples, refuse
from fedpapers.data.format import ImageStream, write_dataset
from fedpapers.data.leaf_json import find_json, read_json
from fedpapers.data.tff_hdf5 import find_hdf5, read_hdf5
from fedpapers.data.writer_parquet import find_parquet, read_parquet
from fedpapers.data.writers import sample_writers
from fedpapers.errors import InputError
from fedpapers.files import sha256

_LICENCE = (
    "NIST Special Database 19 as arranged by LEAF (BSD-2-Clause); whether the files are these cannot be checked, as no "
    "checksums are published"
)
_CHUNK = 4096


@dataclass(frozen=True)
class Format:
    """A folder format of FEMNIST.

    Attributes:
        kind: Its name in the reports.
        find: The files of this format in a folder.
        read: The samples in such files.
        light: Whether the paper is known to be light; if not, the ground is what most pixels are.
    """

    kind: str
    find: Callable[[Path], list[Path]]
    read: Callable[[list[Path], Report], Iterator[Samples]]
    light: bool


FORMATS = (
    Format("leaf-json", find_json, read_json, light=True),
    Format("writer-parquet", find_parquet, read_parquet, light=False),
    Format("tff-hdf5", find_hdf5, read_hdf5, light=True),
)


def prepare_femnist(
    path: Path, destination: Path, *, fraction: float = 1.0, min_samples: int = 1, seed: int = 0
) -> None:
    """Write the FEMNIST that lies in `path` to the folder `destination` in the form of `fedpapers.data.format`.

    Args:
        path: A folder with LEAF's JSON, parquet or HDF5 files, or one such file.
        destination: Where to; left as it was after an error.
        fraction: Share of the samples to take, writer by writer; see `fedpapers.data.writers.sample_writers`.
        min_samples: Writers with fewer samples are left out, at least 1.
        seed: Of the writers that are taken; without effect when `fraction` is 1.

    Raises:
        InputError: The folder is missing, empty or of several formats, a file is broken, or no writer is left.
    """
    found, files = find_format(path)
    destination.parent.mkdir(parents=True, exist_ok=True)
    # A file without a name: it is gone whatever happens to this process.
    with tempfile.TemporaryFile(dir=destination.parent) as spool:
        pile = _Pile(spool)
        for samples in found.read(files, refuse):
            pile.add(samples)
        if len(pile) == 0:
            raise InputError(f"{path}: no samples; expected at least one")
        light = pile.mean > 127.5
        if found.light and not light:
            raise InputError(f"{path}: {dark_ground(pile.mean)}")
        names, order, writers = pile.arranged(fraction, min_samples, seed)
        write_dataset(
            destination,
            ImageStream((len(order), SIDE, SIDE), pile.images(order, invert=light)),
            np.asarray(pile.labels, dtype=np.int64)[order],
            name=f"FEMNIST ({len(order):,} characters of {len(names):,} writers)",
            source="folder",
            generated=False,
            licence=_LICENCE,
            classes=CLASSES,
            origin=[
                *({"file": str(file.relative_to(_root(path))), "sha256": sha256(file)} for file in files),
                {"format": found.kind, "samples": len(pile), "writers": len(pile.names)},
                {"fraction": fraction, "min_samples": min_samples, "seed": seed if fraction < 1 else None},
            ],
            writers=writers,
            writer_names=names,
        )


def find_format(path: Path) -> tuple[Format, list[Path]]:
    """The format of a folder, and its files in the order of reading.

    Raises:
        InputError: There is no such folder, or files of no format or of several are in it.
    """
    expected = "expected all_data_*.json, train/ and test/ with such files, *.parquet, or *.h5"
    if not path.exists():
        raise InputError(f"{path}: no such folder; {expected} in it")
    present = find_formats(path)
    if not present:
        raise InputError(f"{path}: no FEMNIST files; {expected}")
    if len(present) > 1:
        kinds = " and ".join(f"{one.kind} ({files[0].name})" for one, files in present)
        raise InputError(f"{path}: files of {len(present)} formats: {kinds}; expected one; move the others away")
    return present[0]


def find_formats(path: Path) -> list[tuple[Format, list[Path]]]:
    """The formats of which there are files, and these."""
    return [(one, files) for one in FORMATS if (files := one.find(path))]


def dark_ground(mean: float) -> str:
    """The complaint about pixels of the wrong polarity, whose mean is `mean` of 255."""
    return (
        f"the ground is dark: the mean pixel is {mean / 255:.2f}; expected paper 1 and ink 0, as LEAF has it; "
        f"take 1 - x"
    )


class _Pile:
    """All samples as they come, images on disk; then in the canonical order."""

    def __init__(self, spool: IO[bytes]) -> None:
        self._spool = spool
        self._sum = 0
        self.labels: list[int] = []
        self.names: dict[str, int] = {}
        self._writers: list[NDArray[np.int64]] = []

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def mean(self) -> float:
        return self._sum / (len(self) * PIXELS)

    def add(self, samples: Samples) -> None:
        if len(samples.labels) == 0:
            return
        number = self.names.setdefault(samples.writer, len(self.names))
        self._writers.append(np.full(len(samples.labels), number, dtype=np.int64))
        self.labels.extend(samples.labels.tolist())
        self._sum += int(samples.images.sum(dtype=np.int64))
        self._spool.write(np.ascontiguousarray(samples.images).data)

    def arranged(self, fraction: float, min_samples: int, seed: int) -> tuple[list[str], NDArray[Any], NDArray[Any]]:
        """The K writers that are taken, by name; which sample comes at each place; and whose, an index into them."""
        by_name = sorted(self.names)
        place = np.empty(len(by_name), dtype=np.int64)
        place[[self.names[name] for name in by_name]] = np.arange(len(by_name))
        owner = place[np.concatenate(self._writers)]
        counts = np.bincount(owner, minlength=len(by_name))
        taken = sample_writers(counts.tolist(), fraction, min_samples, seed)
        order = np.argsort(owner, kind="stable")
        nth = np.arange(len(order)) - np.repeat(np.cumsum(counts) - counts, counts)
        order = order[nth < taken[owner[order]]]
        kept = np.flatnonzero(taken)
        return [by_name[k] for k in kept], order, np.searchsorted(kept, owner[order])

    def images(self, order: NDArray[np.int64], invert: bool) -> Iterable[NDArray[np.uint8]]:
        self._spool.flush()
        spooled = np.memmap(self._spool, dtype=np.uint8, mode="r", shape=(len(self), SIDE, SIDE))
        for start in range(0, len(order), _CHUNK):
            piece = spooled[order[start : start + _CHUNK]]
            yield 255 - piece if invert else piece


def _root(path: Path) -> Path:
    return path if path.is_dir() else path.parent
