"""What a run's ledger says that each worker has spent."""

import math

import pytest
from opacus.accountants.analysis.rdp import compute_rdp, get_privacy_spent

from fedpapers.experiment.account import account
from fedpapers.experiment.progress import worst_epsilon
from fedpapers.experiment.store import state_path
from fedpapers.experiment.train import Segment, train_segment
from fedpapers.privacy.accounting import epsilon
from fedpapers.privacy.ledger import Ledger, spending_groups
from fedpapers.privacy.mechanism import Mechanism

GROUPS = {"A": ["1", "2"], "B": ["2", "3"], "C": ["4"]}


def rdp(q, sigma, times):
    """ε by Opacus called directly."""
    orders = [1.1 + k / 10 for k in range(300)]
    curve = compute_rdp(q=q, noise_multiplier=sigma, steps=times, orders=orders)
    return get_privacy_spent(orders=orders, rdp=curve, delta=1e-5)[0]


def test_a_worker_spends_in_each_of_its_groups():
    assert spending_groups(GROUPS, "update") == [("A",), ("A", "B"), ("B",), ()]
    assert spending_groups(GROUPS, None)[3] == ()


def test_a_group_of_one_spends_where_models_are_mixed():
    assert spending_groups(GROUPS, "model")[3] == ("C",)


def test_the_worst_worker_composes_its_groups():
    ledger, mechanism = Ledger(), Mechanism(0.25, 0.5, 1.0)
    for _ in range(20):
        ledger.record(GROUPS, mechanism)
    spent = [ledger.of_groups(groups) for groups in spending_groups(GROUPS, "update")]
    assert worst_epsilon(spent, 1e-5) == pytest.approx(rdp(0.25, 1.0, 40), rel=1e-3)
    assert epsilon(ledger.event(("A",)), 1e-5, "rdp").value == pytest.approx(rdp(0.25, 1.0, 20), rel=1e-3)
    assert epsilon(ledger.event(()), 1e-5, "pld").value == 0


@pytest.mark.parametrize(
    "mechanism",
    [
        Mechanism(0.3, 0.5, 0.8),
        Mechanism(1.0, 0.5, 0.8),
        Mechanism(0.3, 0.5, 0.8, noise="client"),
        Mechanism(0.3, 0.5, 0.8, exposed=True),
        Mechanism(0.3, 0.5, 0.0),
        Mechanism(0.3),
    ],
)
def test_the_log_says_what_the_tables_say(mechanism):
    ledger = Ledger()
    for _ in range(7):
        ledger.record(["A"], mechanism)
    shown = worst_epsilon([ledger.of_groups(["A"])], 1e-5)
    assert shown == epsilon(ledger.event(["A"]), 1e-5, "rdp").value
    assert math.isinf(shown) == (mechanism.noise_multiplier == 0 or mechanism.exposed)


@pytest.mark.parametrize(
    ("given", "releases"),
    [({}, 4), ({"algorithm": "dp-ogl-plus"}, 2), ({"algorithm": "dp-ogl-local"}, 2), ({"algorithm": "ogl"}, 4)],
)
def test_the_accounting_prices_what_training_released(given, releases, make_run, digits, partition_of, tmp_path):
    free = {"clipping_norm": None, "noise_multiplier": None, "noise": None} if given.get("algorithm") == "ogl" else {}
    run = make_run(evaluate_every=4, **given, **free)
    folder = tmp_path / f"run_{run.hash}"
    train_segment(Segment(run, folder, 0, 4, digits, partition_of(run), device="cpu"), lambda *_: None)
    (row,) = account([{"run": "r", "states": [str(state_path(folder, 4))]}], 1e-5, ["rdp"])
    private = given.get("algorithm") in (None, "dp-ogl-local")
    expected = rdp(0.5, 0.5, 2 * releases) if private else math.inf  # workers of Figure 1b are in up to two groups
    assert row["epsilon_max"] == pytest.approx(expected, rel=1e-3)
