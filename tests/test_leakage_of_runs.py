"""What trained runs leak: the accounting, the table and its figures, and the verdicts on DP-OGL's claims."""

import math

import numpy as np
import pandas as pd
import pytest

from fedpapers import groups
from fedpapers.experiment.account_leakage import account_leakage, mechanism_of
from fedpapers.experiment.store import read_record
from fedpapers.federated.algorithms import ALGORITHMS, Algorithm
from fedpapers.privacy import group_mechanisms
from fedpapers.privacy.group_mechanisms import Training
from fedpapers.privacy.leakage_report import leakage_report
from fedpapers.privacy.ledger import Ledger
from fedpapers.privacy.mechanism import Mechanism
from fedpapers.reporting.dpogl_verdicts import verdict_of_audit, verdicts_of_runs, verdicts_of_study
from fedpapers.reporting.leakage_of_runs import leakage_table, plot_accuracy_by_leakage, plot_role_of_interval

DELTA = 1e-5
FIGURE_1B = groups.overlapping()


@pytest.fixture
def leaks(monkeypatch):
    """What a run leaks whose record is made of these keys."""

    def found(algorithm, training_groups, **keys):
        run = {
            "algorithm": algorithm, "model": "linear", "local_steps": 1, "batch_size": 8, "learning_rate": 0.1,
            "evaluate_every": 2, "seed": 0, "dataset_name": "mnist", "dataset": {"kind": "mnist", "source": "embedded"},
            "partition": {"scheme": "shards", "shards_per_client": 2}, "structure": {"kind": "overlapping"}, **keys,
        }  # fmt: skip
        mechanism = Mechanism(keys.get("sampling_rate", 1.0), 0.5, keys.get("noise_multiplier", 0.0))
        ledger = Ledger()
        ledger.record(training_groups.names, mechanism)
        record = {"run": run, "last": 20, "groups": training_groups.members, "ledger": ledger.describe()}
        monkeypatch.setattr("fedpapers.experiment.account_leakage.read_record_of_run", lambda path: record)
        (row,) = account_leakage([{"run": "a", "states": ["state"]}], DELTA)
        return row

    return found


NOISY = {"sampling_rate": 0.5, "clipping_norm": 0.5, "noise_multiplier": 2.0, "noise": "central"}
GROUPED = {"grouping": "overlapping", "interval": 5, "mixing": "update"}


def test_an_algorithm_is_bounded_by_what_it_does_whatever_its_name():
    for name in group_mechanisms.ALGORITHMS:
        assert mechanism_of(ALGORITHMS[name]) == name
    shown = Algorithm("New", ("overlapping",), private_mechanism=True, releases="interval", exchanges=True)
    assert mechanism_of(shown) == "dp-ogl-plus"  # within a group ε is infinite


def test_pairs_are_those_of_the_leakage_report(leaks):
    report = leakage_report(FIGURE_1B, Training(20, 5, "dp-ogl-plus"), [2.0] * 5, [0.5] * 5, DELTA)
    inside = {(i, j) for own in FIGURE_1B.members.values() for i in own for j in own}
    place = {worker: n for n, worker in enumerate(report["workers"])}
    outside = [(place[i], place[j]) for i in place for j in place if (i, j) not in inside]
    row = leaks("dp-ogl-plus", FIGURE_1B, **NOISY, **GROUPED)
    assert row["in_group_max"] == math.inf
    assert row["out_of_group_max"] == max(report["epsilon"][i][j] for i, j in outside)
    assert row["out_of_group_mean"] == pytest.approx(np.mean([report["epsilon"][i][j] for i, j in outside]))
    assert row["claimed_out_of_group_max"] == max(report["bounds"]["paper"][i][j] for i, j in outside)


def test_one_group_leaks_as_much_to_strangers(leaks):
    row = leaks("dpfedavg", FIGURE_1B.merged(), **NOISY)
    assert row["in_group_max"] == row["out_of_group_max"] == pytest.approx(row["out_of_group_mean"])
    assert 0 < row["out_of_group_max"] < math.inf and row["claimed_out_of_group_max"] is None


def test_disjoint_groups_and_lonely_workers_leak_nothing_out_of_group(leaks):
    disjoint = GROUPED | {"grouping": "disjoint"}
    assert leaks("dp-ogl", FIGURE_1B.disjoint(), **NOISY, **disjoint)["out_of_group_max"] == 0
    assert leaks("ogl", FIGURE_1B.disjoint(), sampling_rate=0.5, **disjoint)["out_of_group_max"] == 0
    assert leaks("local", FIGURE_1B.separated())["in_group_max"] == 0


def test_without_noise_or_with_the_clients_noise_there_is_no_guarantee(leaks):
    assert leaks("ogl", FIGURE_1B, sampling_rate=0.5, **GROUPED)["out_of_group_max"] == math.inf
    row = leaks("dp-ogl", FIGURE_1B, **NOISY | {"noise": "client"}, **GROUPED)
    assert row["out_of_group_max"] == math.inf


