"""Figures 4, 5, and 6a and b of MultFAug."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray
from safetensors.numpy import load_file

from fedpapers.reporting.augmentation import DEADLINES, at_first_compression, deadline_name
from fedpapers.reporting.figures import palette

_LABELS = 10
_ROWS = 5  # digits of a label on the sheet
_COLOURS = dict(zip(DEADLINES, list(palette([str(k) for k in range(4)]).values())[:2], strict=True))
_SIDE = 28

Pictures = tuple[NDArray[np.uint8], NDArray[np.int64]]


def read_images(file: str) -> Pictures:
    """Images and labels of a file of seeds or of generated digits."""
    arrays = load_file(file)
    return arrays["images"], arrays["labels"]


def plot_seeds_and_digits(
    cells: Sequence[Mapping[str, Any]], seeds: Sequence[Pictures], generated: Sequence[Pictures]
) -> Figure:
    """For each compression rate the seeds at the server and generated digits, a column for each label (Figure 4).

    Args:
        cells: Of each rate, with `compression`, `devices`, `hops` and `seeds`.
        seeds: Images and labels that the generator was trained on, for each rate.
        generated: Images and labels that it generates, for each rate.
    """
    columns = max(1, len(cells))
    figure, axes = plt.subplots(2, columns, figsize=(3.1 * columns + 0.4, 4.3), layout="constrained", squeeze=False)
    for axis in axes.flat:
        axis.set_axis_off()
    for column, (cell, *pictures) in enumerate(zip(cells, seeds, generated, strict=True)):
        for axis, shown in zip(axes[:, column], pictures, strict=True):
            axis.set_axis_on()
            _show_sheet(axis, *shown)
        axes[0, column].set_title(f"ρ = {cell['compression']:g}: {cell['seeds']} seeds at the server", fontsize=9)
        axes[1, column].set_title("generated digits", fontsize=9)
    if cells:
        figure.suptitle(f"N = {cells[0]['devices']}, M = {cells[0]['hops']}, loose deadline", fontsize=10)
    return figure


def _show_sheet(axis: Axes, images: NDArray[np.uint8], labels: NDArray[np.int64]) -> None:
    blank = np.full((_SIDE, _SIDE), 128, dtype=np.uint8)  # grey: there is no such seed
    sheet = []
    for label in range(_LABELS):
        own = images[labels == label][:_ROWS]
        sheet.append(np.concatenate([*own, *[blank] * (_ROWS - len(own))]))
    axis.imshow(np.concatenate(sheet, axis=1), cmap="gray", vmin=0, vmax=255, interpolation="nearest")
    axis.set_xticks([(label + 0.5) * _SIDE for label in range(_LABELS)], [str(label) for label in range(_LABELS)])
    axis.set_yticks([])
    axis.tick_params(length=0, labelsize=8)
    axis.grid(visible=False)


def plot_quality(quality: pd.DataFrame) -> Figure:
    """F1 of the generator, left axis, and sample privacy, right axis, against ρ (Figure 5).

    Args:
        quality: One row a ρ, deadline and repetition; empty where nothing arrived.
    """
    figure, left = plt.subplots(figsize=(6.4, 4), layout="constrained")
    right = left.twinx()
    violet, yellow = "tab:purple", "goldenrod"
    for deadline, line in zip(DEADLINES, ("-", "--"), strict=True):
        rows = quality[quality["deadline"] == deadline]
        if rows.empty:
            continue
        name = deadline_name(rows)
        _line(left, rows, "compression", "f1", color=violet, linestyle=line, marker="o", label=f"F1, {name}")
        privacy = {"color": yellow, "linestyle": line, "marker": "s", "label": f"sample privacy, {name}"}
        _line(right, rows, "compression", "common_map_privacy", **privacy)
    left.set(xlabel="compression rate ρ", ylabel="F1 of the generator", ylim=(0, None))
    right.set(ylabel="sample privacy (common map)")
    right.grid(visible=False)
    left.yaxis.label.set_color(violet)
    right.yaxis.label.set_color("darkgoldenrod")
    handles = [handle for axis in (left, right) for handle in axis.get_legend_handles_labels()[0]]
    figure.legend(handles=handles, loc="outside lower center", ncols=2, fontsize=8)
    return figure


def plot_accuracy_by_hops(cells: pd.DataFrame) -> Figure:
    """Accuracy before and after augmentation against M, and the seeds that it rests on (Figure 6a, b).

    A column for each N; rows: accuracy over all labels, on the reference device's target label, and the seeds at the
    server, each point with the share of repetitions in which the target label was among them.
    """
    cells = at_first_compression(cells)
    numbers = sorted(cells["devices"].unique())
    size = (3.6 * len(numbers) + 0.6, 7.6)
    figure, axes = plt.subplots(
        3, len(numbers), figsize=size, sharex=True, sharey="row", layout="constrained", squeeze=False
    )
    for column, devices in enumerate(numbers):
        of_number = cells[cells["devices"] == devices]
        for row, measure in enumerate(("accuracy", "target_accuracy")):
            _accuracy(axes[row, column], of_number, measure)
        _seeds(axes[2, column], of_number)
        axes[0, column].set_title(f"N = {devices}")
        axes[2, column].set_xlabel("M: most hops of a route")
        axes[2, column].xaxis.set_major_locator(MaxNLocator(integer=True))
    axes[2, 0].set_ylim(0, 1.15 * cells.groupby(["devices", "deadline", "hops"])["seeds"].mean().max())
    for row, name in enumerate(("test accuracy (%)", "accuracy on the target label (%)", "seeds at the server")):
        axes[row, 0].set_ylabel(name)
    handles = axes[0, 0].get_legend_handles_labels()[0]
    figure.legend(handles=handles, loc="outside lower center", ncols=2, fontsize=8)
    return figure


def _accuracy(axis: Axes, cells: pd.DataFrame, measure: str) -> None:
    for deadline in DEADLINES:
        rows = cells[cells["deadline"] == deadline]
        percent = rows.assign(before=100 * rows[f"{measure}_alone"], after=100 * rows[f"{measure}_augmented"])
        style = {"color": _COLOURS[deadline], "markersize": 5}
        _line(axis, percent, "hops", "after", marker="o", label=f"augmented, {deadline_name(rows)}", **style)
    alone = cells.assign(before=100 * cells[f"{measure}_alone"])
    _line(axis, alone, "hops", "before", marker="x", color="0.4", linestyle=":", label="alone (before augmentation)")


def _seeds(axis: Axes, cells: pd.DataFrame) -> None:
    for deadline, above in zip(DEADLINES, (False, True), strict=True):
        rows = cells[cells["deadline"] == deadline].assign(covered=lambda rows: rows["target_seeds"] > 0)
        _line(axis, rows, "hops", "seeds", marker="o", color=_COLOURS[deadline])
        for hops, group in rows.groupby("hops"):
            at, place = (hops, group["seeds"].mean()), (0, 6 if above else -12)
            text = f"{100 * group['covered'].mean():.0f} %"
            axis.annotate(text, at, place, textcoords="offset points", ha="center", fontsize=7)


def _line(axis: Axes, rows: pd.DataFrame, x: str, y: str, **style: Any) -> None:
    """The mean over repetitions, with error bars of its standard error where there are several."""
    grouped = rows.groupby(x)[y]
    mean, error = grouped.mean(), grouped.sem()
    axis.errorbar(mean.index, mean, yerr=None if error.isna().all() else error, capsize=2, **style)
