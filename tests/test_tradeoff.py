"""Trade-off curves against closed forms, quadrature and dp-accounting."""

from __future__ import annotations

import math

import dp_accounting
import numpy as np
import pytest
from dp_accounting.gaussian_mechanism import get_epsilon_gaussian
from dp_accounting.pld import PLDAccountant
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, special, stats

from fedpapers.privacy.accounting import certified_deltas, epsilon
from fedpapers.privacy.events import KnownCohortDpEvent
from fedpapers.privacy.releases import sampled_gaussian
from fedpapers.privacy.tradeoff import (
    EPSILONS,
    gaussian_deltas,
    gaussian_tradeoff,
    known_cohort_deltas,
    known_cohort_epsilon,
    tradeoff,
)

CELEBA = 20 / 9343
FEMNIST = 3 / 178
DELTA = 1e-5
A = np.linspace(0, 1, 201)


@pytest.mark.parametrize("mu", [0.01, 0.133, 1.0, 3.0, 8.0])
def test_curve_of_a_gaussian_is_its_closed_form(mu):
    found = tradeoff(EPSILONS, gaussian_deltas(mu, EPSILONS), A)
    exact = gaussian_tradeoff(mu, A)
    assert found == pytest.approx(exact, abs=2e-5)
    assert (found <= exact + 1e-12).all()  # a grid of ε only lowers it


@pytest.mark.parametrize("mu", [0.01, 1.0, 5.0])
def test_gaussian_delta_is_the_integral_of_the_excess(mu):
    for e in (0.0, 0.01, 0.7, 4.0):
        cut = e / mu + mu / 2
        exact, _ = integrate.quad(
            lambda z, e=e: stats.norm.pdf(z, mu) - math.exp(e) * stats.norm.pdf(z), cut, cut + 40, epsabs=1e-14
        )
        assert gaussian_deltas(mu, np.array([e]))[0] == pytest.approx(exact, abs=1e-12)


def test_one_gaussian_release_is_the_analytic_mechanism():
    for sigma in (0.65, 2.42, 9.69):
        e = get_epsilon_gaussian(sigma, DELTA)
        assert gaussian_deltas(1 / sigma, np.array([e]))[0] == pytest.approx(DELTA, rel=1e-6)


def test_nothing_released_is_perfect_indistinguishability():
    assert tradeoff(EPSILONS, certified_deltas(sampled_gaussian(1.0, 0.1, 0), EPSILONS), A) == pytest.approx(1 - A)
    assert tradeoff(EPSILONS, gaussian_deltas(0.0, EPSILONS), A) == pytest.approx(1 - A)


def test_no_noise_is_no_privacy():
    assert (tradeoff(EPSILONS, certified_deltas(sampled_gaussian(0.0, 0.1, 3), EPSILONS), A) == 0).all()


def test_one_sampled_release_is_the_subsampled_curve():
    """C_p(G_μ): the convex hull of min(f, f⁻¹), f = p G_μ + (1 − p) Id, by Dong, Roth, Su, theorem 9."""
    sigma, p = 0.8, 0.3
    found = tradeoff(EPSILONS, certified_deltas(sampled_gaussian(sigma, p, 1), EPSILONS), A)
    fine = np.linspace(0, 1, 200_001)
    f = p * gaussian_tradeoff(1 / sigma, fine) + (1 - p) * (1 - fine)
    inverse = np.interp(fine, f[::-1], fine[::-1])
    slopes = np.exp(np.concatenate([-EPSILONS[EPSILONS < 12], EPSILONS[EPSILONS < 12]]))[::10]
    lowest = np.minimum(f, inverse)
    hull = np.max([np.min(lowest + slope * fine) - slope * A for slope in slopes], axis=0)
    assert found == pytest.approx(np.maximum(hull, 0), abs=3e-4)
    assert (found <= np.interp(A, fine, lowest) + 1e-6).all()


def test_composition_without_sampling_is_gaussian():
    found = tradeoff(EPSILONS, certified_deltas(sampled_gaussian(2.0, 1.0, 9), EPSILONS), A)
    assert found == pytest.approx(gaussian_tradeoff(1.5, A), abs=1e-3)


@pytest.mark.parametrize(("sigma", "q", "rounds"), [(0.65, CELEBA, 400), (9.69, FEMNIST, 1000)])
def test_deltas_are_those_of_dp_accounting(sigma, q, rounds):
    accountant = PLDAccountant()
    event = dp_accounting.PoissonSampledDpEvent(q, dp_accounting.GaussianDpEvent(sigma))
    accountant.compose(event, rounds)
    e = np.array([0.0, 0.1, 1.0])
    exact = np.array([accountant.get_delta(value) for value in e])
    found = certified_deltas(sampled_gaussian(sigma, q, rounds), e)
    assert found == pytest.approx(exact, rel=1e-3, abs=1e-12)  # its grid may be coarser
    assert (found >= exact * (1 - 1e-9)).all()
    at = epsilon(sampled_gaussian(sigma, q, rounds), DELTA, "pld").value
    assert certified_deltas(sampled_gaussian(sigma, q, rounds), np.array([at]))[0] == pytest.approx(DELTA, rel=5e-3)


