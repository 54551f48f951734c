"""Leakage over time, over distance and by pair of workers, from the tables of the study of leakage."""

from __future__ import annotations

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle
from matplotlib.ticker import LogLocator, MaxNLocator

from fedpapers.reporting.figures import MARKERS

_BEST = "percolation"
_EXACT = "exact"
_BOUNDS = {"delay": "bound: delay", "cut": "bound: cut", _BEST: "bound: percolation", _EXACT: "exact reference"}
_CURVES = {  # algorithm, bound: as it is called
    ("dp-ogl", _BEST): "DP-OGL",
    ("dp-ogl-plus", _BEST): "DP-OGL+",
    ("dp-ogl-plus", "paper"): "DP-OGL+, claimed, unproven",
    ("dp-ogl-local", _BEST): "DP-OGL (local)",
}
_COLOURS = {"dp-ogl": 0, "dp-ogl-plus": 1, "dp-ogl-local": 2}  # places in the palette
_COLOUR_MAP = mpl.colormaps["viridis"].with_extremes(under="black")  # ε = 0 is below any logarithmic scale
_SMALLEST = 1e-3  # ε from which the axis of the exact reference starts
_MOST_NAMED = 13  # workers whose names an axis of a heat map has room for


def read_leakage(path: str) -> pd.DataFrame:
    """A table of the study; workers are texts."""
    return pd.read_csv(path, dtype={"from": str, "to": str, "structure": str})


