"""Trade-off curves: the smallest type II error of any test for a client's data, against its type I error.

Dong, Roth, Su, "Gaussian differential privacy" (arXiv 1905.02383). A curve follows from δ(ε), the hockey-stick
divergence, and the other way round (their proposition 6), so that whatever bounds δ(ε) from above bounds the curve from
below. Perfect indistinguishability is the line 1 − a.
"""

from __future__ import annotations

import math

import numpy as np
from scipy import optimize, special, stats

from fedpapers.privacy.rdp import FloatArray

EPSILONS: FloatArray = np.concatenate([[0.0], np.geomspace(1e-5, 700, 1200)])
"""The ε at which δ(ε) is asked for: fewer of them only lower a curve."""

_MOST_ROUNDS = 10**6


def tradeoff(epsilons: FloatArray, deltas: FloatArray, type_1: FloatArray) -> FloatArray:
    """The type II error f(a) that (ε, δ(ε))-privacy for every ε guarantees, in both directions of the relation.

    f(a) = max over ε of 0, 1 − δ − e^ε a, and e^−ε (1 − δ − a). Where `deltas` are upper bounds, f is a lower one.

    Args:
        epsilons: ε ≥ 0, at most 700, shape (points,).
        deltas: δ at each of them, of the worse direction.
        type_1: a in [0, 1], shape (errors,).

    Returns:
        f(a), of the shape of `type_1`: convex, decreasing, at most 1 − a.
    """
    e, kept, a = np.exp(epsilons)[:, None], 1 - deltas[:, None], type_1[None, :]
    return np.asarray(np.maximum(np.maximum(kept - e * a, (kept - a) / e).max(axis=0), 0.0))


def gaussian_tradeoff(mu: float, type_1: FloatArray) -> FloatArray:
    """G_μ(a) = Φ(Φ⁻¹(1 − a) − μ), the curve of two normal laws μ ≥ 0 standard deviations apart; 0 for infinite μ."""
    if math.isinf(mu):
        return np.zeros(len(type_1))
    return np.asarray(special.ndtr(special.ndtri(1 - type_1) - mu))


def gaussian_deltas(mu: float | FloatArray, epsilons: FloatArray) -> FloatArray:
    """δ(ε) = Φ(−ε/μ + μ/2) − e^ε Φ(−ε/μ − μ/2) of G_μ, for finite μ ≥ 0; both arguments broadcast.

    It is exact for one Gaussian release of noise multiplier σ, with μ = 1/σ (Balle, Wang, arXiv 1805.06530, theorem 8).
    """
    mu = np.asarray(mu, dtype=np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        apart = np.where(mu > 0, epsilons / mu, np.inf)
    return np.asarray(special.ndtr(mu / 2 - apart) - np.exp(epsilons + special.log_ndtr(-apart - mu / 2)))


def known_cohort_deltas(sampling_rate: float, noise_multiplier: float, rounds: int, epsilons: FloatArray) -> FloatArray:
    """δ(ε) of rounds whose Poisson-sampled cohort the adversary sees, under zero-out: exact, both directions alike.

    A client that is drawn in k rounds shows k Gaussian releases, together G_{√k/σ}; the adversary knows k, which is
    binomial, so that δ(ε) is the mean over k. It is the composition of the dominating pair of a round, and holds for
    rounds that depend on earlier ones (Zhu, Dong, Wang, arXiv 2106.08567, theorem 10).

    Args:
        sampling_rate: q in (0, 1].
        noise_multiplier: σ ≥ 0, in units of the sensitivity.
        rounds: T ≥ 0.
        epsilons: ε ≥ 0, shape (points,).
    """
    k, weights = _times_drawn(sampling_rate, rounds)
    if noise_multiplier == 0:
        return np.full(len(epsilons), weights[k > 0].sum())
    return np.asarray(weights @ gaussian_deltas(np.sqrt(k)[:, None] / noise_multiplier, epsilons[None, :]))


def known_cohort_epsilon(sampling_rate: float, noise_multiplier: float, rounds: int, delta: float) -> float:
    """The smallest ε ≥ 0 at δ of `known_cohort_deltas`, from above to 1e-9; infinite without noise.

    Raises:
        ValueError: More than 10^6 rounds.
    """
    if rounds > _MOST_ROUNDS:
        raise ValueError(f"{rounds} rounds; expected at most {_MOST_ROUNDS}")

    def excess(epsilon: float) -> float:
        return float(known_cohort_deltas(sampling_rate, noise_multiplier, rounds, np.array([epsilon]))[0]) - delta

    if excess(0.0) <= 0:
        return 0.0
    if noise_multiplier == 0:
        return math.inf
    mu = math.sqrt(rounds) / noise_multiplier
    most = mu * mu / 2 + mu * 40  # everybody drawn every time, and δ below 1e-300
    return float(optimize.brentq(excess, 0.0, most, xtol=1e-10)) + 1e-9


def _times_drawn(sampling_rate: float, rounds: int) -> tuple[FloatArray, FloatArray]:
    """How often a client may be drawn, and how likely each number is; what is left out weighs less than 1e-18."""
    law = stats.binom(rounds, sampling_rate)
    k = np.arange(law.ppf(1e-18), law.isf(1e-18) + 1)
    return k, np.asarray(law.pmf(k))