def test_models_that_cross_unclipped_have_the_naive_bound(leaks):
    """With `mixing: model` a neighbour's model enters the sum's base unclipped: no bound that counts on clipping."""
    report = leakage_report(FIGURE_1B, Training(20, 5), [2.0] * 5, [0.5] * 5, DELTA)
    largest = max(value for row in report["bounds"]["naive"] for value in row if value is not None)
    row = leaks("dp-ogl", FIGURE_1B, **NOISY, **GROUPED | {"mixing": "model"})
    assert row["out_of_group_max"] == largest > leaks("dp-ogl", FIGURE_1B, **NOISY, **GROUPED)["out_of_group_max"]


# Tables and figures


def run(algorithm, accuracy, sigma=None, interval=1.0, grouping="overlapping", out=1.0, claimed=None, mixing="update"):
    grouped = algorithm not in ("fedavg", "dpfedavg", "local")
    titles = {"dp-ogl": "DP-OGL", "dp-ogl-plus": "DP-OGL+", "dpfedavg": "DPFedAvg", "ogl": "OGL", "local": "Local"}
    return {
        "algorithm": algorithm, "title": titles[algorithm], "structure": "s", "rounds": 10, "noise_multiplier": sigma,
        "interval": interval if grouped else None, "mixing": mixing if grouped else None, "accuracy": accuracy,
        "groups": f"{grouping} groups" if grouped else "one group", "in_group_max": 2 * out, "out_of_group_max": out,
        "out_of_group_mean": out / 2, "claimed_out_of_group_max": claimed, "delta": DELTA,
    }  # fmt: skip


@pytest.fixture
def runs():
    """Two seeds of each run."""
    means = [
        run("local", 0.7, out=0.0),
        run("ogl", 0.9, out=math.inf),
        run("ogl", 0.85, out=0.0, grouping="disjoint"),
        *(run("dpfedavg", a, s, out=o) for a, s, o in ((0.8, 0.5, 8.0), (0.5, 1.0, 2.0))),
        *(run("dp-ogl", a, s, out=o) for a, s, o in ((0.75, 0.5, 6.0), (0.6, 1.0, 3.0))),
        run("dp-ogl", 0.7, 0.5, out=0.0, grouping="disjoint"),
        run("dp-ogl", 0.7, 0.5, interval=5.0, out=4.0),
        *(run("dp-ogl-plus", a, s, interval=5.0, out=900.0, claimed=3.0) for a, s in ((0.74, 0.5), (0.5, 1.0))),
        run("dp-ogl", 0.8, 0.5, mixing="model", out=6.0),
    ]
    rows = [row | {"run": f"{n}-{seed}", "seed": seed} for n, row in enumerate(means) for seed in (0, 1)]
    frame = pd.DataFrame(rows)
    frame["accuracy"] += np.where(frame["seed"] == 0, -0.01, 0.01)
    frame["method"] = frame["title"] + ", " + frame["groups"]
    return frame.astype({"claimed_out_of_group_max": float, "noise_multiplier": float})


def test_table_has_a_row_a_method(runs):
    table = leakage_table(runs).set_index(["Algorithm", "Groups", "σ", "S", "mixing"])
    assert len(table) == len(runs) / 2
    plus = table.loc[("DP-OGL+", "overlapping groups", "0.5", "5", "update")]
    assert list(plus) == ["s", "74.0 ± 1.4", "2", "1800", "900", "450", "3"]
    assert table.loc[("OGL", "overlapping groups", "–", "1", "update"), "ε out of group (max)"] == "inf"
    assert table.loc[("Local", "one group", "–", "–", "–"), "claimed, unproven (max)"] == "–"


def test_trade_off_shows_zero_infinity_and_the_claim(runs):
    figure = plot_accuracy_by_leakage(runs, "tiny")
    labels = {text.get_text() for text in figure.legends[0].get_texts()}
    assert "OGL, overlapping groups, S = 1 (ε = inf)" in labels
    assert "DP-OGL+, overlapping groups, S = 5, claimed, unproven" in labels
    assert not any("mixing models" in label for label in labels)  # one noise multiplier of it is no sweep
    lines = {line.get_label(): line for line in figure.axes[0].get_lines()}
    assert len(lines) >= len(labels) - 6
    assert figure.axes[0].get_xscale() == "symlog"


def test_role_of_interval_is_at_one_noise_multiplier(runs):
    figure = plot_role_of_interval(runs, "tiny")
    assert "σ = 0.5" in figure.get_suptitle()
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    assert labels == ["DP-OGL", "DP-OGL+", "DP-OGL+, claimed, unproven", "DP-OGL, mixing models"]
    nothing = plot_role_of_interval(runs[runs["algorithm"] == "local"], "tiny")
    assert "no private runs" in nothing.texts[0].get_text()


