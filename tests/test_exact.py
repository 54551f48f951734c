"""The exact leakage of linear-quadratic runs: golden values, below every bound, and the counterexample to DP-OGL+."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from scipy.integrate import quad

from fedpapers.groups import Groups, from_mapping
from fedpapers.privacy import every_cut
from fedpapers.privacy.divergence import ORDERS
from fedpapers.privacy.exact import COUNTEREXAMPLE_WORKERS, LinearRun, interval_updates, plus_counterexample
from fedpapers.privacy.group_graph import FAR
from fedpapers.privacy.group_mechanisms import EpochMechanisms, IntervalMechanisms, Training
from fedpapers.privacy.leakage import Leakage, Source

GOLDEN = json.loads((Path(__file__).parent / "golden/leakage.json").read_text(encoding="utf-8"))
CHAIN = from_mapping({str(m): workers for m, workers in enumerate(GOLDEN["linear"]["groups"])})


def chain(training, response, **more):
    return LinearRun(CHAIN, training, dict.fromkeys(CHAIN.workers, response), [1.0] * 4, "0", **more)


@pytest.mark.parametrize("row", GOLDEN["linear"]["rows"], ids=lambda row: "-".join(map(str, list(row.values())[:6])))
def test_chain_of_four(row):
    epochs = row["T"]
    if row["alg"] == "dp_ogl_plus":
        # The golden rows leave a last, shorter interval un-noised; the observer then learns as much as from a full one.
        epochs = -(-epochs // row["S"]) * row["S"]
    run = chain(Training(epochs, row["S"], row["alg"].replace("_", "-")), row["lambda"])
    observer = str(row["observer"])
    assert run.divergence(observer) == pytest.approx(row["rdp2_input_all_plus"], rel=1e-8)
    # The golden worst case is a local maximum, ours the global one; they differ in the source's own group, if at all.
    assert run.worst_divergence(observer) >= row["rdp2_worst_sign_input"] * (1 - 1e-8)
    assert run.worst_divergence(observer) == pytest.approx(
        row["rdp2_worst_sign_input"], rel=3e-3 if row["d"] == 0 else 1e-8
    )
    if "plan_bound" in row:
        assert run.shift_plan(observer) == pytest.approx(row["plan_bound"], rel=1e-4)
        assert run.shift_plan(observer) >= run.worst_divergence(observer) * (1 - 1e-9)


@pytest.mark.parametrize("row", GOLDEN["linear_replace"], ids=lambda row: f"observer-{row['observer']}")
def test_replacing_the_source(row):
    """Both worlds train it; its optima differ by 1, so each update differs by Λ."""
    run = chain(Training(12, 3), 0.3, stays=True)
    assert run.divergence(str(row["observer"]), 0.3) == pytest.approx(row["rdp2"], rel=1e-8)


def test_one_release_by_its_formula():
    run = LinearRun(Groups({"A": ("1", "2")}), Training(1, 1), {"1": 0.5, "2": 0.5}, [2.0], "1")
    assert run.divergence("2") == pytest.approx(1 / 2.0**2)
    assert run.divergence("2", 0.0) == 0


def test_unnoised_models_in_group_are_not_covered():
    run = chain(Training(6, 3, "dp-ogl-plus"), 0.3)
    assert run.divergence("1") == run.worst_divergence("1") == np.inf


# Below every bound


def random_run(draw, algorithm):
    """A small run; some are strings in which exactly the first interval reaches the far end (K = ρ + 1)."""
    hops = int(draw.integers(1, 4))
    if draw.random() < 0.4:
        members = [[2 * m, 2 * m + 1, 2 * m + 2] for m in range(hops + 1)]
        interval = int(draw.integers(1, 3)) if hops < 3 else 1
        epochs = interval * hops + int(draw.integers(1, interval + 1))
    else:
        workers = int(draw.integers(4, 9))
        members = [draw.permutation(workers)[: draw.integers(2, 4)].tolist() for _ in range(draw.integers(2, 5))]
        interval, epochs = int(draw.integers(1, 4)), int(draw.integers(1, 7))
    structure = from_mapping({f"G{m}": held for m, held in enumerate(members)})
    response = dict(zip(structure.workers, draw.uniform(0.05, 1.5, len(structure.workers)), strict=True))
    noise = draw.choice([0.5, 1.0, 2.0], len(members)).tolist()
    source = structure.workers[0] if draw.random() < 0.5 else str(draw.choice(structure.workers))
    return LinearRun(structure, Training(epochs, interval, algorithm), response, noise, source)


def violations(runs):
    """Pairs whose exact divergence exceeds a bound, all that were compared, and those with K = ρ + 1 that leak."""
    wrong, compared, last = [], 0, 0
    for run in runs:
        whole = Leakage(run.structure, run.noise, [1.0] * len(run.noise), run.training, 1e-5)
        source = Source(whole, int(whole.graph.class_of[run.structure.workers.index(run.source)]))
        bounds = source.divergences()
        for n, observer in enumerate(run.structure.workers):
            if observer == run.source:
                continue
            of_class = whole.graph.class_of[n]
            exact = run.worst_divergence(observer) * ORDERS / 2
            distance = source.distance[of_class]
            last += bool(distance not in (0, FAR) and whole.mechanisms.intervals == distance + 1 and exact[0] > 1e-12)
            for name in ("naive", "delay", "cut", "percolation"):
                bound = np.broadcast_to(bounds[name], (len(whole.graph.size), len(ORDERS)))[of_class]
                compared += 1
                if (exact > bound * (1 + 1e-9) + 1e-12).any():
                    wrong.append((name, run, observer))
    return wrong, compared, last


def runs(algorithm, number, seed=0):
    draw = np.random.default_rng(seed)
    return [random_run(draw, algorithm) for _ in range(number)]


@pytest.mark.parametrize("most_groups", [every_cut.MOST_GROUPS, 0], ids=["every-cut", "layers"])
@pytest.mark.parametrize("algorithm", ["dp-ogl", "dp-ogl-plus"])
def test_exact_is_below_every_bound(algorithm, most_groups, monkeypatch):
    monkeypatch.setattr(every_cut, "MOST_GROUPS", most_groups)
    wrong, compared, last = violations(runs(algorithm, 250, seed=most_groups))
    assert not wrong
    assert compared > 2000
    assert last > 50


@pytest.mark.parametrize(("algorithm", "mechanism"), [("dp-ogl", EpochMechanisms), ("dp-ogl-plus", IntervalMechanisms)])
def test_one_interval_less_is_caught(algorithm, mechanism, monkeypatch):
    """A count that is one interval short breaks the comparison above."""
    right = mechanism.releases
    late = lambda self, distance: right(self, np.where(distance == 0, 0, distance + (distance < FAR)))  # noqa: E731
    monkeypatch.setattr(mechanism, "releases", late)
    wrong, _, _ = violations(runs(algorithm, 40))
    assert any(name == "delay" for name, _, _ in wrong)


@pytest.mark.parametrize("seed", range(3))
def test_shift_plan_covers_what_runs_leak(seed):
    for run in runs("dp-ogl", 30, seed):
        if max(run.response.values()) <= 1:
            for observer in set(run.structure.workers) - {run.source}:
                assert run.worst_divergence(observer) <= run.shift_plan(observer) * (1 + 1e-6) + 1e-12


# The counterexample


def test_counterexample():
    golden = GOLDEN["counterexample"]
    found = plus_counterexample()
    assert found.present == pytest.approx(golden["clipped_accumulated_present"], abs=3e-4)
    assert found.absent == pytest.approx(golden["clipped_accumulated_removed"], abs=1e-6)
    assert found.gap == pytest.approx(golden["gap_over_sqrtS_c"], rel=1e-4)
    assert found.divergence(2, 2.0) == pytest.approx(golden["true_rdp2_sigma2"], rel=2e-4)
    assert found.divergence(2, 2.0) > 24 * golden["claimed_rdp2_sigma2"]
    bound = IntervalMechanisms(Training(3, 2, "dp-ogl-plus"), np.array([3]), [2.0], [1.0]).own(0)
    assert found.divergence(2, 2.0) <= bound[list(ORDERS).index(2.0)] * (1 + 1e-9)


def test_counterexample_reaches_another_group():
    """Worker 4 meets worker 3 alone; from its group's un-noised model it computes the other group's release."""
    sigma, draw = 2.0, np.random.default_rng(0)
    response, optimum = COUNTEREXAMPLE_WORKERS["3"]
    own_response, own_optimum = 0.5, 0.0  # worker 4's

    def seen(released):
        """The model of {3, 4} in the middle of the second interval; it began at 0."""
        start = released / 2  # worker 3 averages its two groups' models
        return (-response * (start - optimum) - own_response * (0 - own_optimum)) / 2

    for released in draw.normal(size=5):
        model = seen(released)
        inverted = 2 * (optimum - (2 * model + own_response * (0 - own_optimum)) / response)
        assert inverted == pytest.approx(released)

    scale = np.sqrt(2) * sigma / 3
    found = plus_counterexample()
    means = sum(found.present) / 3, sum(found.absent) / 3

    def moment(x):
        log_p, log_q = (-((x - mean) ** 2) / (2 * scale**2) for mean in means)
        return np.exp(2 * log_p - log_q) / (scale * np.sqrt(2 * np.pi))

    peak = 2 * means[0] - means[1]
    area = quad(moment, peak - 12 * scale, peak + 12 * scale, points=[peak])[0]
    assert np.log(area) == pytest.approx(found.divergence(2, sigma), rel=1e-8)


def test_others_alone_do_not_react():
    """Without the push the same group stays within the claimed sensitivity."""
    calm = {name: (0.3, optimum) for name, (_, optimum) in COUNTEREXAMPLE_WORKERS.items()}
    updates = partial(interval_updates, interval=2, divisor=3)
    gap = abs(sum(updates(calm)) - sum(updates({k: v for k, v in calm.items() if k != "1"})))
    assert gap <= np.sqrt(2)
