"""The claims of DPFedMTL (arXiv 2011.07179), each decided from our own numbers by a rule that stands beside them.

Differences of accuracy are paired by seed and given in points, mean ± standard error. A comparison counts only if its
mean difference is more than two standard errors away from what it is compared with, so at least two seeds are needed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import pandas as pd

from fedpapers.reporting.dpfedmtl import METHODS, TWINS, Results
from fedpapers.reporting.published import HEADLINE, REAL, of_paper
from fedpapers.reporting.verdicts import Gap, Verdict, holds, together

_MARGIN = 5.0  # points: "by a large margin"
_LARGE = 0.65  # σ from which that is asked
_STEEP = 10.0  # points: "falls steeply"
_LITTLE = 0.5  # share of the other's fall: "falls little"
_REACHED = 0.95  # share of the slower method's last accuracy that counts as converged
_WELL = 0.5  # ε at δ = 1e-5: "protects well" is the strongest level that the paper sets out from
_ABSENT = "no runs"


def claims(results: Results, history: pd.DataFrame, epsilons: pd.DataFrame) -> list[Verdict]:
    """A verdict on each qualitative claim of the paper.

    Args:
        results: All runs.
        history: One row an evaluation of a run.
        epsilons: The tidy table of ε.
    """
    return [
        _multi_task_is_best(results),
        _multi_task_gains_most_on_femnist(results),
        _noise_costs_accuracy(results),
        _margin_between_private_methods(results),
        _fall_between_large_noises(results),
        _fall_over_all_noises(results),
        *_converge_faster(results, history),
        *_protects(epsilons),
    ]


def _multi_task_is_best(results: Results) -> Verdict:
    gaps = {
        f"{results.shown(dataset).name}, FedMTL − {METHODS[other]}": Gap.of(
            results.accuracy(dataset, "fedmtl"), results.accuracy(dataset, other)
        )
        for dataset in results.datasets
        for other in ("local", "fedavg")
    }
    rule = "Rule: every difference is above 0."
    return _verdict("Without noise, FedMTL is more accurate than Local and than FedAvg.", gaps, 0, rule)


def _multi_task_gains_most_on_femnist(results: Results) -> Verdict:
    gains = {dataset: _gain(results, dataset) for dataset in results.datasets}
    of_key = {of_paper(results.shown(dataset).name): gain for dataset, gain in reversed(gains.items())}  # the first
    difference = _difference(of_key.get("femnist"), of_key.get("celeba"))
    evidence = [f"{results.shown(dataset).name}: {gain}" for dataset, gain in gains.items()]
    rule = "Gain: FedMTL less the better of Local and FedAvg. Rule: the gain on FEMNIST less that on CelebA is above 0"
    return Verdict(
        "FedMTL gains most on FEMNIST.",
        difference.outcome() if difference else "not decided",
        f"{_joined(evidence)}. {rule}{f'; it is {difference}' if difference else ''}.",
    )


def _noise_costs_accuracy(results: Results) -> Verdict:
    gaps = {
        f"{results.shown(dataset).name}, {METHODS[private]}, σ = {sigma:g}": Gap.of(
            results.accuracy(dataset, twin), results.accuracy(dataset, private, sigma)
        )
        for dataset in results.datasets
        for private, twin in TWINS.items()
        for sigma in results.sigmas(dataset)
    }
    rule = "Points lost against the same method without noise. Rule: every one is above 0."
    return _verdict("Every private method loses accuracy.", gaps, 0, rule)


def _margin_between_private_methods(results: Results) -> Verdict:
    gaps = {
        f"{results.shown(dataset).name}, σ = {sigma:g}": Gap.of(
            results.accuracy(dataset, "dpfedmtl", sigma), results.accuracy(dataset, "dpfedavg", sigma)
        )
        for dataset in results.datasets
        for sigma in results.sigmas(dataset)
        if sigma >= _LARGE
    }
    rule = f"DPFedMTL less DPFedAvg. Rule: at least {_MARGIN:g} points at every σ ≥ {_LARGE:g}."
    return _verdict("DPFedMTL is more accurate than DPFedAvg by a large margin.", gaps, _MARGIN, rule)


def _fall_between_large_noises(results: Results) -> Verdict:
    cases: list[bool | None] = []
    evidence = []
    for dataset in results.datasets:
        average, multi_task = (_fall(results, dataset, name, 0.65, 9.69) for name in ("dpfedavg", "dpfedmtl"))
        little = _falls_less(results, dataset, 0.65, 9.69, _LITTLE)
        cases += [average.exceeds(_STEEP), little]
        evidence.append(f"{results.shown(dataset).name}: DPFedAvg {average}, DPFedMTL {multi_task}")
    rule = f"Rule: DPFedAvg falls by more than {_STEEP:g} points, DPFedMTL by less than {_LITTLE:g} of that."
    claim = "From σ = 0.65 to 9.69 DPFedAvg falls steeply, DPFedMTL falls little."
    return Verdict(claim, together(map(holds, cases)), f"Points lost, {_joined(evidence)}. {rule}")


def _fall_over_all_noises(results: Results) -> Verdict:
    evidence = [
        f"{results.shown(dataset).name}: DPFedAvg {_fall(results, dataset, 'dpfedavg', 0.11, 9.69)},"
        f" DPFedMTL {_fall(results, dataset, 'dpfedmtl', 0.11, 9.69)}"
        for dataset in results.datasets
    ]
    cases = [_falls_less(results, dataset, 0.11, 9.69, 1.0) for dataset in results.datasets]
    rule = "Rule: DPFedMTL loses fewer points."
    claim = "From σ = 0.11 to 9.69 DPFedMTL falls less than DPFedAvg."
    return Verdict(claim, together(map(holds, cases)), f"Points lost, {_joined(evidence)}. {rule}")


def _converge_faster(results: Results, history: pd.DataFrame) -> Iterator[Verdict]:
    for fast, slow in (("fedmtl", "fedavg"), ("dpfedmtl", "dpfedavg")):
        cases: list[bool | None] = []
        evidence = []
        for dataset in results.datasets:
            reached = _reached(results, history, dataset, fast, slow)
            cases.append(_sooner(reached))
            rounds = [
                f"{METHODS[name]} {', '.join(map(_shown_round, reached[name])) or _ABSENT}" for name in (fast, slow)
            ]
            evidence.append(f"{results.shown(dataset).name}: {' and '.join(rounds)}")
        rule = (
            f"By seed, the first evaluated round at which {_REACHED:.0%} of {METHODS[slow]}'s last accuracy is reached."
            f" Rule: {METHODS[fast]} gets there in fewer rounds with every seed; where {METHODS[slow]} is there at its"
            " start, it has not learned and nothing is decided."
        )
        claim = f"{METHODS[fast]} converges faster than {METHODS[slow]}."
        yield Verdict(claim, together(map(holds, cases)), f"{_joined(evidence)}. {rule}")


def _reached(results: Results, history: pd.DataFrame, dataset: str, fast: str, slow: str) -> pd.DataFrame:
    """For each seed that both methods have the first round at which each reaches the slow one's level.

    Columns: the two algorithms; infinite where it is never reached, not a number where the slow one starts there.
    """
    curves = {name: _curves(results, history, dataset, name) for name in (fast, slow)}
    rows = {}
    for seed in curves[slow].columns.intersection(curves[fast].columns):
        own = {name: curve[seed].dropna() for name, curve in curves.items()}
        level = _REACHED * own[slow].iloc[-1]
        learned = own[slow].iloc[0] < level
        rows[seed] = {name: _first_round(curve, level) if learned else math.nan for name, curve in own.items()}
    return pd.DataFrame.from_dict(rows, orient="index", columns=[fast, slow])


def _sooner(reached: pd.DataFrame) -> bool | None:
    """Whether the first column's rounds are fewer with every seed; None where seeds disagree or there are too few."""
    if len(reached) < 2 or reached.isna().any(axis=None):
        return None
    if (reached.iloc[:, 0] == reached.iloc[:, 1]).any():  # at the same evaluation: these are too far apart to tell
        return None
    sooner = reached.iloc[:, 0] < reached.iloc[:, 1]
    return bool(sooner.iloc[0]) if sooner.nunique() == 1 else None


