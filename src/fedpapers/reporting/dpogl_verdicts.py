"""Verdicts on what DP-OGL's paper states, from our runs and our study of leakage."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
import pandas as pd

from fedpapers.reporting.leakage_of_runs import of_one_noise
from fedpapers.reporting.verdicts import Outcome, Verdict, holds, holds_in

_BEST = "percolation"
_PROVEN = ("naive", "delay", "cut", _BEST)


def verdicts_of_runs(runs: pd.DataFrame) -> Iterator[Verdict]:
    """Verdicts on claims about accuracy.

    Args:
        runs: As `leakage_of_runs.read_leaking_runs` gives it.
    """
    yield _overlapping_beats_disjoint(runs)
    yield _beats_one_group_at_equal_leakage(runs)
    yield _longer_intervals(runs)
    yield _plus_keeps_accuracy(runs)


def verdicts_of_study(pairs: pd.DataFrame, over_time: pd.DataFrame, interval: int) -> Iterator[Verdict]:
    """Verdicts on claims about leakage.

    Args:
        pairs: The study's table of pairs.
        over_time: The study's table over time, with the exact reference.
        interval: S at which algorithms are compared.
    """
    yield _falls_with_distance(pairs)
    yield _plus_leaks_less(pairs, interval)
    yield _exact_below_bounds(over_time)


def verdict_of_audit(audit: pd.DataFrame) -> Verdict:
    """The verdict on the bounds, from below."""
    wide = audit.pivot_table(index=["algorithm", "distance"], columns="bound", values="epsilon", dropna=False)
    bad = sum(int((wide["audit"] > wide[bound]).sum()) for bound in _PROVEN)
    claimed = wide["paper"].dropna() if "paper" in wide else pd.Series(dtype=float)
    above = wide.loc[claimed.index, "audit"] > claimed
    evidence = f"audit above a proven bound in {bad} of {len(wide) * len(_PROVEN)} comparisons"
    if len(claimed):
        evidence += f"; above DP-OGL+'s claimed ε at {int(above.sum())} of {len(claimed)} distances"
    return Verdict("The bounds hold against an attack that does its worst.", holds(bad == 0), evidence)


def _overlapping_beats_disjoint(runs: pd.DataFrame) -> Verdict:
    claim = "Overlapping groups reach a higher accuracy than disjoint ones at equal noise."
    plain = runs[runs["algorithm"].isin(["ogl", "dp-ogl"]) & (runs["interval"] == 1) & (runs["mixing"] == "update")]
    sigma = plain.get("noise_multiplier", pd.Series(np.nan, index=plain.index)).fillna(0)
    table = plain.assign(sigma=sigma).pivot_table(index="sigma", columns="groups", values="accuracy")
    table = table.reindex(columns=["overlapping groups", "disjoint groups"]).dropna()
    gain = 100 * (table["overlapping groups"] - table["disjoint groups"])
    by_noise = ", ".join(f"{value:+.1f} at σ = {at:g}" for at, value in gain.items())
    evidence = f"points of mean accuracy: {by_noise or 'no runs to compare'}"
    return Verdict(claim, holds_in(int((gain > 0).sum()), len(gain)), evidence)


def _beats_one_group_at_equal_leakage(runs: pd.DataFrame) -> Verdict:
    """DP-OGL's points against DPFedAvg's curve, interpolated in log ε, where the curve reaches."""
    claim = "At equal ε out of group, overlapping groups reach a higher accuracy than one group of all."
    ours = runs[(runs["algorithm"] == "dp-ogl") & (runs["groups"] == "overlapping groups") & (runs["interval"] == 1)]
    ours = ours[(ours["mixing"] == "update") & np.isfinite(ours["out_of_group_max"]) & (ours["out_of_group_max"] > 0)]
    one = runs[(runs["algorithm"] == "dpfedavg") & np.isfinite(runs["out_of_group_max"])]
    columns = ["out_of_group_max", "accuracy"]
    points = ours.groupby("noise_multiplier")[columns].mean()
    curve = one.groupby("noise_multiplier")[columns].mean().sort_values("out_of_group_max")
    if points.empty or curve.empty:
        return Verdict(claim, "not decided", "no runs to compare")
    reach = curve["out_of_group_max"]
    points = points[points["out_of_group_max"].between(reach.min(), reach.max())]
    log = np.log(points["out_of_group_max"])
    gain = 100 * (points["accuracy"] - np.interp(log, np.log(reach), curve["accuracy"]))
    shown = ", ".join(f"{g:+.1f} at ε = {e:.3g}" for g, e in zip(gain, points["out_of_group_max"], strict=True))
    evidence = f"points of mean accuracy: {shown or 'no ε in common'} (one group interpolated in log ε)"
    return Verdict(claim, holds_in(int((gain > 0).sum()), len(gain)), evidence)


def _longer_intervals(runs: pd.DataFrame) -> Verdict:
    claim = "A larger S leaks less out of group and costs accuracy."
    own = of_one_noise(runs)
    own = own[(own["algorithm"] == "dp-ogl") & (own["mixing"] == "update")]
    by = own.groupby("interval")[["out_of_group_max", "accuracy"]].mean()
    if len(by) < 2:
        return Verdict(claim, "not decided", "one S only")
    less = bool(by["out_of_group_max"].is_monotonic_decreasing)
    worse = bool(by["accuracy"].is_monotonic_decreasing)
    shown = "; ".join(f"S = {s}: ε {row.iloc[0]:.3g}, {100 * row.iloc[1]:.1f} %" for s, row in by.iterrows())
    outcome: Outcome = holds_in(less + worse, 2)
    return Verdict(claim, outcome, f"DP-OGL at σ = {own['noise_multiplier'].iloc[0]:g}: {shown}")


def _plus_keeps_accuracy(runs: pd.DataFrame) -> Verdict:
    claim = "DP-OGL+, which clips once an interval, keeps or raises the accuracy of DP-OGL."
    own = runs[runs["algorithm"].isin(["dp-ogl", "dp-ogl-plus"]) & (runs["groups"] == "overlapping groups")]
    own = own[own["mixing"] == "update"]
    table = own.pivot_table(index=["interval", "noise_multiplier"], columns="algorithm", values="accuracy")
    table = table.reindex(columns=["dp-ogl", "dp-ogl-plus"]).dropna()
    gain = 100 * (table["dp-ogl-plus"] - table["dp-ogl"])
    spread = own.groupby(["algorithm", "interval", "noise_multiplier"])["accuracy"].std(ddof=1).max()
    margin = 0.0 if np.isnan(spread) else 100 * spread
    cells = gain.rename("gain").reset_index().itertuples(index=False)
    shown = ", ".join(f"{gain:+.1f} at S = {s:g}, σ = {sigma:g}" for s, sigma, gain in cells)
    evidence = f"points of mean accuracy: {shown or 'no common S and σ'}; largest sd over seeds {margin:.1f}"
    return Verdict(claim, holds_in(int((gain >= -margin).sum()), len(gain)), evidence)


def _falls_with_distance(pairs: pd.DataFrame) -> Verdict:
    claim = "Leakage falls with distance and is zero beyond ⌈T/S⌉ − 1 hops."
    own = pairs[(pairs["algorithm"] == "dp-ogl") & (pairs["bound"] == _BEST)].astype({"distance": float})
    far = own[own["distance"] > np.ceil(own["T"] / own["S"]) - 1]
    leaking = int((far["epsilon"] > 0).sum())
    largest = own.groupby(["structure", "S", "from", "distance"])["epsilon"].max()
    steps = largest.groupby(["structure", "S", "from"]).diff().dropna()
    rises = int((steps > 1e-9).sum())
    evidence = (
        f"{rises} of {len(steps)} steps to the next distance rise (largest proven ε of each source);"
        f" {leaking} of {len(far)} pairs beyond the last hop leak"
    )
    outcome: Outcome = "holds" if rises == leaking == 0 else holds_in(2 - (rises > 0) - (leaking > 0), 2)
    return Verdict(claim, outcome, evidence)


def _plus_leaks_less(pairs: pd.DataFrame, interval: int) -> Verdict:
    claim = "DP-OGL+ leaks less out of group than DP-OGL."
    out = pairs[(pairs["S"] == interval) & (pairs["distance"].astype(float) > 0)]
    keys = ["structure", "from", "to"]
    of_ogl = out[(out["algorithm"] == "dp-ogl") & (out["bound"] == _BEST)].set_index(keys)["epsilon"]
    of_plus = {
        bound: out[(out["algorithm"] == "dp-ogl-plus") & (out["bound"] == bound)].set_index(keys)["epsilon"]
        for bound in (_BEST, "paper")
    }
    leaking = of_ogl.index[of_ogl > 0]
    less = {bound: int((epsilon[leaking] < of_ogl[leaking]).sum()) for bound, epsilon in of_plus.items()}
    evidence = (
        f"of {len(leaking)} pairs that leak at S = {interval}, DP-OGL+ has the smaller ε in {less['paper']} by the"
        f" claimed form, which is unproven, and in {less[_BEST]} by the proven bound (DP-OGL always by its proven one)"
    )
    return Verdict(claim, holds_in(less[_BEST], len(leaking)), evidence)


def _exact_below_bounds(over_time: pd.DataFrame) -> Verdict:
    own = over_time[over_time["sampling_rate"] == 1]
    wide = own.pivot_table(index=["T", "distance"], columns="bound", values="epsilon")
    chain = ["exact", *_PROVEN[::-1]]
    bad = sum(int((wide[low] > wide[high] + 1e-9).sum()) for low, high in itertools.pairwise(chain))
    evidence = f"exact ≤ percolation ≤ cut ≤ delay ≤ naive fails in {bad} of {len(wide) * (len(chain) - 1)} comparisons"
    return Verdict("The bounds hold against the exact leakage of a linear run.", holds(bad == 0), evidence)
