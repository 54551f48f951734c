"""What the size of the cohort alone reveals, where each client adds its own noise to its own update.

The sum of J noisy updates has noise of variance J·σ²·C² in each coordinate: who is not drawn adds none.
With many coordinates the variance tells J. If one client more is there, J is binomial of one trial more.
docs/noise-placement.md says what follows.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy import stats


def cohort_size_epsilon(clients: int, sampling_rate: float, rounds: int, delta: float) -> float:
    """No (ε, δ) guarantee under add-or-remove with a smaller ε holds against who sees the size of each round's cohort.

    The test sums the sizes over all rounds: binomial of T·M trials with the client, of T·(M − 1) without. Each
    threshold is an event E with P(E) ≤ e^ε P'(E) + δ in both directions, so that ε ≥ log((P(E) − δ)/P'(E)); this is
    the largest such number. The likelihood ratio rises with the sum, so that no other test on it does better. The
    noise multiplier plays no part in it.

    Args:
        clients: M ≥ 2, the client in question included.
        sampling_rate: q in (0, 1): the probability of each client to be drawn in a round.
        rounds: T ≥ 1.
        delta: δ in (0, 1).
    """
    present = stats.binom(rounds * clients, sampling_rate)
    absent = stats.binom(rounds * (clients - 1), sampling_rate)
    sizes = np.arange(absent.ppf(1e-15), present.isf(1e-15) + 1)
    many = _implied(present.sf(sizes - 1), absent.sf(sizes - 1), delta)
    few = _implied(absent.cdf(sizes), present.cdf(sizes), delta)
    return max(0.0, many, few)


def _implied(likely: NDArray[np.float64], unlikely: NDArray[np.float64], delta: float) -> float:
    """The largest ε that events of these probabilities in the two worlds prove."""
    proving = likely > delta
    if not proving.any():
        return -math.inf
    with np.errstate(divide="ignore"):  # an event that cannot happen in one world proves that no ε is finite
        return float(np.max(np.log(likely[proving] - delta) - np.log(unlikely[proving])))