def _protects(epsilons: pd.DataFrame) -> Iterator[Verdict]:
    """Two verdicts, as the answer depends on the place of the noise; the limit's numbers stand beside both."""
    paper = epsilons[epsilons["setting"] == "paper"].set_index(["dataset", "noise_multiplier", "noise", "accountant"])
    delta = epsilons["delta"].iloc[0]

    def at(noise: str, accountant: str) -> dict[tuple[str, float], float]:
        wanted = [("celeba", HEADLINE["celeba"]), ("femnist", 2.42), ("femnist", HEADLINE["femnist"])]
        values = paper["epsilon"].to_dict()
        found = {key: values.get((*key, noise, accountant), math.nan) for key in wanted}
        return {key: float(value) for key, value in found.items()}

    limit = _shown_epsilons(at("central", "gdp"))
    for noise, accountant, where in (("central", "pld", "central noise"), ("client", "exact", "noise at each client")):
        values = at(noise, accountant)
        enough, too_little, needed = values.values()
        cases = [
            None if math.isnan(enough) else enough <= _WELL,
            None if math.isnan(too_little + needed) else too_little > _WELL >= needed,
        ]
        yield Verdict(
            f"After the whole training σ = 0.65 protects CelebA well, and FEMNIST needs 9.69 ({where}).",
            together(map(holds, cases)),
            f"Certified ε at δ = {delta:g} in the paper's settings: {_shown_epsilons(values)}; by the limit that the"
            f" paper uses, an approximation: {limit}. Rule: 'well' is ε ≤ {_WELL:g}; FEMNIST needs 9.69 if that holds"
            " there and not at 2.42.",
        )


