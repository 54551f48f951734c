"""What trained runs leak, beside how accurate they are: the table, the trade-off, the role of the interval S."""

from __future__ import annotations

from typing import Literal

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fedpapers.reporting.figures import MARKERS, accuracy_axis, nothing_to_show, palette
from fedpapers.reporting.runs import add_series, heading, private, read_runs, swept, varying
from fedpapers.reporting.tables import NOT_AVAILABLE, mean_and_sd, shown, shown_epsilon

_CLAIMED = "claimed_out_of_group_max"
_TICKS = (0, 1, 10, 100, 1e3, 1e4, 1e5, 1e6)
Colour = tuple[float, float, float]


def read_leaking_runs(runs: str, leakage: str) -> pd.DataFrame:
    """The runs' table with what each run leaks: the columns of `experiment.account_leakage`."""
    return read_runs(runs).merge(pd.read_csv(leakage), on="run")


def leakage_table(runs: pd.DataFrame) -> pd.DataFrame:
    """One row a structure, method and noise: accuracy, and the best proven ε in and out of group.

    Args:
        runs: As `read_leaking_runs` gives it.
    """
    differ = [column for column in varying(runs) if column != "structure"]
    rows = []
    for key, part in runs.groupby(["structure", "title", "groups", *differ], sort=False, dropna=False):
        row = dict(zip(["Structure", "Algorithm", "Groups", *map(heading, differ)], map(shown, key), strict=True))
        rows.append(
            row
            | {
                "Accuracy (%)": mean_and_sd(part["accuracy"]),
                "Seeds": str(len(part)),
                "ε in group (max)": _epsilon(part["in_group_max"]),
                "ε out of group (max)": _epsilon(part["out_of_group_max"]),
                "ε out of group (mean)": _epsilon(part["out_of_group_mean"]),
                "claimed, unproven (max)": _epsilon(part[_CLAIMED], "–"),
            }
        )
    return pd.DataFrame(rows)


def plot_accuracy_by_leakage(runs: pd.DataFrame, scale: str) -> Figure:
    """Accuracy against the largest ε out of group, a point for each noise multiplier, mean ± sd over seeds.

    What leaks nothing out of group stands at ε = 0; methods with infinite ε are levels. For DP-OGL+ the unproven claim
    stands beside the proven bound, with open markers.

    Args:
        runs: As `read_leaking_runs` gives it.
        scale: Of the experiment, for the label.
    """
    frame = add_series(swept(runs))
    colours = palette(list(dict.fromkeys(frame["series"])))
    figure, axes = plt.subplots(figsize=(8.5, 4.8), layout="constrained")
    for place, (name, own) in enumerate(frame.groupby("series", sort=False)):
        colour, marker = colours[str(name)], MARKERS[place % len(MARKERS)]
        finite = np.isfinite(own["out_of_group_max"])
        if finite.any():
            _points(axes, own[finite], "out_of_group_max", str(name), colour, marker)
        if own[_CLAIMED].notna().any():
            _points(axes, own, _CLAIMED, f"{name}, claimed, unproven", colour, marker, claimed=True)
        if not finite.all():
            level = own.loc[~finite, "accuracy"].mean()
            axes.axhline(level, color=colour, ls="--", lw=1.2, label=f"{name} (ε = inf)")
    _leakage_axis(axes, "x", frame)
    axes.set_xlabel(f"largest ε to a worker out of group, δ = {runs['delta'].iloc[0]:g}")
    axes.set_ylabel(f"mean accuracy of workers ({scale} scale)")
    accuracy_axis(axes)
    figure.legend(loc="outside right upper")
    return figure


