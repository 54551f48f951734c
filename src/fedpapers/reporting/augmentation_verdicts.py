"""Verdicts on what MultFAug claims about learning."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd

from fedpapers.reporting.augmentation import DEADLINES, at_first_compression
from fedpapers.reporting.published import LEAST_LATENCY
from fedpapers.reporting.verdicts import SURE, Gap, Outcome, Verdict, holds, holds_in, throughout, together

_LARGE = 0.1  # a large margin, in accuracy
_RECOGNISABLE = 0.75  # as often as a real digit is a generated one taken for its label
_LEVEL = 0.02  # accuracies that differ by less are equal


def augmentation_verdicts(cells: pd.DataFrame, quality: pd.DataFrame) -> Iterator[Verdict]:
    """The verdicts in the order of the paper's figures.

    Args:
        cells: `cells.csv`.
        quality: `quality.csv`.
    """
    over_hops = at_first_compression(cells)
    yield _recognisable(quality)
    yield _degraded(quality)
    yield _monotone(quality, "f1", -1, "The generator's F1 falls as ρ grows")
    yield _monotone(quality, "common_map_privacy", 1, "Sample privacy rises with ρ")
    yield _tighter(quality, "f1", "lower", "A tighter deadline lowers the generator's F1")
    yield _tighter(quality, "own_map_privacy", "higher", "A tighter deadline raises sample privacy (own map)")
    yield _tighter(quality, "common_map_privacy", "higher", "A tighter deadline raises sample privacy (common map)")
    yield _target_gain(over_hops)
    yield _overall_gain(over_hops)
    yield _peak(over_hops)
    yield _level(over_hops)
    yield _many_seeds(over_hops)


def _recognisable(quality: pd.DataFrame) -> Verdict:
    low = quality[(quality["compression"] <= 0.04) & (quality["deadline"] == "loose")]
    shares = low.groupby("compression")["recognised"].mean()
    wanted = _RECOGNISABLE * quality["recognised_of_real"].mean()  # the judge errs on real digits too
    return Verdict(
        "At ρ = 0 and 0.04 the generator yields recognisable digits",
        holds_in(int((shares >= wanted).sum()), len(shares)),
        f"share that a network trained on real digits takes for their label, loose deadline: {_listed(shares)}; real"
        f" ones: {_mean(quality['recognised_of_real'])}; rule: at least {_RECOGNISABLE:.0%} as often as real ones",
    )


def _degraded(quality: pd.DataFrame) -> Verdict:
    shares = quality[quality["deadline"] == "loose"].groupby("compression")["recognised"].mean()
    high, low = shares[shares.index >= 0.15], shares[shares.index <= 0.04]
    if high.empty or low.empty:
        return Verdict("At ρ = 0.15 it fails for some digits", "not decided", "ρ = 0.15 or a small ρ is not studied")
    return Verdict(
        "At ρ = 0.15 it fails for some digits",
        holds(bool(high.iloc[0] < low.min() - _LEVEL)),
        f"share recognised, loose deadline: {_listed(shares)}; rule: at 0.15 more than {_LEVEL:.0%} below ρ ≤ 0.04",
    )


def _monotone(quality: pd.DataFrame, measure: str, sign: int, claim: str) -> Verdict:
    good = cases = 0
    evidence = []
    for deadline in DEADLINES:
        means = quality[quality["deadline"] == deadline].groupby("compression")[measure].mean()
        steps = sign * np.diff(means)
        good, cases = good + int((steps > 0).sum()), cases + len(steps)
        evidence.append(f"{deadline}: {_listed(means, 3)}")
    return Verdict(
        claim, holds_in(good, cases), f"{'; '.join(evidence)}; {good} of {cases} steps; {_repetitions(quality)}"
    )


def _tighter(quality: pd.DataFrame, measure: str, wanted: str, claim: str) -> Verdict:
    both = quality.pivot_table(index=["compression", "seed"], columns="deadline", values=measure)
    if set(both.columns) != set(DEADLINES) or both.dropna().empty:
        return Verdict(claim, "not decided", "not both deadlines are judged")
    both = both.dropna()
    rates = (both["tight"] - both["loose"]).groupby("compression")
    sign = -1 if wanted == "lower" else 1
    outcome = together(Gap.of(sign * difference, 0 * difference).outcome() for _, difference in rates)
    evidence = f"tight minus loose by ρ: {_listed(rates.mean(), 3)}; {_repetitions(both)}"
    return Verdict(claim, outcome, f"{evidence}; rule: beyond {SURE} standard errors, so of at least two repetitions")


def _target_gain(cells: pd.DataFrame) -> Verdict:
    gain = cells["target_accuracy_augmented"] - cells["target_accuracy_alone"]
    by_number = gain.groupby(cells["devices"]).mean()
    good = int((by_number > _LARGE).sum())
    covered = gain[cells["target_seeds"] > 0]
    return Verdict(
        "Augmentation raises the reference device's accuracy on its target label by a large margin",
        holds_in(good, len(by_number)),
        f"gain by N, mean over M and both deadlines: {_listed(by_number)}; it rises in"
        f" {int((covered > 0).sum())} of {len(covered)} cells whose target label arrived; rule: more than {_LARGE:.0%}",
    )


def _overall_gain(cells: pd.DataFrame) -> Verdict:
    gain = (cells["accuracy_augmented"] - cells["accuracy_alone"]).groupby(cells["devices"]).mean()
    return Verdict(
        "Augmentation raises the reference device's accuracy over all labels",
        holds_in(int((gain > 0).sum()), len(gain)),
        f"gain by N: {_listed(gain)}",
    )


def _peak(cells: pd.DataFrame) -> Verdict:
    claim = "Under the tight deadline accuracy is largest at 2 (N = 10) and 3 (N = 25) hops"
    tight = cells[cells["deadline"] == "tight"]
    outcomes, evidence = [], []
    for devices, peak in LEAST_LATENCY.items():
        of_number = tight[tight["devices"] == devices]
        by_seed = of_number.pivot_table(index="seed", columns="hops", values="accuracy_augmented")
        if peak not in by_seed.columns or len(by_seed.columns) < 2:
            continue
        means = by_seed.mean()
        evidence.append(f"N = {devices}: {_listed(means)}")
        outcomes.append(_is_peak(by_seed, peak))
    if not outcomes:
        return Verdict(claim, "not decided", "the numbers of hops are not studied")
    rule = f"rule: ahead of each other M by more than {SURE} standard errors of the paired difference"
    return Verdict(claim, together(outcomes), f"{'; '.join(evidence)}; {_repetitions(tight)}; {rule}")


def _is_peak(by_seed: pd.DataFrame, peak: int) -> Outcome:
    return throughout(Gap.of(by_seed[peak], by_seed[other]).outcome() for other in by_seed if other != peak)


def _level(cells: pd.DataFrame) -> Verdict:
    loose = cells[cells["deadline"] == "loose"]
    means = loose.groupby(["devices", "hops"])["accuracy_augmented"].mean().unstack("hops")
    spread = means.max(axis=1) - means.min(axis=1)
    # A single reference device differs from M to M for other reasons than M.
    several = _count(loose) > 1
    return Verdict(
        "With a loose deadline accuracy is high whatever the number of hops",
        holds_in(int((spread <= _LEVEL).sum()), len(spread)) if several else "not decided",
        f"largest minus smallest over M by N: {_listed(spread)}; {_repetitions(loose)}; the rule wants at least"
        f" two, as the reference device may be another one at another M; rule: at most {_LEVEL:.0%}",
    )


def _many_seeds(cells: pd.DataFrame) -> Verdict:
    loose = cells[cells["deadline"] == "loose"]
    seeds = loose.groupby(["devices", "hops"])["seeds"].mean().unstack("hops")
    labels = loose.groupby("devices")["labels"].mean()
    falls = seeds.iloc[:, -1] < seeds.iloc[:, 0]
    listed = "; ".join(f"N = {devices}: {_listed(row, 0, 1)}" for devices, row in seeds.iterrows())
    return Verdict(
        "With a loose deadline the server has as many seeds whatever the number of hops",
        holds_in(int((~falls).sum()), len(falls)),
        f"seeds by M, {listed}; labels by N: {_listed(labels, 1, 1)}: a route keeps at most b of a label",
    )


def _repetitions(rows: pd.DataFrame) -> str:
    count = _count(rows)
    return "one repetition" if count == 1 else f"{count} repetitions"


def _count(rows: pd.DataFrame) -> int:
    values = rows["seed"] if "seed" in rows else rows.index.get_level_values("seed")
    return int(values.nunique())


def _mean(values: pd.Series[float]) -> str:
    return "not available" if values.empty else f"{values.mean():.2f}"


def _listed(values: pd.Series[float], digits: int = 2, scale: float = 1) -> str:
    return ", ".join(f"{value * scale:.{digits}f} ({key:g})" for key, value in values.items()) or "not available"