def plot_leakage_over_time(leakage: pd.DataFrame, delta: float) -> Figure:
    """ε against epochs: a row for each sampling rate, a column for each bound, a line for each distance.

    The exact reference has an axis of its own, as it goes far below the bounds.
    """
    shown = leakage[leakage["epsilon"] > 0]
    rates = list(dict.fromkeys(shown["sampling_rate"]))
    figure, grid = plt.subplots(
        len(rates), len(_BOUNDS), sharex=True, squeeze=False, layout="constrained", figsize=(11, 2.8 * len(rates) + 0.8)
    )
    for row, rate in zip(grid, rates, strict=True):
        of_rate = shown[shown["sampling_rate"] == rate]
        bounds = of_rate.loc[of_rate["bound"] != _EXACT, "epsilon"]
        for axes, (bound, title) in zip(row, _BOUNDS.items(), strict=True):
            own = of_rate[of_rate["bound"] == bound]
            if own.empty:
                axes.remove()
                continue
            lowest = _SMALLEST if bound == _EXACT else 0.9 * bounds.min()
            axes.set(title=f"{title}, q = {rate:g}", yscale="log", ylim=(lowest, 1.25 * bounds.max()))
            axes.yaxis.set_major_locator(LogLocator(subs=(1,) if bound == _EXACT else (1, 2, 5)))
            axes.yaxis.set_major_formatter("{x:g}")
            axes.yaxis.set_minor_formatter("")
            _lines(axes, own, of_rate[of_rate["bound"] == "naive"])
        row[0].set_ylabel(f"ε at δ = {delta:g}")
    for axes in grid[-1]:
        axes.set_xlabel("epochs T")
    figure.legend(*grid[-1][0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
    return figure


def plot_leakage_over_distance(leakage: pd.DataFrame, structure: str, delta: float) -> Figure:
    """ε at the end against distance: a panel for each S, a line for each algorithm; the largest over observers.

    Args:
        leakage: The table of pairs.
        structure: Which structure; data leak from its first worker.
        delta: δ, for the label.
    """
    own = leakage[leakage["structure"] == structure]
    own = own[(own["from"] == own["from"].iloc[0]) & np.isfinite(own["distance"])]
    intervals = list(dict.fromkeys(own["S"]))
    figure, grid = plt.subplots(
        1, len(intervals), sharey=True, squeeze=False, layout="constrained", figsize=(3.2 * len(intervals) + 0.8, 3.8)
    )
    curves = own[own["bound"].isin([_BEST, "paper"])]
    top = 1.12 * curves.loc[np.isfinite(curves["epsilon"]), "epsilon"].max()
    for axes, interval in zip(grid[0], intervals, strict=True):
        for i, (algorithm, bound) in enumerate(_CURVES):
            chosen = (curves["S"] == interval) & (curves["algorithm"] == algorithm) & (curves["bound"] == bound)
            _curve(axes, i, curves[chosen].groupby("distance")["epsilon"].max(), top)
        axes.axhline(top, color="0.5", ls=":", lw=1)
        axes.set(title=f"S = {interval}", xlabel="distance (hops)", ylim=(-0.03 * top, 1.06 * top))
        axes.set_xticks(sorted(own["distance"].unique()))
    ticks = [tick for tick in MaxNLocator(7).tick_values(0, top) if 0 <= tick < 0.95 * top]
    grid[0][0].set_yticks([*ticks, top], labels=[*(f"{tick:g}" for tick in ticks), "inf"])
    grid[0][0].set_ylabel(f"ε at δ = {delta:g}, T = {own['T'].iloc[0]}")
    figure.legend(*grid[0][0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
    return figure


def plot_leakage_of_pairs(leakage: pd.DataFrame, interval: int, delta: float) -> Figure:
    """Heat maps of the best proven ε of every pair, DP-OGL and DP-OGL+ side by side, all on one scale of colours.

    Args:
        leakage: The table of pairs.
        interval: Which S.
        delta: δ, for the label.
    """
    shown = leakage[(leakage["S"] == interval) & (leakage["bound"] == _BEST)]
    structures = list(dict.fromkeys(shown["structure"]))
    algorithms = {"dp-ogl": "DP-OGL", "dp-ogl-plus": "DP-OGL+"}
    side_by_side = min(2, len(structures))
    rows = -(-len(structures) // side_by_side)
    figure, grid = plt.subplots(
        rows, 2 * side_by_side, squeeze=False, layout="constrained", figsize=(5.2 * side_by_side + 1, 2.75 * rows + 0.6)
    )
    for axes in grid.flat[2 * len(structures) :]:
        axes.remove()
    finite = shown.loc[np.isfinite(shown["epsilon"]) & shown["algorithm"].isin(list(algorithms)), "epsilon"]
    scale = LogNorm(finite[finite > 0].min(), finite.max())
    panels = [(structure, algorithm) for structure in structures for algorithm in algorithms]
    for axes, (structure, algorithm) in zip(grid.flat, panels, strict=False):
        own = shown[(shown["structure"] == structure) & (shown["algorithm"] == algorithm)]
        _heat_map(axes, own, scale)
        axes.set_title(f"{structure}, {algorithms[algorithm]}")
    figure.colorbar(
        plt.cm.ScalarMappable(scale, _COLOUR_MAP), ax=list(grid.flat[: 2 * len(structures)]), aspect=15 * rows,
        label=f"ε at δ = {delta:g} (T = {shown['T'].iloc[0]}, S = {interval})",
        ticks=LogLocator(subs=(1, 2, 5)), format="{x:g}",
    ).ax.minorticks_off()  # fmt: skip
    figure.supxlabel("observer")
    figure.supylabel("worker whose data leak")
    keys = [
        Patch(facecolor="white", edgecolor="black", hatch="////", label="ε = inf (no guarantee)"),
        Patch(facecolor="black", label="ε = 0 (out of reach)"),
        Patch(facecolor="0.85", label="the worker itself"),
    ]
    figure.legend(handles=keys, loc="outside upper center", ncols=3)
    return figure


def _lines(axes: Axes, own: pd.DataFrame, naive: pd.DataFrame) -> None:
    """A line for each distance, and the bound that holds at any."""
    distances = sorted(naive["distance"].unique())
    colours = mpl.colormaps["viridis"](np.linspace(0, 0.9, len(distances)))
    for distance, colour, marker in zip(distances, colours, MARKERS, strict=False):
        line = own[own["distance"] == distance]
        axes.plot(
            line["T"], line["epsilon"], color=colour, marker=marker, ms=4, markevery=5, label=f"distance {distance:g}"
        )
    anywhere = naive.drop_duplicates("T")
    axes.plot(anywhere["T"], anywhere["epsilon"], color="black", ls="--", lw=1.2, label="bound: naive, at any distance")


def _curve(axes: Axes, place: int, largest: pd.Series[float], top: float) -> None:
    """A curve against distance; what is infinite stands beside its distance at the height `top`."""
    algorithm, bound = list(_CURVES)[place]
    colour, claimed = sns.color_palette("colorblind")[_COLOURS[algorithm]], bound == "paper"
    look = {"color": colour, "marker": MARKERS[place], "mfc": "white" if claimed else colour, "ms": 6}
    finite = np.isfinite(largest)
    axes.plot(
        largest.index, largest.where(finite), ls="--" if claimed else "-", label=_CURVES[algorithm, bound], **look
    )
    infinite = largest.index[~finite]
    axes.plot(infinite + (0.15 if claimed else -0.15), [top] * len(infinite), ls="", **look)


def _heat_map(axes: Axes, own: pd.DataFrame, scale: LogNorm) -> None:
    workers = list(dict.fromkeys(own["from"]))
    matrix = own.pivot_table(index="from", columns="to", values="epsilon", dropna=False)
    values = matrix.reindex(index=workers, columns=workers).to_numpy()
    coloured = np.where(values == 0, np.finfo(float).tiny, values)
    axes.imshow(np.ma.masked_invalid(coloured), cmap=_COLOUR_MAP, norm=scale, interpolation="nearest")
    axes.set_facecolor("0.85")
    axes.grid(visible=False)
    for i, j in np.argwhere(np.isposinf(values)):
        axes.add_patch(Rectangle((j - 0.5, i - 0.5), 1, 1, facecolor="white", edgecolor="black", hatch="////", lw=0))
    places = range(0, len(workers), -(-len(workers) // _MOST_NAMED))
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_ticks(places, labels=[workers[place] for place in places], fontsize=7)