def test_verdicts_of_runs(runs):
    overlapping, equal, longer, plus = verdicts_of_runs(runs)
    assert overlapping.outcome == "holds" and "+5.0 ± 0.0 at σ = 0, +5.0 ± 0.0 at σ = 0.5" in overlapping.evidence
    # 0.5 + 0.3 · log(ε / 2) / log 4 of the one group: 73.8 % at ε = 6, 58.8 % at 3
    assert equal.outcome == "holds" and "+1.2 ± 0.0 at ε = 3, +1.2 ± 0.0 at ε = 6" in equal.evidence
    assert longer.outcome == "holds" and "ε 6 at S = 1, 4 at S = 5" in longer.evidence
    assert plus.outcome == "holds" and "+4.0 ± 0.0 at S = 5, σ = 0.5" in plus.evidence


def test_verdicts_turn_with_the_numbers(runs):
    def outcome(number, column, where, value):
        changed = runs.assign(**{column: np.where(where, value, runs[column])})
        return list(verdicts_of_runs(changed))[number].outcome

    assert outcome(0, "accuracy", runs["groups"] == "disjoint groups", 0.99) == "does not hold"
    assert outcome(1, "accuracy", runs["algorithm"] == "dpfedavg", 0.99) == "does not hold"
    assert outcome(2, "out_of_group_max", runs["interval"] == 5, 7.0) == "holds in part"
    assert outcome(2, "out_of_group_max", runs["interval"] == 5, 6.0) == "holds in part"  # no less, no more
    assert outcome(3, "accuracy", runs["algorithm"] == "dp-ogl-plus", 0.1) == "does not hold"
    noisy = (runs["algorithm"] == "dp-ogl-plus") & (runs["seed"] == 0)
    assert outcome(3, "accuracy", noisy, 0.5) == "not decided"  # seeds disagree by more than they differ
    assert {verdict.outcome for verdict in verdicts_of_runs(runs[runs["algorithm"] == "local"])} == {"not decided"}


def test_verdicts_compare_within_one_structure(runs):
    other = runs.assign(structure="other", accuracy=0.01, run="x" + runs["run"])
    assert list(verdicts_of_runs(pd.concat([runs, other]))) == list(verdicts_of_runs(runs))


def pair(algorithm, bound, distance, epsilon):
    head = {"structure": "s", "algorithm": algorithm, "S": 5, "T": 10, "from": "a", "to": f"b{distance}"}
    return head | {"distance": distance, "bound": bound, "epsilon": epsilon}


def study(plus=5.0, far=0.0, exact=0.5):
    pairs = [pair("dp-ogl", "percolation", d, e) for d, e in ((0.0, 4.0), (1.0, 2.0), (2.0, far), (math.inf, 0.0))]
    pairs += [pair("dp-ogl-plus", b, d, e) for d in (1.0, 2.0) for b, e in (("percolation", plus), ("paper", 1.0))]
    bounds = {"naive": 4.0, "delay": 3.0, "cut": 2.0, "percolation": 1.0, "exact": exact}
    over_time = [{"sampling_rate": 1, "T": 5, "distance": 1, "bound": b, "epsilon": e} for b, e in bounds.items()]
    return pd.DataFrame(pairs), pd.DataFrame(over_time)


def test_verdicts_of_the_study():
    falls, plus, below = verdicts_of_study(*study(), interval=5)
    assert (falls.outcome, plus.outcome, below.outcome) == ("holds", "does not hold", "holds")
    assert "of 1 pairs that leak at S = 5, DP-OGL+ has the smaller ε in 1 by the claimed form" in plus.evidence
    falls, plus, below = verdicts_of_study(*study(plus=0.05, far=0.1, exact=1.5), interval=5)
    assert (falls.outcome, plus.outcome, below.outcome) == ("holds in part", "holds", "does not hold")


def test_verdict_of_the_audit():
    def table(audit):
        bounds = {"naive": 4.0, "delay": 3.0, "cut": 2.0, "percolation": 2.0, "paper": 1.0, "audit": audit}
        return pd.DataFrame([pair("dp-ogl-plus", bound, 1.0, epsilon) for bound, epsilon in bounds.items()])

    good, bad = verdict_of_audit(table(1.5)), verdict_of_audit(table(2.5))
    assert good.outcome == "holds" and "claimed ε at 1 of 1 distances" in good.evidence
    assert bad.outcome == "does not hold" and "in 2 of 4 comparisons" in bad.evidence


def test_a_damaged_record_ends_in_one_line(tmp_path):
    with pytest.raises(Exception, match="missing or damaged"):
        read_record(tmp_path / "round-000001.safetensors")
