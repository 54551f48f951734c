"""Verdicts on what DP-OGL's paper states, from our runs and our study of leakage."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd

from fedpapers.reporting.leakage_of_runs import of_first_structure, of_one_noise
from fedpapers.reporting.verdicts import Gap, Verdict, holds, holds_in, together

_BEST = "percolation"
_PROVEN = ("naive", "delay", "cut", _BEST)


def verdicts_of_runs(runs: pd.DataFrame) -> Iterator[Verdict]:
    """Verdicts on claims about accuracy, in the structure of the first run.

    Differences of accuracy are paired by seed and given in points, mean ± standard error; they count beyond two
    standard errors.

    Args:
        runs: As `leakage_of_runs.read_leaking_runs` gives it.
    """
    own = of_first_structure(runs)
    own = own.assign(sigma=own["noise_multiplier"].fillna(0) if "noise_multiplier" in own else 0.0)
    yield _overlapping_beats_disjoint(own)
    yield _beats_one_group_at_equal_leakage(own)
    yield _longer_intervals(own)
    yield _plus_keeps_accuracy(own)


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
    return Verdict(
        "The bounds hold against an attack that does its worst.", holds(None if wide.empty else bad == 0), evidence
    )


def _overlapping_beats_disjoint(runs: pd.DataFrame) -> Verdict:
    plain = runs[runs["algorithm"].isin(["ogl", "dp-ogl"]) & (runs["interval"] == 1) & (runs["mixing"] == "update")]
    by_groups = _accuracies(plain, "groups", ["sigma"])
    gaps = {
        f"at σ = {sigma:g}": Gap.of(own["overlapping groups"], own["disjoint groups"])
        for sigma, own in by_groups
        if {"overlapping groups", "disjoint groups"} <= set(own)
    }
    return _verdict("Overlapping groups reach a higher accuracy than disjoint ones at equal noise.", gaps)


def _beats_one_group_at_equal_leakage(runs: pd.DataFrame) -> Verdict:
    """DP-OGL's points against DPFedAvg's curve, interpolated in log ε seed by seed, where the curve reaches."""
    ours = runs[(runs["algorithm"] == "dp-ogl") & (runs["groups"] == "overlapping groups") & (runs["interval"] == 1)]
    ours = ours[(ours["mixing"] == "update") & (ours["out_of_group_max"] > 0)]
    one = runs[(runs["algorithm"] == "dpfedavg") & np.isfinite(runs["out_of_group_max"])]
    curve = one.pivot_table(index="out_of_group_max", columns="seed", values="accuracy").dropna(axis="columns")
    gaps = {}
    for key, own in ours.groupby("out_of_group_max"):
        epsilon = float(str(key))
        if len(curve) and curve.index.min() <= epsilon <= curve.index.max():
            at = [np.interp(np.log(epsilon), np.log(curve.index), curve[seed]) for seed in curve]
            gaps[f"at ε = {epsilon:.3g}"] = Gap.of(_by_seed(own), pd.Series(at, index=curve.columns))
    claim = "At equal ε out of group, overlapping groups reach a higher accuracy than one group of all."
    return _verdict(claim, gaps, "one group interpolated in log ε")


def _longer_intervals(runs: pd.DataFrame) -> Verdict:
    claim = "A larger S leaks less out of group and costs accuracy."
    own = of_one_noise(runs)
    own = own[(own["algorithm"] == "dp-ogl") & (own["mixing"] == "update")]
    parts = {int(str(s)): part for s, part in own.groupby("interval")}
    if len(parts) < 2:
        return Verdict(claim, "not decided", "one S only")
    epsilon = {s: float(part["out_of_group_max"].max()) for s, part in parts.items()}
    less = all(epsilon[after] < epsilon[before] for before, after in itertools.pairwise(parts))
    gaps = {
        f"from S = {before} to {after}": Gap.of(_by_seed(parts[before]), _by_seed(parts[after]))
        for before, after in itertools.pairwise(parts)
    }
    leaks = ", ".join(f"{value:.3g} at S = {s}" for s, value in epsilon.items())
    costs = ", ".join(f"{gap} {case}" for case, gap in gaps.items())
    sigma = own["noise_multiplier"].iloc[0]
    outcome = together([holds(less), *(gap.outcome() for gap in gaps.values())])
    return Verdict(claim, outcome, f"DP-OGL at σ = {sigma:g}: ε {leaks}; points of accuracy lost: {costs}")


def _plus_keeps_accuracy(runs: pd.DataFrame) -> Verdict:
    claim = "DP-OGL+, which clips once an interval, keeps or raises the accuracy of DP-OGL."
    own = runs[runs["algorithm"].isin(["dp-ogl", "dp-ogl-plus"]) & (runs["groups"] == "overlapping groups")]
    gaps = {
        f"at S = {interval:g}, σ = {sigma:g}": Gap.of(both["dp-ogl-plus"], both["dp-ogl"])
        for (interval, sigma), both in _accuracies(own[own["mixing"] == "update"], "algorithm", ["interval", "sigma"])
        if {"dp-ogl", "dp-ogl-plus"} <= set(both)
    }
    return _verdict(claim, gaps)


def _accuracies(runs: pd.DataFrame, across: str, by: list[str]) -> Iterator[tuple[Any, dict[str, pd.Series[float]]]]:
    """For each value of `by`, the accuracies by seed of each kind of run."""
    for key, part in runs.groupby(by[0] if len(by) == 1 else by):
        yield key, {str(kind): _by_seed(own) for kind, own in part.groupby(across)}


def _by_seed(own: pd.DataFrame) -> pd.Series[float]:
    return own.set_index("seed")["accuracy"]


def _verdict(claim: str, gaps: Mapping[str, Gap], note: str = "") -> Verdict:
    """The verdict on a claim that differences of accuracy are above 0."""
    shown = ", ".join(f"{gap} {case}" for case, gap in gaps.items()) or "nothing to compare"
    outcome = together(gap.outcome() for gap in gaps.values()) if gaps else "not decided"
    return Verdict(claim, outcome, f"points of accuracy: {shown}{f' ({note})' if note else ''}")


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
    falls = holds(None if steps.empty else rises == 0)
    return Verdict(claim, together([falls, holds(None if far.empty else leaking == 0)]), evidence)


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
    return Verdict(
        "The bounds hold against the exact leakage of a linear run.", holds(None if wide.empty else bad == 0), evidence
    )
