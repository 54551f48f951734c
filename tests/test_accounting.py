"""ε against the raw libraries, closed forms and quadrature."""

from __future__ import annotations

import itertools
import math
import subprocess
import sys

import dp_accounting
import numpy as np
import pytest
from dp_accounting.gaussian_mechanism import get_epsilon_gaussian
from dp_accounting.pld import PLDAccountant
from dp_accounting.rdp import RdpAccountant, compute_epsilon
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, special, stats

from fedpapers.errors import InputError
from fedpapers.privacy.accounting import ACCOUNTANTS, all_epsilons, epsilon
from fedpapers.privacy.events import KnownCohortDpEvent
from fedpapers.privacy.gdp import gaussian_epsilon
from fedpapers.privacy.loss_distributions import pld_points
from fedpapers.privacy.rdp import (
    BASE_ORDERS,
    epsilon_at_orders,
    known_cohort_rdp,
    rdp_to_epsilon,
    sampled_gaussian_rdp,
)
from fedpapers.privacy.releases import releases, sampled_gaussian

CELEBA = 20 / 9343
FEMNIST = 3 / 178
DELTA = 1e-5


def value(sigma, q, steps, accountant, delta=DELTA):
    return epsilon(sampled_gaussian(sigma, q, steps), delta, accountant).value


@pytest.mark.parametrize(
    ("sigma", "q", "steps", "expected"),
    [
        (0.65, CELEBA, 400, {"pld": 1.4148, "prv": 1.4251, "rdp": 2.4023, "gdp": 0.4652}),
        (0.65, FEMNIST, 1000, {"gdp": 7.947, "pld": 9.425}),
        (2.42, FEMNIST, 1000, {"gdp": 0.8453, "pld": 0.8676}),
        (9.69, FEMNIST, 1000, {"gdp": 0.1781, "pld": 0.1791}),
    ],
)
def test_settings_of_dpfedmtl(sigma, q, steps, expected):
    found = {name: value(sigma, q, steps, name) for name in expected}
    assert found == pytest.approx(expected, rel=5e-3)


def test_rdp_uses_the_orders_that_dp_accounting_drops():
    answer = epsilon(sampled_gaussian(2, 0.5, 40), DELTA, "rdp")
    assert answer.value == pytest.approx(9.06671813266, abs=1e-10)
    assert answer.order == pytest.approx(3.4)


def test_large_epsilon_of_the_smallest_noise():
    answers = all_epsilons(sampled_gaussian(0.11, CELEBA, 400), DELTA)
    assert answers["pld"].value == pytest.approx(263.4, rel=5e-3)
    assert answers["rdp"].value > answers["pld"].value
    assert answers["prv"].value == answers["rdp"].value
    assert "prv failed" in answers["prv"].note
    assert "q=0.00214064, σ=0.11, T=400, δ=1e-05" in answers["prv"].note
    assert answers["gdp"].value == math.inf
    assert answers["gdp"].mu == pytest.approx(3.8e16, rel=0.01)
    assert answers["gdp"].note


@pytest.mark.parametrize(
    ("sigma", "q", "steps", "expected"),
    [
        (0.65, CELEBA, 400, 17.54),
        (2.42, CELEBA, 400, 3.215),
        (9.69, CELEBA, 400, 0.656),
        (0.65, FEMNIST, 1000, 65.99),
        (9.69, FEMNIST, 1000, 2.026),
    ],
)
def test_noise_at_the_clients(sigma, q, steps, expected):
    gaussian = dp_accounting.GaussianDpEvent(sigma)
    event = dp_accounting.SelfComposedDpEvent(KnownCohortDpEvent(q, gaussian), steps)
    answers = all_epsilons(event, DELTA, ["rdp", "pld"])
    assert answers["rdp"].value == pytest.approx(expected, rel=5e-3)
    assert answers["rdp"].relation == "zero-out"
    assert answers["pld"].value == answers["rdp"].value
    assert "cohort" in answers["pld"].note
    assert value(sigma, q, steps, "rdp") < answers["rdp"].value


def test_known_cohort_rdp_is_the_divergence_of_the_labelled_pair():
    q, sigma, order = 0.3, 1.5, 2.7
    gaussian, _ = integrate.quad(
        lambda z: stats.norm.pdf(z, 1, sigma) ** order * stats.norm.pdf(z, 0, sigma) ** (1 - order), -40, 40
    )
    expected = math.log((1 - q) + q * gaussian) / (order - 1)
    assert known_cohort_rdp(q, sigma, np.array([order]))[0] == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("q", [1e-3, 0.02, 0.5, 0.9])
