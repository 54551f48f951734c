"""Verdicts on a paper's claims: each is decided by a rule from our own numbers, which stand beside it."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import pandas as pd

SURE = 2
"""Standard errors beyond which a difference of accuracies counts."""

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
        if self.seeds < 2 or abs(self.points - least) <= SURE * self.error:
            return None
        return self.points > least

    def __str__(self) -> str:
        if not self.seeds:
            return "no runs"
        return f"{self.points:+.1f}" + (f" ± {self.error:.1f}" if self.seeds > 1 else " (one seed)")

    def outcome(self, least: float = 0) -> Outcome:
        """The outcome of the claim that it is above `least`."""
        return holds(self.exceeds(least))


def holds(condition: bool | None) -> Outcome:
    """The outcome of a single comparison; None: it is not sure, or its numbers are not there."""
    return "not decided" if condition is None else "holds" if condition else "does not hold"


def holds_in(good: int, cases: int) -> Outcome:
    """The outcome of a claim that is a sure comparison in each of several cases."""
    return together([holds(True)] * good + [holds(False)] * (cases - good))


def together(cases: Iterable[Outcome]) -> Outcome:
    """The outcome of a claim about several cases, of which some may hold and others not.

    It is what is true whatever becomes of the cases that are not decided: all hold, none holds, or it holds in part,
    as soon as one case holds and another does not. Else it is not decided.
    """
    found = set(cases)
    if "holds in part" in found or {"holds", "does not hold"} <= found:
        return "holds in part"
    return found.pop() if len(found) == 1 else "not decided"


def throughout(parts: Iterable[Outcome]) -> Outcome:
    """The outcome of a claim about one whole, such as that a curve rises: one part that does not hold refutes it.

    As in `together`, it is what is true whatever becomes of the parts that are not decided.
    """
    found = set(parts)
    if "does not hold" in found:
        return "does not hold"
    return found.pop() if len(found) == 1 else "not decided"


def verdict_table(verdicts: Iterable[Verdict]) -> pd.DataFrame:
    """One row a claim, numbered from 1, with the headings that are shown."""
    return pd.DataFrame(
        [
            {"No.": str(number), "Claim": verdict.claim, "Verdict": verdict.outcome, "Our numbers": verdict.evidence}
            for number, verdict in enumerate(verdicts, 1)
        ]
    )