def test_rdp_stands_in_where_pld_would_take_too_long():
    event = sampled_gaussian(50.0, 1e-3, 2_000_000)
    at = epsilon(event, DELTA, "rdp").value
    assert certified_deltas(event, np.array([at]))[0] == pytest.approx(DELTA, rel=5e-3)


def test_a_coarse_grid_is_pessimistic_and_close():
    """So much noise is missing that PLD at its default spacing would hold 10^7 points."""
    event = sampled_gaussian(0.15, 0.05, 20)
    at = epsilon(event, DELTA, "pld").value
    found = certified_deltas(event, np.array([at, at + 0.5]))
    assert found[0] >= DELTA * 0.999
    assert found[1] < DELTA


@given(
    sigma=st.floats(0.3, 20), q=st.floats(1e-4, 1), rounds=st.integers(1, 2000), e=st.floats(0, 20)
)  # fmt: skip
@settings(max_examples=60, deadline=None)
def test_known_cohort_delta_is_the_mean_over_how_often_it_is_drawn(sigma, q, rounds, e):
    k = np.arange(rounds + 1)
    each = [float(gaussian_deltas(math.sqrt(n) / sigma, np.array([e]))[0]) for n in k]
    exact = float(stats.binom.pmf(k, rounds, q) @ np.array(each))
    assert known_cohort_deltas(q, sigma, rounds, np.array([e]))[0] == pytest.approx(exact, abs=1e-12)


def test_known_cohort_of_everybody_is_gaussian():
    assert known_cohort_deltas(1.0, 2.0, 9, EPSILONS) == pytest.approx(gaussian_deltas(1.5, EPSILONS), abs=1e-12)


def test_one_known_cohort_is_the_labelled_pair():
    """(drawn, release) against (drawn, release): an integral over the releases of those who are drawn."""
    q, sigma, e = 0.2, 0.7, 0.4
    excess, _ = integrate.quad(
        lambda z: max(stats.norm.pdf(z, 1, sigma) - math.exp(e) * stats.norm.pdf(z, 0, sigma), 0), -8, 10, limit=400
    )
    assert known_cohort_deltas(q, sigma, 1, np.array([e]))[0] == pytest.approx(q * excess, rel=1e-5)


@pytest.mark.parametrize("q", [CELEBA, FEMNIST, 0.3])
@pytest.mark.parametrize("sigma", [0.11, 0.65, 2.42, 9.69])
def test_known_cohort_epsilon_is_below_its_rdp_bound_and_above_the_secret_cohort(q, sigma):
    event = dp_accounting.SelfComposedDpEvent(KnownCohortDpEvent(q, dp_accounting.GaussianDpEvent(sigma)), 400)
    exact = known_cohort_epsilon(q, sigma, 400, DELTA)
    assert exact < epsilon(event, DELTA, "rdp").value
    assert known_cohort_deltas(q, sigma, 400, np.array([exact]))[0] == pytest.approx(DELTA, rel=1e-5)
    if sigma > 0.5 and q < 0.1:
        assert exact > epsilon(sampled_gaussian(sigma, q, 400), DELTA, "pld").value


def test_known_cohort_at_the_ends():
    assert known_cohort_epsilon(0.1, 2.0, 0, DELTA) == 0
    assert known_cohort_epsilon(0.1, 0.0, 5, DELTA) == math.inf
    assert known_cohort_epsilon(1e-9, 0.0, 5, DELTA) == 0  # it is hardly ever drawn
    with pytest.raises(ValueError, match="10000001 rounds"):
        known_cohort_epsilon(0.1, 2.0, 10_000_001, DELTA)


@given(mu=st.floats(0.01, 6))
@settings(max_examples=30, deadline=None)
def test_a_curve_is_convex_decreasing_and_its_own_inverse(mu):
    f = tradeoff(EPSILONS, gaussian_deltas(mu, EPSILONS), A)
    assert (np.diff(f) <= 0).all()
    assert (np.diff(f, 2) >= -1e-12).all()
    assert (f <= 1 - A + 1e-12).all()
    inner = (f > 1e-3) & (f < 0.999)
    assert tradeoff(EPSILONS, gaussian_deltas(mu, EPSILONS), f[inner]) == pytest.approx(A[inner], abs=1e-3)


def test_gaussian_curve_is_the_error_of_the_best_threshold():
    a = np.array([0.05])
    assert gaussian_tradeoff(0.133, a)[0] == pytest.approx(1 - special.ndtr(special.ndtri(0.05) + 0.133))