@pytest.mark.parametrize("sigma", [0.3, 1.0, 4.0])
@pytest.mark.parametrize("order", [1.1, 1.8, 2.0, 3.4, 7.9])
def test_rdp_against_quadrature(q, sigma, order):
    def integrand(z):
        likelihood_ratio = np.logaddexp(math.log1p(-q), math.log(q) + (2 * z - 1) / (2 * sigma**2))
        return np.exp(stats.norm.logpdf(z, scale=sigma) + order * likelihood_ratio)

    edges = [-12 * sigma, 0, 0.5, order, order + 12 * sigma]
    moment = sum(
        integrate.quad(integrand, a, b, epsabs=0, epsrel=1e-13, limit=500)[0] for a, b in itertools.pairwise(edges)
    )
    assert sampled_gaussian_rdp(q, sigma, np.array([order]))[0] == pytest.approx(
        math.log(moment) / (order - 1), rel=1e-7, abs=1e-11
    )


def test_rdp_against_opacus():
    from opacus.accountants.analysis.rdp import compute_rdp

    orders = BASE_ORDERS[::9]
    for q, sigma in [(CELEBA, 0.65), (FEMNIST, 2.42), (0.5, 2.0), (0.9, 0.5)]:
        expected = compute_rdp(q=q, noise_multiplier=sigma, steps=1, orders=list(orders))
        np.testing.assert_allclose(sampled_gaussian_rdp(q, sigma, orders), expected, rtol=1e-6)


def test_rdp_against_dp_accounting_at_integer_orders():
    orders = np.array([2.0, 3, 11, 63, 256, 4096])
    for q, sigma in [(CELEBA, 0.65), (0.5, 2.0), (0.9, 0.5), (1.0, 3.0)]:
        raw = RdpAccountant(orders=list(orders)).compose(sampled_gaussian(sigma, q, 7)).rdp
        np.testing.assert_allclose(7 * sampled_gaussian_rdp(q, sigma, orders), raw, rtol=1e-8)


@settings(deadline=None)
@given(st.floats(1e-4, 1e3), st.floats(1e-12, 0.5))
def test_conversion_is_that_of_dp_accounting(scale, delta):
    rdp = scale * BASE_ORDERS
    expected, order = compute_epsilon(BASE_ORDERS, rdp, delta)
    found = epsilon_at_orders(BASE_ORDERS, rdp, delta)
    assert max(0, found.min()) == pytest.approx(expected, rel=1e-12)
    assert BASE_ORDERS[np.argmin(found)] == order


@pytest.mark.parametrize(("sigma", "beyond"), [(100.0, lambda order: order > 256), (0.005, lambda order: order < 1.1)])
def test_order_grid_widens(sigma, beyond):
    found, order = rdp_to_epsilon(lambda orders: orders / (2 * sigma**2), DELTA)
    assert beyond(order)
    # The best bound of a Gaussian over all orders; the grid may miss it by little.
    orders = 1 + np.logspace(-6, 6, 100_001)
    best = epsilon_at_orders(orders, orders / (2 * sigma**2), DELTA).min()
    assert best <= found <= 1.02 * best
    assert found < epsilon_at_orders(BASE_ORDERS, BASE_ORDERS / (2 * sigma**2), DELTA).min()


@pytest.mark.parametrize(("sigma", "steps"), [(1.0, 1), (4.0, 10), (20.0, 50), (2.0, 40)])
def test_without_sampling_it_is_the_analytic_gaussian_mechanism(sigma, steps):
    exact = get_epsilon_gaussian(sigma / math.sqrt(steps), DELTA)  # Balle, Wang 2018, theorem 8
    assert exact <= value(sigma, 1.0, steps, "pld") <= exact + 1e-3
    assert exact <= value(sigma, 1.0, steps, "prv") <= exact + 0.02
    assert exact <= value(sigma, 1.0, steps, "rdp")


@settings(deadline=None)
@given(st.floats(1e-3, 50), st.floats(1e-12, 0.5))
def test_limit_solves_its_equation(mu, delta):
    found = gaussian_epsilon(mu, delta)
    at_found = special.ndtr(-found / mu + mu / 2) - math.exp(min(700, found) + special.log_ndtr(-found / mu - mu / 2))
    if found == 0:
        assert at_found <= delta * (1 + 1e-9)
    elif found < 700:
        assert at_found == pytest.approx(delta, rel=1e-6, abs=1e-13)


