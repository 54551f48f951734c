"""Table P and Figure 3 of DPFedMTL: against the golden values, dp-accounting and the formulas."""

from __future__ import annotations

import math

import dp_accounting
import numpy as np
import pandas as pd
import pytest
from dp_accounting.pld import PLDAccountant
from scipy import optimize, stats

from fedpapers.experiment.guarantees import (
    CURVES,
    EPSILONS,
    PAPER,
    Setting,
    curves,
    epsilons,
    formula_noise_multiplier,
    settings_of_runs,
)
from fedpapers.privacy.rdp import BASE_ORDERS

DELTA = 1e-5
FAST = [setting for setting in PAPER if setting.noise_multiplier > 0.2]  # σ = 0.11 takes PLD 15 s


@pytest.fixture(scope="module")
def table():
    frame = pd.DataFrame(epsilons(FAST, DELTA), columns=list(EPSILONS))
    return frame.set_index(["dataset", "noise_multiplier", "noise", "accountant"])


@pytest.mark.parametrize(
    ("dataset", "sigma", "golden"),
    [
        ("celeba", 0.65, {"gdp": 0.4652, "pld": 1.4148, "prv": 1.4251, "rdp": 2.4023, "client": 17.54}),
        ("celeba", 2.42, {"client": 3.215}),
        ("celeba", 9.69, {"client": 0.656}),
        ("femnist", 0.65, {"gdp": 7.947, "pld": 9.425, "client": 65.99}),
        ("femnist", 2.42, {"gdp": 0.8453, "pld": 0.8676, "client": 10.38}),
        ("femnist", 9.69, {"gdp": 0.1781, "pld": 0.1791, "client": 2.026}),
    ],
)
def test_golden_values(table, dataset, sigma, golden):
    found = {
        name: table.loc[(dataset, sigma, *(("client", "rdp") if name == "client" else ("central", name))), "epsilon"]
        for name in golden
    }
    assert found == pytest.approx(golden, rel=8e-4)


def test_limit_understates_threefold_in_the_headline_setting(table):
    limit, exact = (table.loc[("celeba", 0.65, "central", name), "epsilon"] for name in ("gdp", "pld"))
    assert exact / limit == pytest.approx(3.04, abs=0.01)
    assert table.loc[("celeba", 0.65, "central", "gdp"), "approximation"]


@pytest.mark.parametrize("one", FAST)
def test_central_rows_are_dp_accounting_called_directly(table, one):
    accountant = PLDAccountant()
    gaussian = dp_accounting.GaussianDpEvent(one.noise_multiplier)
    accountant.compose(dp_accounting.PoissonSampledDpEvent(one.sampling_rate, gaussian), one.rounds)
    found = table.loc[(one.dataset, one.noise_multiplier, "central", "pld")]
    assert found["epsilon"] == accountant.get_epsilon(DELTA)
    assert found["relation"] == "add-or-remove-one"
    assert "not the server" in found["adversary"]


@pytest.mark.parametrize("one", FAST)
def test_client_rows_are_the_formula(table, one):
    """log(1 − p + p·exp(α(α−1)/(2σ²)))/(α−1) a round; to ε as dp-accounting does it."""
    a, p, sigma = BASE_ORDERS, one.sampling_rate, one.noise_multiplier
    with np.errstate(over="ignore"):
        rdp = one.rounds * np.log(1 - p + p * np.exp(a * (a - 1) / (2 * sigma**2))) / (a - 1)
    usual = np.isfinite(rdp) & (a >= 1.01)
    expected, _ = dp_accounting.rdp.compute_epsilon(a[usual], rdp[usual], DELTA)
    found = table.loc[(one.dataset, sigma, "client", "rdp")]
    assert found["epsilon"] == pytest.approx(expected, rel=1e-9)
    assert found["relation"] == "zero-out"
    assert "sees each noisy update" in found["adversary"]
    assert table.loc[(one.dataset, sigma, "client", "exact"), "epsilon"] < expected


