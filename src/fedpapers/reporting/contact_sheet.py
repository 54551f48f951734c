"""Contact sheets: some samples of some clients, to see what a data set holds."""

from __future__ import annotations

from collections.abc import Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray


def plot_contact_sheet(
    images: NDArray[np.uint8],
    labels: NDArray[np.int64],
    writers: NDArray[np.int64],
    writer_names: Sequence[str],
    classes: Sequence[str],
    data: str,
    rows: int = 10,
    columns_per_class: int = 1,
) -> Figure:
    """A row for each of the writers who have the most classes, a column (or more) for each class.

    A place is left blank where a writer has no such sample.

    Args:
        images: uint8, shape [n, H, W] or [n, H, W, 3]; ink 255 on 0 is shown as ink on paper.
        labels: Index into `classes` of each, shape [n].
        writers: Index into `writer_names` of each, shape [n].
        writer_names: The writers' names.
        classes: The classes' names.
        data: Name of the data set.
        rows: Writers shown at most.
        columns_per_class: Samples of each class and writer shown at most.
    """
    chosen = _fullest(labels, writers, len(writer_names), rows)
    sheet = np.concatenate(
        [_strip(images, labels, writers == writer, len(classes), columns_per_class) for writer in chosen]
    )
    height, width = images.shape[1:3]
    columns = len(classes) * columns_per_class
    scale = max(0.12, 9 / columns)
    figure, axes = plt.subplots(figsize=(1.5 + columns * scale, 0.9 + len(chosen) * scale * height / width))
    axes.imshow(sheet if sheet.ndim == 3 else 255 - sheet, cmap="gray", vmin=0, vmax=255, interpolation="nearest")
    axes.set_yticks([(k + 0.5) * height for k in range(len(chosen))], [writer_names[k] for k in chosen])
    axes.set_xticks([(k + 0.5) * width * columns_per_class for k in range(len(classes))], classes)
    axes.tick_params(length=0, labelsize=8, top=True, labeltop=True, bottom=False, labelbottom=False)
    axes.set_title(f"{data}: {len(chosen)} of {len(writer_names)} clients")
    axes.grid(visible=False)
    for spine in axes.spines.values():
        spine.set_visible(False)
    return figure


def _fullest(labels: NDArray[np.int64], writers: NDArray[np.int64], count: int, rows: int) -> list[int]:
    """The writers with the most classes, in their own order."""
    pairs = np.unique(np.stack([writers, labels]), axis=1)
    most = np.argsort(-np.bincount(pairs[0], minlength=count), kind="stable")[:rows]
    return sorted(most.tolist())


def _strip(
    images: NDArray[np.uint8], labels: NDArray[np.int64], own: NDArray[np.bool_], classes: int, each: int
) -> NDArray[np.uint8]:
    blank = np.full(images.shape[1:], 255 if images.ndim == 4 else 0, dtype=np.uint8)
    cells = []
    for label in range(classes):
        samples = np.flatnonzero(own & (labels == label))[:each]
        cells += [images[k] for k in samples] + [blank] * (each - len(samples))
    return np.concatenate(cells, axis=1)
