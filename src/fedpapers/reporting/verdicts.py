"""Verdicts on a paper's claims: each is decided by a rule from our own numbers, which stand beside it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import pandas as pd

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
