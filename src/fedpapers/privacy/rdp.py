"""Rényi differential privacy of Gaussian releases, and its conversion to (ε, δ)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy import special

from fedpapers.privacy.releases import Release

FloatArray = NDArray[np.float64]
RdpCurve = Callable[[FloatArray], FloatArray]

BASE_ORDERS: FloatArray = np.array([1 + k / 10 for k in range(1, 100)] + [*range(11, 64), 128, 256], dtype=np.float64)
"""The Rényi orders that are always tried: 1.1 to 10.9 by 0.1, 11 to 63, 128, 256."""

_LARGER_ORDERS = [float(round(256 * 2 ** (k / 2))) for k in range(1, 25)]  # up to 2^20
_SMALLER_ORDERS = [1 + 0.1 * 2 ** (-k / 2) for k in range(1, 41)]  # down to 1 + 1e-7


def sampled_gaussian_rdp(sampling_rate: float, noise_multiplier: float, orders: FloatArray) -> FloatArray:
    """RDP of one Poisson-sampled Gaussian release under add-or-remove-one, at each of `orders`.

    Mironov, Talwar, Zhang (arXiv 1908.10530), section 3.3: log A_α / (α − 1). Opacus sums the series of a fractional
    order term by term, which takes seconds, and dp-accounting gives up on some orders; here the alternating tail is
    summed by acceleration, so that each order costs about α + 24 terms.

    Args:
        sampling_rate: q in (0, 1].
        noise_multiplier: σ ≥ 0, in units of the sensitivity.
        orders: α > 1, of shape (orders,).

    Returns:
        The RDP in nats, of the shape of `orders`; infinite where it overflows.
    """
    if noise_multiplier == 0:
        return np.full(len(orders), np.inf)
    inverse_variance = _square(1 / noise_multiplier)
    if sampling_rate == 1:
        return np.asarray(orders * (inverse_variance / 2))
    with np.errstate(all="ignore"):
        log_moments = [_log_moment(sampling_rate, noise_multiplier, float(order)) for order in orders]
    return np.array(log_moments) / (orders - 1)


def known_cohort_rdp(sampling_rate: float, noise_multiplier: float, orders: FloatArray) -> FloatArray:
    """RDP of one Gaussian release whose Poisson-sampled cohort the adversary sees, under zero-out.

    It is log(1 − q + q exp(α(α − 1) / 2σ²)) / (α − 1): a client that is not drawn reveals nothing, one that is drawn
    shows its noised update. Arguments and result as for `sampled_gaussian_rdp`.
    """
    if noise_multiplier == 0:
        return np.full(len(orders), np.inf)
    with np.errstate(all="ignore"):
        exponents = orders * (orders - 1) / 2 * _square(1 / noise_multiplier)
        log_growth = exponents + np.log(-np.expm1(-exponents))
        return np.asarray(np.logaddexp(0, math.log(sampling_rate) + log_growth) / (orders - 1))


def total_rdp(ledger: Iterable[Release], orders: FloatArray) -> FloatArray:
    """RDP of releases composed, at each of `orders`."""
    total = np.zeros(len(orders))
    for q, sigma, times, known_cohort in ledger:
        total += times * (known_cohort_rdp if known_cohort else sampled_gaussian_rdp)(q, sigma, orders)
    return total


def epsilon_at_orders(orders: FloatArray, rdp: FloatArray, delta: float) -> FloatArray:
    """ε at each order by proposition 12 of Canonne, Kamath, Steinke (arXiv 2004.00010); below 0 means 0.

    Equals `dp_accounting.rdp.compute_epsilon`, which refuses the orders below 1.01 that a huge ε needs.
    """
    values = rdp + np.log1p(-1 / orders) - (math.log(delta) + np.log(orders)) / (orders - 1)
    # The total variation distance is at most sqrt(1 − exp(−KL)); so here (0, δ) holds already.
    values = np.where(rdp < -np.log1p(-(delta**2)), 0.0, values)
    return np.where(np.isnan(values), np.inf, values)  # overflow on both sides of a difference: no guarantee


def rdp_to_epsilon(curve: RdpCurve, delta: float) -> tuple[float, float | None]:
    """The best ε at δ that an RDP curve gives, at least 0, and its order; None where ε is infinite.

    Where the best of `BASE_ORDERS` is the first or last of them, more orders are tried beyond it until ε rises again.

    Args:
        curve: From orders α > 1 to the RDP in nats of everything composed.
        delta: δ in (0, 1).
    """
    values = epsilon_at_orders(BASE_ORDERS, curve(BASE_ORDERS), delta)
    best = int(np.argmin(values))
    value, order = float(values[best]), float(BASE_ORDERS[best])
    beyond = {0: _SMALLER_ORDERS, len(BASE_ORDERS) - 1: _LARGER_ORDERS}.get(best, [])
    for candidate in beyond if value > 0 else []:
        orders = np.array([candidate])
        found = float(epsilon_at_orders(orders, curve(orders), delta)[0])
        if not found < value:
            break
        value, order = found, candidate
    return max(0.0, value), order if math.isfinite(value) else None


def rdp_deltas(ledger: Iterable[Release], epsilons: FloatArray) -> FloatArray:
    """The δ ≤ 1 of releases composed, at each ε, by the conversion of `epsilon_at_orders`."""
    orders = np.concatenate([_SMALLER_ORDERS, BASE_ORDERS])
    exponents = (orders - 1) * (total_rdp(ledger, orders) - epsilons[:, None] + np.log1p(-1 / orders))
    return np.asarray(np.exp(np.minimum((exponents - np.log(orders)).min(axis=1), 0.0)))


def _log_moment(q: float, sigma: float, order: float) -> float:
    """An upper bound of log A_α, tight to about 1e-14: A_α is the mean of (1 − q + q exp((2z − 1) / 2σ²))^α."""
    if order.is_integer():
        return _log_moment_integer(q, sigma, int(order))
    below = math.floor(order)
    # log A is convex in α. Its chord has no rounding error where A − 1 is tiny, the series is sharper elsewhere.
    left = _log_moment_integer(q, sigma, below)
    chord = left + (order - below) * (_log_moment_integer(q, sigma, below + 1) - left)
    series = _log_moment_fractional(q, sigma, order)
    return min(chord, series + 1e-14) if math.isfinite(series) else chord


@lru_cache(maxsize=1024)
def _log_moment_integer(q: float, sigma: float, order: int) -> float:
    """Without cancellation: A − 1 = Σ_{i ≥ 2} C(α, i) qⁱ (1 − q)^(α − i) (exp((i² − i)/2σ²) − 1), for α ≥ 1."""
    if order == 1:
        return 0.0
    i = np.arange(2, order + 1, dtype=np.float64)
    exponent = (i * i - i) / 2 * _square(1 / sigma)
    log_growth = exponent + np.log(-np.expm1(-exponent))
    terms = _log_binomial(order, i) + i * math.log(q) + (order - i) * math.log1p(-q) + log_growth
    return float(np.logaddexp(0, special.logsumexp(terms)))


def _log_moment_fractional(q: float, sigma: float, order: float) -> float:
    """Two integrals, below and above z₀, where both branches of the mixture are equal.

    Each is a binomial series whose terms alternate from the first i > α on. Those terms are moments of a positive
    measure, for which the weights of Cohen, Rodriguez Villegas, Zagier (2000, algorithm 1) err by less than 5.8^−24.
    """
    first_alternating = math.ceil(order)
    weights = np.concatenate([np.ones(first_alternating), _ALTERNATING_WEIGHTS])
    i = np.arange(len(weights), dtype=np.float64)
    j = order - i
    inside, outside = math.log(q), math.log1p(-q)
    half = _square(1 / sigma) / 2
    z0 = _square(sigma) * (outside - inside) + 0.5
    log_binomial = _log_binomial(order, i)
    below = log_binomial + i * inside + j * outside + (i * i - i) * half + special.log_ndtr((z0 - i) / sigma)
    above = log_binomial + j * inside + i * outside + (j * j - j) * half + special.log_ndtr((j - z0) / sigma)
    return float(special.logsumexp(np.concatenate([below, above]), b=np.concatenate([weights, weights])))


def _alternating_weights(terms: int) -> FloatArray:
    """The w for which Σ w_k a_k ≈ Σ (−1)^k a_k."""
    d = (3 + math.sqrt(8)) ** terms
    d = (d + 1 / d) / 2
    b, c = -1.0, -d
    weights = []
    for k in range(terms):
        c = b - c
        weights.append(c / d)
        b *= (k + terms) * (k - terms) / ((k + 0.5) * (k + 1))
    return np.array(weights)


_ALTERNATING_WEIGHTS = _alternating_weights(24)


def _log_binomial(n: float, k: FloatArray) -> FloatArray:
    """The logarithm of |C(n, k)|, also of a fractional n."""
    return np.asarray(special.gammaln(n + 1) - special.gammaln(k + 1) - special.gammaln(n - k + 1))


def _square(x: float) -> float:
    return x * x  # infinite where x**2 would raise
