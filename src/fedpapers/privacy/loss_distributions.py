"""Distributions of privacy loss, composed by Fourier transforms: `pld` of dp-accounting and `prv` of Opacus.

Both take time and memory that grow with what is asked, so that is estimated first, and refused beyond a limit.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from fedpapers.privacy.rdp import BASE_ORDERS, FloatArray, epsilon_at_orders, sampled_gaussian_rdp, total_rdp
from fedpapers.privacy.releases import Release

if TYPE_CHECKING:
    from dp_accounting.pld import PLDAccountant

# Below this δ the rounding errors of the Fourier transforms in PLD and PRV can exceed what their pessimism adds:
# measured against the closed form at q ≈ 1, PLD is 6e-5 too low at 1e-11.
_SMALLEST_FOURIER_DELTA = 1e-10
_PLD_SPACING = 1e-4  # dp-accounting's default, in nats
_MOST_PLD_POINTS = 2e7  # about 15 s and 1 GiB
_MOST_CURVE_POINTS = 3e5  # dp-accounting reads off a whole curve in a loop over all points: about 1 s
_MOST_PRV_POINTS = 5e6  # about 5 s and 1 GiB
_LARGEST_PRV_LOSS = 700  # Opacus takes exp of the privacy loss
_LARGEST_PRV_NOISE = 1000  # above it, the series of Opacus needs minutes for q near 1/2
_MOST_PLD_STEPS = 10**6  # its time, unlike its memory, grows with them whatever σ and q


class CannotAnswerError(Exception):
    """An accountant cannot answer; the text says why."""


def pld_epsilon(ledger: Sequence[Release], delta: float) -> float:
    """The pessimistic estimate of dp-accounting at its defaults."""
    _check_fourier_use(ledger, delta)
    _check_points(pld_points(ledger), _MOST_PLD_POINTS)
    return float(_composed(ledger, _PLD_SPACING).get_epsilon(delta))


def pld_deltas(ledger: Sequence[Release], epsilons: FloatArray) -> FloatArray:
    """δ at each ε ≥ 0, ascending; on a coarser grid than in `pld_epsilon` where that needs many points.

    Raises:
        CannotAnswerError: `ledger` is beyond what it can compose.
    """
    _check_fourier_use(ledger, 1.0)
    spacing = _PLD_SPACING * max(1.0, pld_points(ledger) / _MOST_CURVE_POINTS)
    return np.asarray(_composed(ledger, spacing).get_delta(epsilons), dtype=np.float64)


def prv_epsilon(ledger: Sequence[Release], delta: float) -> float:
    """The upper bound of Opacus at its default errors (0.01 in ε, δ/1000 in δ)."""
    _check_fourier_use(ledger, delta)
    if max(release.noise_multiplier for release in ledger) > _LARGEST_PRV_NOISE:
        raise CannotAnswerError(f"its series is too slow for σ > {_LARGEST_PRV_NOISE}")
    loss = _prv_largest_loss(ledger, delta / 1000)
    if not loss < _LARGEST_PRV_LOSS:
        raise CannotAnswerError(f"privacy losses up to {loss:.3g} overflow")
    steps = sum(release.times for release in ledger)
    spacing = 0.01 / math.sqrt(steps * math.log(12 / (delta / 1000)) / 2)
    _check_points(2 * loss / spacing * len(ledger), _MOST_PRV_POINTS)

    from opacus.accountants import PRVAccountant  # seconds: it imports all of Opacus

    accountant = PRVAccountant()
    accountant.history = [(sigma, q, times) for q, sigma, times, _ in ledger]
    return float(accountant.get_epsilon(delta))


def _composed(ledger: Sequence[Release], spacing: float) -> PLDAccountant:
    """dp-accounting's accountant, with the ledger composed on a grid of privacy losses."""
    import dp_accounting
    from dp_accounting.pld import PLDAccountant

    steps = sum(release.times for release in ledger if release.sampling_rate < 1)
    if steps > _MOST_PLD_STEPS:
        raise CannotAnswerError(f"{steps} sampled releases, more than {_MOST_PLD_STEPS:.0e}, may take it minutes")
    accountant = PLDAccountant(value_discretization_interval=spacing)
    for q, sigma, times, _ in ledger:
        gaussian = dp_accounting.GaussianDpEvent(sigma)
        # Without sampling, a Gaussian event composes in closed form instead of by a Fourier transform.
        accountant.compose(gaussian if q == 1 else dp_accounting.PoissonSampledDpEvent(q, gaussian), times)
    return accountant


def pld_points(ledger: Sequence[Release]) -> float:
    """About how many points dp-accounting will hold in all its convolutions: the sum over them of their lengths."""
    total = work = 0.0
    for release in ledger:
        total += _pld_points_of(release)
        work += total
    return work


def _pld_points_of(release: Release) -> float:
    """The same for one release composed `times` times, both directions of the relation together.

    One loss distribution spans what 10 standard deviations of noise can reveal. Its composition is cut by the Chernoff
    bound of `dp_accounting.pld.common.compute_self_convolve_bounds`, whose moments are those of RDP.
    """
    q, sigma, times, _ = release
    if q == 1:
        sigma = sigma / math.sqrt(times)
        return 2 * 2 * (0.5 / sigma + 10) / sigma / _PLD_SPACING
    inside, outside = math.log(q), math.log1p(-q)
    widest = (0.5 / sigma + 10) / sigma
    span = float(np.logaddexp(outside, inside + widest) - np.logaddexp(outside, inside - widest))
    tail = math.log(2e15)
    exponents = np.minimum(np.array([1.0, 5.0, 20.0]) / span, 1000.0)
    moments = exponents * sampled_gaussian_rdp(q, sigma, 1 + exponents)
    long_side = min(float(np.min((times * moments + tail) / exponents)), times * span)
    without_drift = tail * max(1.0, span / 20)
    short_side = min(without_drift, -times * outside)  # a client's absence reveals at most −log(1 − q) each time
    return (2 * span + long_side + min(long_side, without_drift) + 2 * short_side) / _PLD_SPACING


def _prv_largest_loss(ledger: Sequence[Release], delta_error: float) -> float:
    """The half width that Opacus will choose (Gopi, Lee, Wutschitz, arXiv 2106.02848, remark 5.6)."""
    steps = sum(release.times for release in ledger)
    singles = [(total_rdp([r._replace(times=1)], BASE_ORDERS), delta_error / (8 * steps)) for r in ledger]
    bounds = [(total_rdp(ledger, BASE_ORDERS), delta_error / 4), *singles]
    return 3 + max(float(epsilon_at_orders(BASE_ORDERS, rdp, delta).min()) for rdp, delta in bounds)


def _check_fourier_use(ledger: Sequence[Release], delta: float) -> None:
    if any(release.known_cohort for release in ledger):
        raise CannotAnswerError("it knows no release whose cohort the adversary sees")
    if delta < _SMALLEST_FOURIER_DELTA:
        raise CannotAnswerError(f"its rounding errors are not small against a δ below {_SMALLEST_FOURIER_DELTA:g}")


def _check_points(points: float, most: float) -> None:
    if not points <= most:
        raise CannotAnswerError(f"it would need about {points:.2g} points, more than {most:.2g}")
