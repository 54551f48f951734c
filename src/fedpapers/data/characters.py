"""What the three folder formats of FEMNIST have in common: the samples that a reader gives, and how it complains.

A reader goes through files once and gives the samples writer by writer, or batch by batch, as they stand there. What
is wrong it tells a `Report`, and goes on behind it: the preparation raises at the first complaint, the inspection
collects them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedpapers.errors import InputError, printable

CLASSES = tuple("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz")
SIDE = 28
PIXELS = SIDE * SIDE

Report = Callable[[str], None]


@dataclass(frozen=True, eq=False)
class Samples:
    """Some samples of one writer, in the order of the file.

    Attributes:
        writer: The writer's name.
        images: uint8, shape [n, 28, 28], of the file's own polarity: a float x in [0, 1] is the integer next to 255·x.
        labels: Index into `CLASSES` of each, int64, shape [n].
    """

    writer: str
    images: NDArray[np.uint8]
    labels: NDArray[np.int64]


@dataclass
class Problems:
    """A `Report` that collects: all problems up to `most`, and how many more there were.

    Attributes:
        most: Problems that are kept as they are.
        found: The problems, one line each.
        more: Number of those that were not kept.
    """

    most: int = 100
    found: list[str] = field(default_factory=list)
    more: int = 0

    def __call__(self, message: str) -> None:
        """Note a problem."""
        if len(self.found) < self.most:
            self.found.append(printable(message))
        else:
            self.more += 1

    @property
    def lines(self) -> list[str]:
        """The problems, the last line saying how many more there are."""
        return [*self.found, f"and {self.more} more problems"] if self.more else list(self.found)


def refuse(message: str) -> None:
    """The `Report` of a preparation: the first problem ends it.

    Raises:
        InputError: Always.
    """
    raise InputError(message)


def shown(name: str) -> str:
    """A name from a file in quotes, on one line whatever it holds, and not too long."""
    text = name if len(name) <= 80 else f"{name[:77]}..."
    return f"'{text}'" if text.isprintable() else ascii(text)


def name_problem(name: str) -> str | None:
    """What is wrong with a writer's name; None where it is good.

    Names go into tables, logs and file paths of reports, so line breaks and other control characters are refused.
    """
    if not name.strip():
        return "is empty; expected a name"
    if not name.isprintable():
        return "has line breaks or other unprintable characters; expected a name of one line"
    return None


def to_bytes(pixels: NDArray[np.floating[Any]]) -> NDArray[np.uint8]:
    """Floats in [0, 1] as bytes, the next integer to 255·x."""
    return np.asarray(np.rint(pixels * 255), dtype=np.uint8)


def pixel_problem(pixels: NDArray[np.floating[Any]]) -> str | None:
    """What is wrong with the values of some images; None where all lie in [0, 1].

    Args:
        pixels: Floats, shape [n, ...].
    """
    flat = pixels.reshape(len(pixels), -1)
    for bad, what in (
        (~np.isfinite(flat), "not a finite number"),
        ((flat < 0) | (flat > 1), "out of range"),
    ):
        if bad.any():
            row, place = (int(i) for i in np.argwhere(bad)[0])
            return f"image {row}: pixel {place} is {flat[row, place]:g}, {what}; expected 0 (ink) to 1 (paper)"
    return None


def label_problem(labels: NDArray[np.integer[Any]]) -> str | None:
    """What is wrong with some labels; None where all are classes."""
    bad = (labels < 0) | (labels >= len(CLASSES))
    if not bad.any():
        return None
    row = int(np.argmax(bad))
    return f"label {row} is {labels[row]}; expected 0 to {len(CLASSES) - 1} (0-9, A-Z, a-z)"


def split_of(path: Path) -> str:
    """Which part of the data a file holds, by its name or its folder's: `all`, `train` or `test`."""
    words = path.stem.lower().replace("-", "_").split("_")
    if path.parent.name in ("train", "test"):
        words.append(path.parent.name)
    return next((split for split in ("train", "test") if split in words), "all")


def in_order(paths: Iterable[Path]) -> list[Path]:
    """Files in the order in which they are read: train before test, then by name; pipes are left out."""
    return sorted(
        (path for path in paths if not path.is_fifo()), key=lambda path: (split_of(path) == "test", path.name)
    )


class Seen:
    """Which writers stood in which part of the data: one may be in train and in test, but not twice in one part."""

    def __init__(self) -> None:
        self._files: dict[tuple[str, str], str] = {}

    def before(self, writer: str, path: Path) -> str | None:
        """The file in which a writer stood before, in the same part; None for a new one, who is noted."""
        key = (split_of(path), writer)
        if key in self._files:
            return self._files[key]
        self._files[key] = path.name
        return None

    def last(self, path: Path) -> str:
        """A hint at the place where reading stopped: behind the last writer that was noted for a file."""
        writers = [
            writer for (split, writer), file in self._files.items() if (split, file) == (split_of(path), path.name)
        ]
        return f" (behind user {shown(writers[-1])})" if writers else ""
