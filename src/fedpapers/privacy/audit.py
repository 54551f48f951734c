"""A lower bound on ε from many runs with a worker and many without: what no valid upper bound may be below.

Half of the runs choose a test, the other half measure it, so that the choice costs no confidence. Method: Jagielski,
Ullman, Oprea, "Auditing differentially private machine learning" (arXiv 2006.07709), with δ and both directions.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv

from fedpapers.privacy.quadrature import Array

Ints = NDArray[np.int64]

_CANDIDATES = 400  # thresholds that are tried, for each direction
_CHOICE = 0.9999  # confidence at which candidates compete: the luckiest of many must not win
_RIDGE = 1e-6  # on standardised features: views may hold the same number twice


@dataclass(frozen=True)
class LowerBound:
    """A test of whether the worker took part, and what its errors prove.

    Attributes:
        epsilon: With confidence `confidence`, no (ε, δ) guarantee with a smaller ε holds; 0 if nothing is proven.
        likely: Measured probability of the test's event in the world where it is more likely.
        unlikely: The same in the other world.
        present_likely: Whether the first of these worlds is the one with the worker.
        runs: Runs of each world in which it was measured.
        delta: The δ of the statement.
        confidence: Of the statement, over the draws of the runs.
    """

    epsilon: float
    likely: float
    unlikely: float
    present_likely: bool
    runs: int
    delta: float
    confidence: float


def lower_bound(absent: Array, present: Array, delta: float, confidence: float = 0.95) -> LowerBound:
    """The largest ε that a threshold of a linear statistic proves.

    Args:
        absent: What the adversary sees in independent runs without the worker, shape [runs, features].
        present: The same with the worker, as many.
        delta: δ in [0, 1).
        confidence: 1 - the chance that the bound is wrong, whatever the algorithm does.

    Raises:
        ValueError: The shapes differ, or there are fewer than 4 runs.
    """
    if absent.shape != present.shape or len(absent) < 4:
        raise ValueError(f"views of shapes {absent.shape} and {present.shape}; expected two equal ones, ≥ 4 runs")
    half = len(absent) // 2
    weights = _discriminant(absent[:half], present[:half])
    scores = absent @ weights, present @ weights
    present_likely, threshold = _best_test(scores[0][:half], scores[1][:half], delta)
    measured = [score[half:] >= threshold if present_likely else score[half:] <= threshold for score in scores]
    unlikely, likely = measured if present_likely else measured[::-1]
    runs = len(likely)
    proven = _proven(np.array([likely.sum()]), np.array([unlikely.sum()]), runs, delta, confidence)
    return LowerBound(
        float(proven[0]), float(likely.mean()), float(unlikely.mean()), present_likely, runs, delta, confidence
    )


def _discriminant(absent: Array, present: Array) -> Array:
    """Fisher's linear discriminant, shape [features]: larger with the worker."""
    both = np.concatenate([absent, present])
    scale = both.std(axis=0)
    used = scale > 1e-12 * np.abs(both).max(axis=0, initial=0)
    inverse = np.where(used, 1 / np.where(used, scale, 1), 0)
    gap = (present.mean(axis=0) - absent.mean(axis=0)) * inverse
    within = sum(np.atleast_2d(np.cov(part * inverse, rowvar=False)) for part in (absent, present))
    return np.asarray(np.linalg.solve(within + _RIDGE * np.eye(len(scale)), gap) * inverse)


def _best_test(absent: Array, present: Array, delta: float) -> tuple[bool, float]:
    """Which world to bet on, and from which score; the one that would prove most with these runs."""
    # The best tests are in the tails, where one world has very few runs: every score there is a candidate.
    ranks = np.unique(np.geomspace(1, len(absent), _CANDIDATES).astype(int)) - 1
    best = (-np.inf, True, np.inf)
    for present_likely, (rare, often) in ((True, (-absent, -present)), (False, (present, absent))):
        rare, often = np.sort(rare), np.sort(often)
        candidates = np.unique(np.concatenate([rare[ranks], often[ranks]]))
        likely, unlikely = (np.searchsorted(scores, candidates, side="right") for scores in (often, rare))
        proven = _proven(likely, unlikely, len(absent), delta, _CHOICE)
        top = int(proven.argmax())
        if proven[top] > best[0]:
            best = (proven[top], present_likely, -candidates[top] if present_likely else candidates[top])
    return best[1], float(best[2])


def _proven(likely: Ints, unlikely: Ints, runs: int, delta: float, confidence: float) -> Array:
    """log((P - δ) / Q) at least 0, P from below and Q from above (Clopper-Pearson), half of the error each."""
    error = (1 - confidence) / 2
    low = np.where(likely > 0, betaincinv(np.maximum(likely, 1), runs - likely + 1, error), 0)
    high = np.where(unlikely < runs, betaincinv(unlikely + 1, np.maximum(runs - unlikely, 1), 1 - error), 1)
    return np.asarray(np.log(np.maximum((low - delta) / high, 1)))
