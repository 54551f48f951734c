"""What all figures have in common: size, palette, files."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from fedpapers.files import replacing

MARKERS = ("o", "s", "D", "^", "v", "P", "X", "*", "<", ">")


def start() -> None:
    """Set the style; figures are drawn without a screen."""
    mpl.use("Agg")
    sns.set_theme(context="paper", style="whitegrid", palette="colorblind")
    plt.rcParams.update(
        {"figure.figsize": (7, 4.2), "savefig.dpi": 150, "legend.frameon": False, "pdf.fonttype": 42, "font.size": 10}
    )
    plt.rcParams["text.parse_math"] = False  # a $ in a worker's name begins no formula


def palette(names: Sequence[str]) -> dict[str, tuple[float, float, float]]:
    """A colour for each name, from a palette that colour-blind readers can tell apart."""
    return dict(zip(names, sns.color_palette("colorblind", len(names)), strict=True))


def save(figure: Figure, png: str, pdf: str) -> None:
    """Write a figure in both forms, the same bytes for the same figure."""
    for path, metadata in ((png, {"Software": None}), (pdf, {"CreationDate": None, "Producer": None})):
        kind = Path(path).suffix[1:]
        with replacing(Path(path)) as temporary:
            figure.savefig(temporary, format=kind, metadata=metadata, bbox_inches="tight")
    plt.close(figure)


def accuracy_axis(axes: Axes) -> None:
    """A vertical axis of accuracy, from 0 to 100 %."""
    axes.set_ylim(0, 1)
    axes.yaxis.set_major_formatter(PercentFormatter(1))


def legend_below(figure: Figure, grid: Iterable[Axes], columns: int) -> None:
    """One legend for all panels, each name once."""
    handles = {label: h for axes in grid for h, label in zip(*axes.get_legend_handles_labels(), strict=True)}
    figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=columns)


def nothing_to_show(why: str) -> Figure:
    """A figure that says why it is empty."""
    figure = Figure(figsize=(5, 1.2))
    figure.text(0.5, 0.5, why, ha="center", va="center")
    return figure
