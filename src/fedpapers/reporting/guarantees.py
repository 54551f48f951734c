"""What DPFedMTL claims about privacy and what is certified: Table P and Figure 3."""

from __future__ import annotations

from collections.abc import Mapping

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure

from fedpapers.reporting.figures import palette
from fedpapers.reporting.published import REAL
from fedpapers.reporting.tables import shown_epsilon

_NONE = "–"
_SETTINGS = {"paper": "the paper's", "ours": "ours"}
_COLUMNS = {
    "pld": "ε (PLD)",
    "prv": "ε (PRV)",
    "rdp": "ε (RDP)",
    "exact": "ε (closed form)",
    "gdp": "ε (GDP limit, ≈)",
    "cohort-size": "ε at least, add-or-remove, cohort's size",
}
_CURVES = {
    "limit": "GDP limit (as in the paper, ≈)",
    "central": "certified, central noise",
    "client": "certified, noise at clients",
}
_STYLES = ("-", "--", "-.", (0, (1, 1)), (0, (5, 1)), (0, (3, 1, 1, 1)))
_KEYS = ["setting", "dataset", "sampling_rate", "rounds", "noise_multiplier"]


def read_epsilons(path: str) -> pd.DataFrame:
    """The tidy table of ε; notes are texts."""
    return pd.read_csv(path, keep_default_na=True, na_values=[""]).fillna({"note": ""})


def guarantees_table(epsilons: pd.DataFrame, names: Mapping[str, str]) -> pd.DataFrame:
    """Table P: one row a setting, data set, σ and place of the noise.

    A `*` marks an ε that the RDP bound gives because the accountant failed.

    Args:
        epsilons: As `read_epsilons` gives it.
        names: Data set of our runs -> how it is called.
    """
    rows = []
    for (setting, dataset, rate, rounds, sigma), own in epsilons.groupby(_KEYS, sort=False):
        first = own.iloc[0]
        for noise, part in own.groupby("noise", sort=False):
            at = part.set_index("accountant")
            one = at.iloc[0]
            row = {
                "Setting": _SETTINGS[str(setting)],
                "Data": _data(str(setting), str(dataset), names),
                "q": f"{rate:.4g}",
                "T": str(rounds),
                "σ": f"{sigma:g}",
                "ε claimed": _number(first["claimed_epsilon"]),
                "σ by the formula": _number(first["formula_noise_multiplier"]),
                "ε of one release (exact)": shown_epsilon(first["release_epsilon"]),
                "Noise": "central" if noise == "central" else "at each client",
            }
            row |= {title: _epsilon(at, name) for name, title in _COLUMNS.items()}
            rows.append(row | {"Unit": one["unit"], "Relation": one["relation"], "Adversary": one["adversary"]})
    return pd.DataFrame(rows)


def plot_tradeoff(curves: pd.DataFrame, names: Mapping[str, str]) -> Figure:
    """Figure 3: type II against type I error, a row for each setting and data set, a column for each kind of curve.

    Args:
        curves: The tidy table of trade-off curves.
        names: Data set of our runs -> how it is called.
    """
    rows = list(curves.groupby(["setting", "dataset", "sampling_rate", "rounds"], sort=False))
    sigmas = sorted(curves["noise_multiplier"].unique())
    colours = palette([f"{sigma:g}" for sigma in sigmas])
    figure, grid = plt.subplots(
        len(rows), len(_CURVES), sharex=True, sharey=True, squeeze=False, layout="constrained",
        figsize=(9, 2.75 * len(rows) + 0.7),
    )  # fmt: skip
    for line, ((setting, dataset, rate, rounds), own) in zip(grid, rows, strict=True):
        for axes, (curve, title) in zip(line, _CURVES.items(), strict=True):
            axes.plot([0, 1], [1, 0], color="black", lw=1, ls=":", label="perfect indistinguishability")
            for i, sigma in enumerate(sigmas):
                part = own[(own["curve"] == curve) & (own["noise_multiplier"] == sigma)]
                if len(part):
                    look = {"color": colours[f"{sigma:g}"], "ls": _STYLES[i % len(_STYLES)], "lw": 1.7}
                    axes.plot(part["type_1"], part["type_2"], label=f"σ = {sigma:g}", clip_on=False, **look)
            axes.set(title=title, xlim=(0, 1), ylim=(0, 1), aspect="equal")
            axes.title.set_size(9)
        name = _data(str(setting), str(dataset), names)
        line[0].set_ylabel(f"{name}\n({_SETTINGS[str(setting)]}: q = {rate:.3g}, T = {rounds})\ntype II error")
    for axes in grid[-1]:
        axes.set_xlabel("type I error")
    handles = {label: h for axes in grid.flat for h, label in zip(*axes.get_legend_handles_labels(), strict=True)}
    figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=5)
    return figure


def _data(setting: str, dataset: str, names: Mapping[str, str]) -> str:
    return (REAL if setting == "paper" else names).get(dataset, dataset)


def _epsilon(at: pd.DataFrame, accountant: str) -> str:
    if accountant not in at.index:
        return _NONE
    answer = at.loc[accountant].to_dict()
    return shown_epsilon(float(answer["epsilon"])) + ("*" if "stands in" in str(answer["note"]) else "")


def _number(value: float) -> str:
    return _NONE if pd.isna(value) else f"{value:.3g}"
