"""Accuracy of runs: the table, against ε, against rounds."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator

from fedpapers.reporting.figures import MARKERS, accuracy_axis, legend_below, palette
from fedpapers.reporting.runs import add_series, heading, private, swept, varying
from fedpapers.reporting.tables import mean_and_sd, shown, shown_epsilon

_ACCOUNTANTS = {"pld": "ε (PLD)", "prv": "ε (PRV)", "rdp": "ε (RDP)", "gdp": "ε (GDP limit, ≈)"}
_CONSTANT = "Best constant answer"
_DASHES = ("--", "-.", (0, (5, 1)), (0, (3, 1, 1, 1, 1, 1)))
_STYLES = ("-", "--", "-.", (0, (1, 1)))


def accuracy_table(runs: pd.DataFrame, privacy: pd.DataFrame, accountants: list[str]) -> pd.DataFrame:
    """One row a method and noise multiplier: ε of the worst-off worker, accuracy mean ± sd over seeds.

    Args:
        runs: As `read_runs` gives it.
        privacy: One row a run and accountant.
        accountants: Which, in the order of their columns.
    """
    spent = privacy.pivot_table(index="run", columns="accountant", values="epsilon_max", dropna=False)
    merged = runs.merge(spent, left_on="run", right_index=True)
    differ = varying(runs)
    by = ["title", "groups", *differ]
    rows = []
    for key, part in merged.groupby(by, sort=False, dropna=False):
        row = dict(zip(["Algorithm", "Groups", *map(heading, differ)], map(shown, key), strict=True))
        row |= {_ACCOUNTANTS[name]: shown_epsilon(part[name].max()) for name in accountants}
        rows.append(row | {"Accuracy (%)": mean_and_sd(part["accuracy"]), "Seeds": str(len(part))})
    for structure, part in _baselines(runs).groupby("structure", sort=False):
        name = _CONSTANT if _baselines(runs)["structure"].nunique() == 1 else f"{_CONSTANT}, {structure}"
        accuracy = part["constant_accuracy"]
        rows.append({"Algorithm": name, "Accuracy (%)": mean_and_sd(accuracy), "Seeds": str(len(accuracy))})
    return pd.DataFrame(rows).fillna("–")


def plot_accuracy_by_epsilon(runs: pd.DataFrame, privacy: pd.DataFrame, accountant: str, scale: str) -> Figure:
    """Accuracy against ε: a line for each private method, a level for each other one."""
    spent = privacy[privacy["accountant"] == accountant][["run", "epsilon_max"]]
    frame = add_series(swept(runs)).merge(spent, on="run")
    colours = _colours(frame)
    figure, axes = plt.subplots()
    for i, (name, own) in enumerate(frame.groupby("series", sort=False)):
        colour, finite = colours[own["kind"].iloc[0]], own[np.isfinite(own["epsilon_max"])]
        if private(finite).any():
            _line(axes, finite, str(name), colour, MARKERS[i % len(MARKERS)])
        for level, same in own.drop(finite.index[private(finite)]).groupby(_noise(own), dropna=False):
            label = f"{name} (no noise)" if pd.isna(level) else f"{name} (σ = {level:g}, ε = inf)"
            axes.axhline(same["accuracy"].mean(), color=colour, ls=_DASHES[i % len(_DASHES)], lw=1.2, label=label)
    _constant(axes, runs)
    delta = privacy["delta"].iloc[0]
    axes.set(xlabel=f"ε of the worst-off worker at δ = {delta:g} ({accountant.upper()})", xscale="log")
    axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.xaxis.set_major_formatter("{x:g}")
    axes.xaxis.set_minor_formatter("")
    _finish(axes, scale)
    return figure


def plot_accuracy_by_round(runs: pd.DataFrame, history: pd.DataFrame, scale: str) -> Figure:
    """Accuracy against rounds, a panel for each noise multiplier, mean and ± one sd over seeds."""
    named = add_series(swept(runs))
    frame = history.merge(named[["run", "kind", "series", "title"]], on="run")
    sigma = runs.set_index("run")["noise_multiplier"] if "noise_multiplier" in runs else pd.Series(dtype=float)
    frame["sigma"] = frame["run"].map(sigma)
    panels = [None, *sorted(frame["sigma"].dropna().unique())]
    colours = _colours(named)
    figure, grid = plt.subplots(
        1, len(panels), sharey=True, figsize=(2.6 * len(panels) + 1.5, 3.4), squeeze=False, layout="constrained"
    )
    for axes, level in zip(grid[0], panels, strict=True):
        shown = frame[frame["sigma"].isna()] if level is None else frame[frame["sigma"] == level]
        titles: dict[str, list[str]] = {}
        for name, own in shown.groupby("series", sort=False):
            kind, title = own["kind"].iloc[0], own["title"].iloc[0]
            style = _STYLES[len(titles.setdefault(kind, [])) % len(_STYLES)]
            titles[kind].append(title)
            by_round = own.groupby("round")["accuracy"]
            mean, sd = by_round.mean(), by_round.std(ddof=1).fillna(0)
            axes.plot(mean.index, mean, color=colours[kind], ls=style, label=str(name))
            axes.fill_between(mean.index, mean - sd, mean + sd, color=colours[kind], alpha=0.2, lw=0)
        _constant(axes, runs)
        axes.set(title="no noise" if level is None else f"σ = {level:g}", xlabel="round")
        accuracy_axis(axes)
    grid[0][0].set_ylabel(f"mean accuracy of workers\n({scale} scale)")
    legend_below(figure, grid[0], 3)
    return figure


def _colours(frame: pd.DataFrame) -> dict[str, tuple[float, float, float]]:
    return palette(list(dict.fromkeys(frame["kind"])))


def _baselines(runs: pd.DataFrame) -> pd.DataFrame:
    """One row a structure and seed: runs on the same partition share the best constant answer."""
    named = runs if "structure" in runs else runs.assign(structure="")
    return named.fillna({"structure": ""}).drop_duplicates(["structure", "partition", "seed"])


def _constant(axes: Axes, runs: pd.DataFrame) -> None:
    for _, part in _baselines(runs).groupby("structure", sort=False):
        axes.axhline(part["constant_accuracy"].mean(), color="grey", ls=":", lw=1.2, label=_CONSTANT.lower())


def _noise(frame: pd.DataFrame) -> pd.Series[float]:
    return frame["noise_multiplier"] if "noise_multiplier" in frame else pd.Series(np.nan, index=frame.index)


def _line(axes: Axes, own: pd.DataFrame, name: str, colour: tuple[float, float, float], marker: str) -> None:
    by_noise = own.groupby("noise_multiplier", sort=True)
    accuracy = by_noise["accuracy"]
    axes.errorbar(
        by_noise["epsilon_max"].mean(), accuracy.mean(), accuracy.std(ddof=1).fillna(0),
        color=colour, marker=marker, capsize=3, label=name,
    )  # fmt: skip


def _finish(axes: Axes, scale: str) -> None:
    axes.set_ylabel(f"mean accuracy of workers ({scale} scale)")
    accuracy_axis(axes)
    axes.legend(loc="center left", bbox_to_anchor=(1.02, 0.5))