def test_limit_is_the_analytic_gaussian_mechanism():
    for mu in (0.01, 0.13, 1.7, 12.0, 200.0):
        assert gaussian_epsilon(mu, DELTA) == pytest.approx(get_epsilon_gaussian(1 / mu, DELTA), rel=1e-6)


def test_heterogeneous_composition_against_dp_accounting():
    gaussian = dp_accounting.GaussianDpEvent
    sampled = dp_accounting.PoissonSampledDpEvent
    event = dp_accounting.ComposedDpEvent(
        [
            dp_accounting.SelfComposedDpEvent(sampled(0.05, gaussian(1.1)), 30),
            dp_accounting.SelfComposedDpEvent(sampled(0.2, gaussian(3.0)), 10),
            gaussian(8.0),
            dp_accounting.NoOpDpEvent(),
        ]
    )
    assert epsilon(event, DELTA, "pld").value == pytest.approx(PLDAccountant().compose(event).get_epsilon(DELTA))
    raw = RdpAccountant(orders=BASE_ORDERS).compose(event).get_epsilon(DELTA)
    found = epsilon(event, DELTA, "rdp")
    assert raw * (1 - 1e-4) <= found.value <= raw  # dp-accounting adds up the absolute values of its series
    assert epsilon(event, DELTA, "pld").value <= epsilon(event, DELTA, "prv").value <= found.value
    parts = [epsilon(part, DELTA, "gdp").mu for part in event.events]
    assert epsilon(event, DELTA, "gdp").mu == pytest.approx(math.hypot(*parts))


def test_equal_releases_are_counted_together():
    one = dp_accounting.PoissonSampledDpEvent(0.1, dp_accounting.GaussianDpEvent(1.0))
    nested = dp_accounting.ComposedDpEvent([one, dp_accounting.SelfComposedDpEvent(one, 4), one])
    assert releases(nested) == releases(sampled_gaussian(1.0, 0.1, 6)) == ((0.1, 1.0, 6, False),)


@settings(max_examples=5, deadline=None)
@given(st.floats(0.8, 8), st.floats(1e-3, 0.9), st.integers(1, 300), st.sampled_from([1e-8, 1e-5, 1e-2]))
def test_bounds_are_ordered(sigma, q, steps, delta):
    answers = all_epsilons(sampled_gaussian(sigma, q, steps), delta, ["pld", "prv", "rdp"])
    assert answers["pld"].value <= answers["prv"].value * (1 + 1e-3) + 1e-3
    assert answers["pld"].value <= answers["rdp"].value * (1 + 1e-6) + 1e-3
    assert answers["prv"].value <= answers["rdp"].value * (1 + 1e-6) + 0.02


@settings(max_examples=60, deadline=None)
@given(
    st.floats(0.01, 100),
    st.floats(1e-5, 0.9),
    st.integers(1, 10**6),
    st.floats(1.01, 3),
    st.sampled_from(["rdp", "gdp"]),
)
def test_epsilon_falls_with_noise_and_rises_with_steps_and_rate(sigma, q, steps, factor, name):
    base = value(sigma, q, steps, name)
    slack = 1 + 1e-9
    assert value(sigma * factor, q, steps, name) <= base * slack
    assert base <= value(sigma, min(1.0, q * factor), steps, name) * slack + 1e-9
    assert base <= value(sigma, q, math.ceil(steps * factor), name) * slack


@settings(max_examples=3, deadline=None)
@given(st.floats(1, 5), st.floats(1e-3, 0.5), st.integers(1, 200), st.floats(1.1, 2), st.sampled_from(["pld", "prv"]))
def test_numerical_epsilon_is_monotone(sigma, q, steps, factor, name):
    base = value(sigma, q, steps, name)
    slack = 1e-3
    assert value(sigma * factor, q, steps, name) <= base + slack
    assert base <= value(sigma, q * factor, steps, name) + slack
    assert base <= value(sigma, q, math.ceil(steps * factor), name) + slack


@pytest.mark.parametrize("name", ACCOUNTANTS)
def test_no_noise_and_no_steps(name):
    assert value(0, 0.1, 5, name) == math.inf
    assert value(1, 0.1, 0, name) == 0
    assert value(0, 0.1, 0, name) == 0
    assert epsilon(dp_accounting.NonPrivateDpEvent(), DELTA, name).note
    assert epsilon(dp_accounting.NoOpDpEvent(), DELTA, name).value == 0