def plot_role_of_interval(runs: pd.DataFrame, scale: str) -> Figure:
    """Accuracy and the largest ε out of group against S, at the noise multiplier at which most S were run.

    Args:
        runs: As `read_leaking_runs` gives it.
        scale: Of the experiment, for the label.
    """
    own = of_one_noise(runs)
    if own.empty:
        return nothing_to_show("no private runs in overlapping groups")
    names = own["title"] + np.where(own["mixing"] == "model", ", mixing models", "")
    colours = palette(list(dict.fromkeys(names)))
    figure, (left, right) = plt.subplots(1, 2, figsize=(8.5, 3.6), layout="constrained")
    for place, (name, line) in enumerate(own.groupby(names, sort=False)):
        look = {"color": colours[str(name)], "marker": MARKERS[place], "label": str(name)}
        by_interval = line.groupby("interval")
        accuracy = by_interval["accuracy"]
        left.errorbar(accuracy.mean().index, accuracy.mean(), accuracy.std(ddof=1).fillna(0), capsize=3, **look)
        right.plot(by_interval["out_of_group_max"].mean(), **look)
        if line[_CLAIMED].notna().any():
            claimed = by_interval[_CLAIMED].mean()
            right.plot(claimed, **look | {"ls": ":", "mfc": "none", "ms": 9, "label": f"{name}, claimed, unproven"})
    for axes in (left, right):
        axes.set_xlabel("S: rounds from one inter-group epoch to the next")
        axes.set_xticks(sorted(own["interval"].unique()))
    left.set_ylabel(f"mean accuracy of workers ({scale} scale)")
    accuracy_axis(left)
    _leakage_axis(right, "y", own)
    right.set_ylabel(f"largest ε out of group, δ = {runs['delta'].iloc[0]:g}")
    figure.suptitle(f"σ = {own['noise_multiplier'].iloc[0]:g}, T = {own['rounds'].iloc[0]}", fontsize="medium")
    figure.legend(*right.get_legend_handles_labels(), loc="outside lower center", ncols=3)
    return figure


def of_first_structure(runs: pd.DataFrame) -> pd.DataFrame:
    """The runs in the structure of the first one: what is compared must not differ in who is there."""
    first: pd.DataFrame = runs[runs["structure"] == runs["structure"].iloc[0]]
    return first


def of_one_noise(runs: pd.DataFrame) -> pd.DataFrame:
    """The private runs in overlapping groups of the first structure, at the noise multiplier with most intervals S."""
    own = of_first_structure(runs)
    own = own[private(own) & (own["groups"] == "overlapping groups")]
    if own.empty:
        return own
    intervals = own.groupby("noise_multiplier")["interval"].nunique()
    return own[own["noise_multiplier"] == intervals.idxmax()].astype({"interval": int})


def _points(
    axes: Axes, own: pd.DataFrame, column: str, label: str, colour: Colour, marker: str, claimed: bool = False
) -> None:
    by_noise = own.groupby(own["noise_multiplier"].fillna(-1))
    accuracy = by_noise["accuracy"]
    at = by_noise[column].mean()
    axes.errorbar(
        at, accuracy.mean(), accuracy.std(ddof=1).fillna(0), color=colour, marker=marker, capsize=3, label=label,
        ls=":" if claimed else "-" if len(at) > 1 else "", mfc="white" if claimed else colour,
    )  # fmt: skip


def _leakage_axis(axes: Axes, which: Literal["x", "y"], frame: pd.DataFrame) -> None:
    """A scale that has a place for 0: linear below ε = 1, logarithmic above."""
    values = frame[["out_of_group_max", _CLAIMED]].to_numpy(dtype=float)
    top = np.max(values[np.isfinite(values)], initial=1)
    set_scale = axes.set_xscale if which == "x" else axes.set_yscale
    set_scale("symlog", linthresh=1, linscale=0.6)
    axis = axes.xaxis if which == "x" else axes.yaxis
    ticks = [tick for tick in _TICKS if tick <= 3 * top]
    (axes.set_xlim if which == "x" else axes.set_ylim)(-0.4, 3 * top)
    axis.set_ticks(ticks, labels=[f"{tick:,.0f}" for tick in ticks])
    axis.set_ticks([], minor=True)


def _epsilon(values: pd.Series[float], missing: str = NOT_AVAILABLE) -> str:
    """The largest of some ε as it is shown; `missing` where there are no such pairs."""
    return missing if values.isna().all() else shown_epsilon(values.max())
