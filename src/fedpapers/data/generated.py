"""What the generated data sets have in common."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedpapers.data.format import ImageStream, write_dataset
from fedpapers.errors import InputError


def check_size(data: str, what: str, number: int, scale: float) -> None:
    """Check how much is to be generated.

    Raises:
        InputError: `number` is below 1, or `scale` is not positive and at most 100.
    """
    if number < 1:
        raise InputError(f"{data}: {what} is {number}; expected at least 1")
    if not 0 < scale <= 100:
        raise InputError(f"{data}: scale is {scale}; expected a positive number, at most 100")


def write_generated(
    folder: Path,
    labels: Sequence[NDArray[np.int64]],
    shape: tuple[int, ...],
    draw: Callable[[int, NDArray[np.int64]], NDArray[np.uint8]],
    *,
    who: str,
    **description: Any,
) -> None:
    """Write a generated data set, one writer (or identity) after another, so that one writer's images are in memory.

    Args:
        folder: Where to; left as it was after an error.
        labels: Of the samples of each writer, shape [n] each.
        shape: Of an image.
        draw: From a writer's index and labels to its images, uint8, shape [n, *shape].
        who: What a writer is called.
        **description: `name`, `licence`, `classes` and `origin`; see `write_dataset`.
    """
    counts = [len(own) for own in labels]
    write_dataset(
        folder,
        ImageStream((sum(counts), *shape), (draw(k, own) for k, own in enumerate(labels))),
        np.concatenate(labels),
        source="embedded",
        generated=True,
        writers=np.repeat(np.arange(len(labels)), counts),
        writer_names=numbered(who, len(labels)),
        **description,
    )


def numbered(what: str, count: int) -> list[str]:
    """Names whose alphabetical order is that of their numbers."""
    digits = max(4, len(str(count)))
    return [f"{what}-{number:0{digits}}" for number in range(1, count + 1)]
