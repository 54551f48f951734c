"""Heat maps of who leaks how much to whom, from the reports of `fedpapers leakage`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import Normalize
from matplotlib.image import AxesImage
from matplotlib.patches import Patch, Rectangle
from numpy.typing import NDArray

from fedpapers.errors import InputError, nearest
from fedpapers.files import replacing
from fedpapers.reporting import figures

_MOST_NUMBERS = 12  # workers up to which each cell shows its ε
_MOST_NAMES = 40  # workers up to which the axes name them
_FORMATS = ("png", "pdf", "svg")


def plot_leakage(reports: Sequence[Mapping[str, Any]], path: Path) -> None:
    """Draw the best proven ε of every pair, one panel a report, all in one colour scale.

    Args:
        reports: Reports of the same workers, each with its `algorithm`.
        path: A png, pdf or svg file.

    Raises:
        InputError: The file's name has another ending.
    """
    kind = path.suffix[1:].lower()
    if kind not in _FORMATS:
        raise InputError(f"--plot {path}: expected a file of {', '.join(_FORMATS)}; {nearest(kind, _FORMATS)}")
    figures.start()
    matrices = [_matrix(report) for report in reports]
    finite = np.concatenate([matrix[np.isfinite(matrix)] for matrix in matrices])
    scale = Normalize(0, max(finite.max(initial=0), 1e-9))
    rows, columns = matrices[0].shape
    size = (1.6 + len(reports) * np.clip(0.5 * columns, 3.6, 7), np.clip(0.5 * rows, 1.2, 7) + 1.6)
    figure, axes = plt.subplots(1, len(reports), figsize=size, squeeze=False, layout="constrained")
    for axis, report, matrix in zip(axes[0], reports, matrices, strict=True):
        image = _panel(axis, report, matrix, scale)
    bound = "best proven bound" if reports[0]["coefficient"] == "tv" else "numeric bound"
    figure.colorbar(image, ax=list(axes[0]), label=f"ε at δ = {reports[0]['delta']:g} ({bound})")
    if any(np.isposinf(matrix).any() for matrix in matrices):
        infinite = Patch(facecolor="white", edgecolor="black", hatch="////", label="ε = inf (not private)")
        figure.legend(handles=[infinite], loc="outside lower center")
    with replacing(path) as temporary:
        figure.savefig(temporary, format=kind, bbox_inches="tight")
    plt.close(figure)


def _matrix(report: Mapping[str, Any]) -> NDArray[np.float64]:
    """ε as numbers, NaN on the diagonal."""
    return np.array([[np.nan if value is None else float(value) for value in row] for row in report["epsilon"]])


def _panel(axis: Axes, report: Mapping[str, Any], matrix: NDArray[np.float64], scale: Normalize) -> AxesImage:
    sources = [report["from"]] if "from" in report else report["workers"]
    shown = np.ma.masked_invalid(matrix)
    image = axis.imshow(shown, cmap="viridis", norm=scale, aspect="auto", interpolation="nearest")
    axis.set_facecolor("0.85")
    axis.grid(visible=False)
    for i, j in np.argwhere(np.isposinf(matrix)):
        axis.add_patch(Rectangle((j - 0.5, i - 0.5), 1, 1, facecolor="white", edgecolor="black", hatch="////", lw=0))
    if len(report["workers"]) <= _MOST_NUMBERS:
        for i, j in np.argwhere(np.isfinite(matrix)):
            colour = "black" if scale(matrix[i, j]) > 0.6 else "white"
            axis.text(j, i, f"{matrix[i, j]:.3g}", ha="center", va="center", color=colour, fontsize=8)
    _name(axis.xaxis, report["workers"])
    _name(axis.yaxis, sources)
    place = "" if len(report["workers"]) <= _MOST_NAMES else " (place in the list, from 0)"
    axis.set(
        title=f"{report['algorithm']}, T = {report['epochs']}, S = {report['interval']}",
        xlabel=f"observer{place}",
        ylabel=f"worker whose data leak{place if 'from' not in report else ''}",
    )
    return image


def _name(axis: Any, workers: Sequence[str]) -> None:
    """Name the workers along an axis where they are few, else leave their places."""
    if len(workers) <= _MOST_NAMES:
        axis.set_ticks(range(len(workers)), labels=workers)
