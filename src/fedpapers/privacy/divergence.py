"""What one noisy sum leaks in overlapping groups: Rényi divergences, contraction coefficients, and ε at δ.

A mechanism is a pair of one-dimensional Gaussian mixtures with the same noise: the law of a group's sum with one worker
and the law without. Lengths are in units of the clipping norm c, so the noise has the standard deviation
`noise_multiplier`; members are sampled independently with probability `sampling_rate`. Divergences are arrays over
`ORDERS`, in nats; without noise they are inf. Statements and proofs: docs/leakage-proofs.md.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import erf, gammaln, logsumexp, xlog1py, xlogy

from fedpapers.privacy.quadrature import (
    Array,
    Mixture,
    log_excess,
    log_triangular_discrimination,
    renyi,
    two_sided_renyi,
)
from fedpapers.privacy.rdp import BASE_ORDERS, epsilon_at_orders

Ints = NDArray[np.int64]

ORDERS: Array = BASE_ORDERS
"""The Rényi orders α of all leakage bounds."""

MOST_RELAYS = 24
"""Sums that more workers than this may move get a coarser bound, or inf where a cut that uses them is never the best.

A cut through r relays beats the plain delay only when an interval has more than about 4 r² epochs.
"""

_HUGE = 1e300  # stands for inf in products with counts that may be 0
_MARGIN = 1.002  # the supremum of the numeric coefficient is taken on a grid


def epsilon(rdp: Array, delta: float) -> Array:
    """The ε ≥ 0 at δ of Rényi curves over `ORDERS`, [..., orders] -> [...]."""
    return np.asarray(np.maximum(epsilon_at_orders(ORDERS, rdp, delta).min(axis=-1), 0.0))


def composed(counts: Ints, divergences: Array) -> Array:
    """The divergence of releases composed: Σ counts · divergences, in which 0 · inf is 0.

    Args:
        counts: How many of each kind, shape [..., kinds].
        divergences: Shape [kinds, orders].

    Returns:
        Shape [..., orders].
    """
    total = counts @ np.minimum(divergences, _HUGE)
    return np.asarray(np.where(total >= _HUGE, np.inf, total))


def chance_of(log_chance: Array, log_value: Array) -> Array:
    """log(chance · value), in which 0 · inf is 0."""
    return np.asarray(np.where(np.isneginf(log_chance), -np.inf, log_chance + log_value))


def sgm(sampling_rate: float, noise_multiplier: float) -> Array:
    """The sampled Gaussian mechanism: one worker in or out, the larger of both directions."""
    return own_with_relays(0, sampling_rate, noise_multiplier)


@lru_cache(maxsize=4096)
def own_with_relays(relays: int, sampling_rate: float, noise_multiplier: float) -> Array:
    """The sum of a group of the source in which `relays` other workers may move too (Lemma A)."""
    if noise_multiplier == 0 or relays > MOST_RELAYS:
        return _infinite()
    present = _sampled(relays + 1, sampling_rate, 1 / noise_multiplier)
    absent = _sampled(relays, sampling_rate, -1 / noise_multiplier)
    return np.maximum(renyi(present, absent, ORDERS), renyi(absent, present, ORDERS))


@lru_cache(maxsize=4096)
def relayed(relays: int, sampling_rate: float, noise_multiplier: float) -> Array:
    """The sum of a group without the source, moved by `relays` workers who start from tainted models (Lemma A).

    With one relay it is also the divergence of replacing the source's data.
    """
    if relays == 0:
        return np.zeros_like(ORDERS)
    if noise_multiplier == 0 or relays > MOST_RELAYS:
        return _infinite()
    return renyi(*_relayed_pair(relays, sampling_rate, noise_multiplier), ORDERS)


@lru_cache(maxsize=4096)
def plus_own(others: int, sampling_rate: float, noise_multiplier: float) -> Array:
    """One interval (S ≥ 2) of DP-OGL+ in a group of the source with `others` further members.

    Within the interval the others train on from the source's un-noised update, so the accumulated update of each that
    is sampled may move by twice the clipping norm.
    """
    if noise_multiplier == 0:
        return _infinite()
    coarse = _plus_own_of_many(others, sampling_rate, noise_multiplier)
    if others > MOST_RELAYS:
        return coarse
    o = np.arange(others + 1)
    log_weights = _log_binomial(others, sampling_rate)
    with np.errstate(divide="ignore"):
        inactive, active = np.log1p(-sampling_rate), np.log(sampling_rate)
    absent = Mixture.of(log_weights, -o / noise_multiplier)
    present = Mixture.of(
        np.concatenate([log_weights + inactive, log_weights + active]),
        np.concatenate([-o, o + 1]) / noise_multiplier,
    )
    exact = np.maximum(renyi(present, absent, ORDERS), renyi(absent, present, ORDERS))
    return np.minimum(exact, coarse)


@lru_cache(maxsize=4096)
def plus_relayed(relays: int, others: int, sampling_rate: float, noise_multiplier: float) -> Array:
    """One interval (S ≥ 2) of DP-OGL+ in a group that neither source nor observer belongs to.

    `relays` members start from tainted models, and the `others` react to them within the interval.
    """
    everybody = relayed(relays + others, sampling_rate, noise_multiplier)
    if relays == 0:
        return np.zeros_like(ORDERS)
    if noise_multiplier == 0 or relays + others > MOST_RELAYS:
        return everybody
    j, o = np.arange(relays + 1)[:, None], np.arange(others + 1)[None, :]
    log_weights = _log_binomial(relays, sampling_rate)[:, None] + _log_binomial(others, sampling_rate)[None, :]
    size = (j + o) / noise_multiplier
    low = Mixture.of(log_weights.ravel(), -size.ravel())
    high = Mixture.of(log_weights.ravel(), np.where(j > 0, size, -size).ravel())
    return np.minimum(everybody, two_sided_renyi(high, low, ORDERS))


@lru_cache(maxsize=65536)
def contraction(relays: int, sampling_rate: float, noise_multiplier: float, others: int = 0) -> float:
    """The largest share η_TV of what `relays` workers know that passes one noisy sum, in [0, 1] (Lemma D).

    With `others` members who react to them within an interval it is the coefficient of DP-OGL+.
    """
    j, o = np.arange(1, relays + 1)[:, None], np.arange(others + 1)[None, :]
    log_weights = _log_binomial(relays, sampling_rate)[1:, None] + _log_binomial(others, sampling_rate)[None, :]
    reach = erf((j + o) / (noise_multiplier * np.sqrt(2))) if noise_multiplier > 0 else np.ones(log_weights.shape)
    return float(min((np.exp(log_weights) * reach).sum(), 1.0))


def unnoised_contraction(relays: int, sampling_rate: float) -> float:
    """The same where the next models are seen un-noised: whatever a sampled relay knows passes."""
    return float(-np.expm1(xlog1py(relays, -sampling_rate)))


@lru_cache(maxsize=4096)
def numeric_contraction(relays: int, sampling_rate: float, noise_multiplier: float) -> Array:
    """The contraction coefficient η_α of E_Q[(P/Q)^α] - 1 at every order, shape [len(ORDERS)]; at most η_TV.

    Proven for α ≤ 2 up to quadrature. Above, a supremum over two-point priors is taken on a grid, with a margin of
    0.2 %: numeric, not proven.
    """
    ceiling = contraction(relays, sampling_rate, noise_multiplier)
    if relays == 0 or noise_multiplier == 0 or relays > MOST_RELAYS:
        return np.full_like(ORDERS, ceiling)
    p, q = _relayed_pair(relays, sampling_rate, noise_multiplier)
    best = np.full_like(ORDERS, log_triangular_discrimination(p, q))
    above = ORDERS > 2
    ratios = np.array([_log_share_passed(p, q, logit, ORDERS[above]) for logit in np.arange(-6.5, 1.0, 0.25)])
    best[above] = np.maximum(best[above], _peak(ratios))
    return np.minimum(np.exp(best) * _MARGIN, ceiling)


def _log_share_passed(p: Mixture, q: Mixture, logit: float, orders: Array) -> Array:
    """Log of the excess after the channel {p, q} over that before, for Q = q against the prior P = (b, 1 - b)."""
    log_b, log_rest = -np.logaddexp(0, -logit), -np.logaddexp(0, logit)
    prior = Mixture(
        np.concatenate([p.log_weights + log_b, q.log_weights + log_rest]), np.concatenate([p.means, q.means])
    )
    exponent = -(orders - 1) * log_rest
    return np.asarray(log_excess(q, prior, orders) - exponent - np.log(-np.expm1(-exponent)))


def _peak(values: Array) -> Array:
    """The vertex of the parabola through the largest of equidistant values and its neighbours, along the first axis."""
    top = np.clip(values.argmax(axis=0), 1, len(values) - 2)
    columns = np.arange(values.shape[1])
    before, at, after = (values[top + step, columns] for step in (-1, 0, 1))
    bend = before - 2 * at + after
    return np.asarray(np.where(bend < 0, at - (after - before) ** 2 / (8 * np.minimum(bend, -1e-300)), at))


def _relayed_pair(relays: int, sampling_rate: float, noise_multiplier: float) -> tuple[Mixture, Mixture]:
    step = 1 / noise_multiplier
    return _sampled(relays, sampling_rate, step), _sampled(relays, sampling_rate, -step)


def _sampled(members: int, sampling_rate: float, step: float) -> Mixture:
    """The sum of `step` over the sampled of `members`, plus the noise."""
    return Mixture.of(_log_binomial(members, sampling_rate), np.arange(members + 1, dtype=np.float64) * step)


def _log_binomial(n: int, q: float) -> Array:
    """Log Bin(n, q)(j) for j = 0..n; -inf where impossible."""
    j = np.arange(n + 1)
    return np.asarray(gammaln(n + 1) - gammaln(j + 1) - gammaln(n - j + 1) + xlogy(j, q) + xlog1py(n - j, -q))


def _plus_own_of_many(others: int, sampling_rate: float, noise_multiplier: float) -> Array:
    """`plus_own` without a quadrature: convexity over how many others are sampled, then Minkowski's inequality."""
    reach = (1 + 2 * np.arange(others + 1)) / noise_multiplier
    orders = ORDERS[:, None]
    with np.errstate(divide="ignore"):
        inactive, active = np.log1p(-sampling_rate), np.log(sampling_rate)
    moments = orders * np.logaddexp(inactive, active + (orders - 1) * reach**2 / 2)
    return np.asarray(logsumexp(_log_binomial(others, sampling_rate) + moments, axis=1) / (ORDERS - 1))


def _infinite() -> Array:
    return np.full_like(ORDERS, np.inf)
