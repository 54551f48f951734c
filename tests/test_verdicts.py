"""The rules by which verdicts are reached, for all papers the same."""

from __future__ import annotations

import itertools

import pandas as pd
import pytest

from fedpapers.reporting import augmentation_verdicts
from fedpapers.reporting.verdicts import Gap, holds, holds_in, throughout, together

SURE = ("holds", "does not hold")
CASES = [cases for count in range(4) for cases in itertools.product((*SURE, "not decided"), repeat=count)]


def completions(cases):
    """Every way in which the cases that are not decided may turn out."""
    return itertools.product(*(SURE if case == "not decided" else (case,) for case in cases))


def of_whole(cases):
    return "holds" if set(cases) == {"holds"} else "does not hold"


def of_several(cases):
    return "holds in part" if set(cases) == set(SURE) else cases[0]


@pytest.mark.parametrize(("rule", "when_sure"), [(together, of_several), (throughout, of_whole)])
@pytest.mark.parametrize("cases", CASES, ids=", ".join)
def test_an_outcome_is_what_is_true_however_the_undecided_turns_out(cases, rule, when_sure):
    possible = {when_sure(completed) for completed in completions(cases)} if cases else set()
    assert rule(cases) == (possible.pop() if len(possible) == 1 else "not decided")


@pytest.mark.parametrize(
    ("cases", "outcome"),
    [
        (["holds", "not decided"], "not decided"),
        (["does not hold", "not decided"], "not decided"),
        (["holds", "does not hold", "not decided"], "holds in part"),
        (["holds in part", "not decided"], "holds in part"),
        (["holds in part", "does not hold"], "holds in part"),
    ],
)
def test_several_cases(cases, outcome):
    assert together(cases) == together(reversed(cases)) == outcome


def test_counted_comparisons():
    assert [holds_in(good, 2) for good in (2, 1, 0)] == ["holds", "holds in part", "does not hold"]
    assert holds_in(0, 0) == "not decided"
    assert [holds(condition) for condition in (True, False, None)] == ["holds", "does not hold", "not decided"]


def test_a_difference_counts_beyond_two_standard_errors():
    assert Gap.of(pd.Series([0.5, 0.7]), pd.Series([0.5, 0.4])).outcome() == "not decided"
    assert Gap.of(pd.Series([0.5, 0.51]), pd.Series([0.4, 0.405])).outcome() == "holds"
    assert Gap.of(pd.Series([0.5, 0.51]), pd.Series([0.4, 0.405])).outcome(20) == "does not hold"
    assert Gap.of(pd.Series([0.5]), pd.Series([0.4])).outcome() == "not decided"  # one seed
    assert Gap.of(pd.Series({0: 0.5, 1: 0.6}), pd.Series({2: 0.4})).seeds == 0


@pytest.mark.parametrize(
    ("tight", "outcome"),
    [
        ([0.4], "not decided"),  # one repetition
        ([0.4, 0.42], "holds"),
        ([0.6, 0.62], "does not hold"),
        ([0.3, 0.65], "not decided"),
    ],
)
def test_of_two_deadlines_only_differences_beyond_the_noise_count(tight, outcome):
    rows = [("tight", f1, seed) for seed, f1 in enumerate(tight)] + [("loose", 0.5, seed) for seed in range(len(tight))]
    quality = pd.DataFrame(rows, columns=["deadline", "f1", "seed"]).assign(compression=0.04)
    verdict = augmentation_verdicts._tighter(quality, "f1", "lower", "A tighter deadline lowers F1")
    assert verdict.outcome == outcome
