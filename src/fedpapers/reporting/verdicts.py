"""Verdicts on a paper's claims: each is decided by a rule from our own numbers, which stand beside it."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import pandas as pd

_SURE = 2  # standard errors beyond which a difference counts

Outcome = Literal["holds", "holds in part", "does not hold", "not decided"]


@dataclass(frozen=True)
class Verdict:
    """What became of one claim.

    Attributes:
        claim: What the paper states, in our words.
        outcome: By the rule; `not decided` when the numbers that the rule needs are not there, or too noisy.
        evidence: Our numbers, and by which rule they decide.
    """

    claim: str
    outcome: Outcome
    evidence: str


@dataclass(frozen=True)
class Gap:
    """A difference of two accuracies, paired by seed.

    Attributes:
        points: Mean, in percentage points.
        error: Its standard error; not a number for a single seed.
        seeds: How many both have.
    """

    points: float
    error: float
    seeds: int

    @classmethod
    def of(cls, higher: pd.Series[float], lower: pd.Series[float]) -> Gap:
        """`higher` less `lower`, two series of accuracies by seed."""
        difference = 100 * (higher - lower).dropna()
        count = len(difference)
        error = difference.std(ddof=1) / math.sqrt(count) if count > 1 else math.nan
        return cls(float(difference.mean()) if count else math.nan, float(error), count)

    def exceeds(self, least: float) -> bool | None:
        """Whether it is above `least`; None if that is not sure."""
        if self.seeds < 2 or abs(self.points - least) <= _SURE * self.error:
            return None
        return self.points > least

    def __str__(self) -> str:
        if not self.seeds:
            return "no runs"
        return f"{self.points:+.1f}" + (f" ± {self.error:.1f}" if self.seeds > 1 else " (one seed)")

    def outcome(self, least: float = 0) -> Outcome:
        """The outcome of the claim that it is above `least`."""
        sure = self.exceeds(least)
        return "not decided" if sure is None else holds(sure)


def holds(condition: bool) -> Outcome:
    """The outcome of a claim that is a single comparison."""
    return "holds" if condition else "does not hold"


def holds_in(good: int, cases: int) -> Outcome:
    """The outcome of a claim that is a comparison in each of several cases."""
    if cases == 0:
        return "not decided"
    return "holds" if good == cases else "holds in part" if good else "does not hold"


def together(cases: Iterable[Outcome]) -> Outcome:
    """The outcome of a claim about several cases: in part when some hold; else against it as soon as one case is."""
    found = set(cases)
    if len(found) == 1:
        return found.pop()
    if found & {"holds", "holds in part"}:
        return "holds in part"
    return "does not hold" if "does not hold" in found else "not decided"


def verdict_table(verdicts: Iterable[Verdict]) -> pd.DataFrame:
    """One row a claim, numbered from 1, with the headings that are shown."""
    return pd.DataFrame(
        [
            {"No.": str(number), "Claim": verdict.claim, "Verdict": verdict.outcome, "Our numbers": verdict.evidence}
            for number, verdict in enumerate(verdicts, 1)
        ]
    )