def _verdict(claim: str, gaps: dict[str, Gap], least: float, rule: str) -> Verdict:
    cases = [gap.exceeds(least) for gap in gaps.values()]
    tally = f"{cases.count(True)} of {len(cases)} hold, {cases.count(False)} do not, {cases.count(None)} are not sure"
    evidence = _joined([f"{name}: {gap}" for name, gap in gaps.items()])
    return Verdict(claim, together(map(holds, cases)), f"{evidence}. {rule} {tally}.")


def _gain(results: Results, dataset: str) -> Gap:
    others = [results.accuracy(dataset, name) for name in ("local", "fedavg")]
    if any(other.empty for other in others):
        return Gap(math.nan, math.nan, 0)
    best = max(others, key=lambda accuracy: float(accuracy.mean()))
    return Gap.of(results.accuracy(dataset, "fedmtl"), best)


def _difference(one: Gap | None, other: Gap | None) -> Gap | None:
    """Of two gaps on different data, which share no seed's draws."""
    if one is None or other is None or not min(one.seeds, other.seeds):
        return None
    return Gap(one.points - other.points, math.hypot(one.error, other.error), min(one.seeds, other.seeds))


def _fall(results: Results, dataset: str, algorithm: str, low: float, high: float) -> Gap:
    return Gap.of(results.accuracy(dataset, algorithm, low), results.accuracy(dataset, algorithm, high))


def _falls_less(results: Results, dataset: str, low: float, high: float, share: float) -> bool | None:
    """Whether DPFedMTL falls by less than a share of DPFedAvg's fall, by the difference of both, paired by seed."""
    of = {
        (name, sigma): results.accuracy(dataset, name, sigma)
        for name in ("dpfedavg", "dpfedmtl")
        for sigma in (low, high)
    }
    average = of["dpfedavg", low] - of["dpfedavg", high]
    return Gap.of(share * average, of["dpfedmtl", low] - of["dpfedmtl", high]).exceeds(0)


def _curves(results: Results, history: pd.DataFrame, dataset: str, algorithm: str) -> pd.DataFrame:
    """Accuracy by round and seed, of the first variant."""
    sigma = results.headline(dataset) if algorithm in TWINS else None
    seeds = results.of(dataset, algorithm, sigma).drop_duplicates("seed").set_index("run")["seed"]
    own = history[history["run"].isin(seeds.index)]
    return own.assign(seed=own["run"].map(seeds)).pivot_table(index="round", columns="seed", values="accuracy")


def _first_round(curve: pd.Series[float], level: float) -> float:
    there = curve.index[curve >= level]
    return float(there[0]) if len(there) else math.inf


def _shown_round(at: float) -> str:
    return "at the start" if math.isnan(at) else "never" if math.isinf(at) else f"{at:g}"


def _shown_epsilons(values: dict[tuple[str, float], float]) -> str:
    return ", ".join(f"{REAL[dataset]} σ = {sigma:g}: {value:.3g}" for (dataset, sigma), value in values.items())


def _joined(evidence: Sequence[str]) -> str:
    return "; ".join(evidence) or _ABSENT