@pytest.mark.parametrize(
    ("sigma", "q", "steps", "delta"),
    [
        (1e-3, CELEBA, 400, 1e-5),
        (0.65, CELEBA, 10**6, 1e-5),
        (0.65, 1.0, 10**6, 1e-5),
        (1e-200, 1e-300, 3, 1e-5),
        (1e200, 0.5, 2**53, 1e-5),
        (1.0, 1 - 1e-16, 4, 1e-300),
        (5e-324, 5e-324, 1, 5e-324),
        (1.0, 0.1, 10, 1 - 1e-16),
        (0.01, 1.0, 2**53, 0.5),
    ],
)
def test_extreme_parameters_end_soon_in_a_bound_or_a_reason(sigma, q, steps, delta):
    answers = all_epsilons(sampled_gaussian(sigma, q, steps), delta)
    for name, answer in answers.items():
        assert answer.value >= 0, name
        assert not math.isnan(answer.value)
        if answer.value == math.inf:
            assert f"δ={delta:g}" in answer.note


@given(st.floats(0, 1e300, exclude_min=True), st.floats(0, 1, exclude_min=True), st.integers(1, 2**53))
@settings(deadline=None)
def test_rdp_never_hides_an_overflow(sigma, q, steps):
    answer = epsilon(sampled_gaussian(sigma, q, steps), DELTA, "rdp")
    assert answer.value >= 0
    assert (answer.order is None) == (answer.value == math.inf) == (answer.note is not None)
    if sigma < 1e-3 and q > 0.01:
        assert answer.value > 1000


def test_many_kinds_of_release_fall_back_before_they_take_hours():
    sampled = [
        dp_accounting.PoissonSampledDpEvent(0.01 + k / 1e4, dp_accounting.GaussianDpEvent(1.0)) for k in range(80)
    ]
    answer = epsilon(dp_accounting.ComposedDpEvent(sampled), DELTA, "pld")
    assert "77 more" in answer.note
    assert answer.value == epsilon(dp_accounting.ComposedDpEvent(sampled), DELTA, "rdp").value


def test_predicted_points_cover_those_of_dp_accounting():
    for sigma, q, steps in [
        (0.65, CELEBA, 400),
        (0.65, FEMNIST, 1000),
        (2, 0.5, 40),
        (1.0, 0.9, 3),
        (9.69, FEMNIST, 1000),
    ]:
        pld = PLDAccountant().compose(sampled_gaussian(sigma, q, steps))._pld
        held = pld._pmf_remove.size + pld._pmf_add.size
        assert held / 1.5 <= pld_points(releases(sampled_gaussian(sigma, q, steps))) <= 25 * held


def test_bad_values_and_unknown_events_name_themselves():
    event = sampled_gaussian(1, 0.1, 1)
    for delta in (0, 1, -1, math.nan):
        with pytest.raises(InputError, match="--delta"):
            epsilon(event, delta, "pld")
    with pytest.raises(InputError, match="did you mean 'prv'"):
        epsilon(event, DELTA, "prw")
    for q in (0, -0.1, 1.1, math.nan):
        with pytest.raises(InputError, match="--sampling-rate"):
            epsilon(sampled_gaussian(1, q, 1), DELTA, "rdp")
    with pytest.raises(dp_accounting.UnsupportedEventError, match="LaplaceDpEvent"):
        epsilon(dp_accounting.LaplaceDpEvent(1.0), DELTA, "rdp")


def test_opacus_is_imported_for_prv_only():
    script = (
        "import sys\n"
        "from fedpapers.privacy.accounting import all_epsilons\n"
        "from fedpapers.privacy.releases import sampled_gaussian\n"
        "assert 'dp_accounting' not in sys.modules\n"
        "all_epsilons(sampled_gaussian(1.0, 0.1, 5), 1e-5, ['pld', 'rdp', 'gdp'])\n"
        "assert 'opacus' not in sys.modules and 'torch' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


@pytest.mark.parametrize(("sigma", "q", "steps"), [(50.0, 1e-9, 10**9), (50.0, 1e-6, 10**8), (1e5, 0.5, 10**9)])
def test_pld_gives_way_to_rdp_where_it_would_take_minutes(sigma: float, q: float, steps: int) -> None:
    event = sampled_gaussian(sigma, q, steps)
    answer = epsilon(event, 1e-5, "pld")
    assert answer.value == epsilon(event, 1e-5, "rdp").value
    assert answer.note is not None and "sampled releases" in answer.note
