"""Audit and exact reference under the bounds, from the table of `experiment.leakage_audit`."""

from __future__ import annotations

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure

_TITLES = {"dp-ogl": "DP-OGL", "dp-ogl-plus": "DP-OGL+", "dp-ogl-local": "DP-OGL (local)"}
_LOOKS = {  # bound: label, place in the palette or None for grey, line style, marker
    "naive": ("bound: naive", None, "--", ""),
    "delay": ("bound: delay", 0, "-", "o"),
    "cut": ("bound: cut", 1, "-", "s"),
    "percolation": ("bound: percolation", 2, "-", "D"),
    "paper": ("claimed, unproven", 3, ":", "v"),
    "exact": ("exact, of a linear run", 4, "-", "P"),
    "audit": ("audit, from below (95 %)", 7, "-", "^"),
}
_LINEAR_BELOW = 0.1  # ε at which the axis turns from logarithmic to linear, so that 0 has a place
_DODGE = 0.06  # hops between the markers of what is infinite


def plot_audit(table: pd.DataFrame, delta: float) -> Figure:
    """ε against distance: a panel for each algorithm, a line for each bound and for what the bounds must stay above.

    Infinite ε stand at the top, 0 at the bottom of an axis that is linear below ε = 0.1 and logarithmic above.

    Args:
        table: Rows with `algorithm`, `S`, `T`, `distance`, `bound` and `epsilon`; one row for each combination.
        delta: δ, for the label.
    """
    algorithms = list(dict.fromkeys(table["algorithm"]))
    top = 3 * table.loc[np.isfinite(table["epsilon"]), "epsilon"].max()
    figure, grid = plt.subplots(
        1, len(algorithms), sharey=True, squeeze=False, layout="constrained", figsize=(3.2 * len(algorithms) + 0.8, 4.2)
    )
    for axes, algorithm in zip(grid[0], algorithms, strict=True):
        own = table[table["algorithm"] == algorithm]
        _panel(axes, own, top)
        axes.set(title=f"{_TITLES[algorithm]}, S = {own['S'].iloc[0]}", xlabel="distance (hops)")
    _set_ticks(grid[0][0], top)
    grid[0][0].set_ylabel(f"ε at δ = {delta:g}, T = {table['T'].iloc[0]}")
    handles = {label: h for axes in grid[0] for h, label in zip(*axes.get_legend_handles_labels(), strict=True)}
    figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=4)
    return figure


def _panel(axes: Axes, table: pd.DataFrame, top: float) -> None:
    colours = sns.color_palette("colorblind")
    axes.set_yscale("symlog", linthresh=_LINEAR_BELOW, linscale=0.5)
    axes.axhline(top, color="0.5", ls=":", lw=1)
    shown = [bound for bound in _LOOKS if bound in set(table["bound"])]
    for place, bound in enumerate(shown):
        label, colour, style, marker = _LOOKS[bound]
        line = table[table["bound"] == bound].set_index("distance")["epsilon"].sort_index()
        finite = np.isfinite(line)
        look: dict[str, Any] = {"color": "0.3" if colour is None else colours[colour], "marker": marker, "ms": 6}
        look |= {"mfc": "white"} if bound == "paper" else {}
        axes.plot(line.index, line.where(finite), ls=style, label=label, **look)
        shift = (place - (len(shown) - 1) / 2) * _DODGE
        axes.plot(line.index[~finite] + shift, [top] * int((~finite).sum()), ls="", **look | {"marker": marker or "_"})
    axes.set_xticks(sorted(table["distance"].unique()))


def _set_ticks(axes: Axes, top: float) -> None:
    decades = [tick for tick in (0.1, 0.3, 1, 3, 10, 30, 100, 300, 1000) if tick < 0.7 * top]
    axes.set_yticks([0, *decades, top], labels=["0", *(f"{tick:g}" for tick in decades), "inf"])
    axes.set_yticks([], minor=True)
    axes.set_ylim(-0.02, 1.3 * top)