def test_claimed_and_formula_and_one_release(table):
    assert [round(formula_noise_multiplier(e, DELTA), 3) for e in (45, 8, 2, 0.5)] == [0.108, 0.606, 2.422, 9.69]
    row = table.loc[("celeba", 0.65, "central", "pld")]
    assert (row["claimed_epsilon"], row["formula_noise_multiplier"]) == (8, pytest.approx(0.6056, abs=1e-4))
    mu = 1 / 0.65

    def excess(e):
        return stats.norm.cdf(mu / 2 - e / mu) - math.exp(e) * stats.norm.cdf(-mu / 2 - e / mu) - DELTA

    assert row["release_epsilon"] == pytest.approx(optimize.brentq(excess, 0, 30), rel=1e-8)
    assert row["release_epsilon"] < 7.45  # which the formula says for σ = 0.65


def test_cohort_size_breaks_the_central_number_but_not_the_zero_out_one(table):
    forced = table.loc[("femnist", 9.69, "client", "cohort-size"), "epsilon"]
    assert table.loc[("femnist", 9.69, "central", "pld"), "epsilon"] < forced == pytest.approx(1.19, abs=5e-3)


def test_no_noise_and_settings_without_known_clients():
    rows = pd.DataFrame(epsilons([Setting("ours", "mine", 0.1, 5, 0.0)], DELTA))
    assert np.isinf(rows["epsilon"]).all()
    assert np.isinf(rows["release_epsilon"]).all()
    assert "cohort-size" not in set(rows["accountant"])
    assert rows["claimed_epsilon"].isna().all()


def test_settings_of_runs_take_the_number_of_clients_from_the_data():
    planned = [
        {"dataset": "a", "cohort_size": 5, "rounds": 10, "noise_multiplier": 0.5},
        {"dataset": "b", "sampling_rate": 0.3, "rounds": 7, "noise_multiplier": 1.0},
    ]
    found = settings_of_runs(planned, {"a": 50, "b": 9})
    assert found == [Setting("ours", "a", 0.1, 10, 0.5, 50), Setting("ours", "b", 0.3, 7, 1.0, 9)]


@pytest.fixture(scope="module")
def lines():
    return pd.DataFrame(curves(PAPER), columns=list(CURVES))


def test_curves_are_between_certain_and_perfect(lines):
    for _, line in lines.groupby(["dataset", "noise_multiplier", "curve"]):
        type_1, type_2 = line["type_1"].to_numpy(), line["type_2"].to_numpy()
        assert len(line) == 101
        assert ((type_2 >= 0) & (type_2 <= 1 - type_1 + 1e-12)).all()
        assert (np.diff(type_2) <= 1e-12).all()


def test_more_noise_is_a_higher_curve_and_noise_at_the_clients_a_lower_one(lines):
    at = lines[np.isclose(lines["type_1"], 0.05)].set_index(["dataset", "noise_multiplier", "curve"])["type_2"]
    for dataset in ("celeba", "femnist"):
        for curve in ("limit", "central", "client"):
            values = [at[dataset, sigma, curve] for sigma in (0.11, 0.65, 2.42, 9.69)]
            assert values == sorted(values)
        assert all(at[dataset, sigma, "client"] < at[dataset, sigma, "central"] for sigma in (0.65, 2.42, 9.69))
    mu = 20 / 9343 * math.sqrt(400 * math.expm1(1 / 0.65**2))
    assert at["celeba", 0.65, "limit"] == pytest.approx(stats.norm.cdf(stats.norm.ppf(0.95) - mu), rel=1e-9)


def test_no_noise_reveals_whoever_is_drawn():
    line = pd.DataFrame(curves([Setting("ours", "mine", 0.1, 5, 0.0)]))
    at_zero = line[line["type_1"] == 0].set_index("curve")["type_2"]
    assert at_zero["client"] == pytest.approx(0.9**5)
    assert at_zero["limit"] == 0
