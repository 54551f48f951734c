"""The audit: a lower bound that is one, under the upper bounds, and over them when the engine has a bug."""

from __future__ import annotations

from dataclasses import replace

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
import torch
from scipy.stats import binomtest

from fedpapers.errors import InputError
from fedpapers.experiment.leakage_audit import COLUMNS, audit_rows
from fedpapers.federated import audit as audited
from fedpapers.federated.audit import Draws, Setting, engine_views, lower_bound_to, play, views
from fedpapers.groups import Groups, string
from fedpapers.privacy.audit import lower_bound
from fedpapers.privacy.gdp import gaussian_epsilon
from fedpapers.privacy.group_mechanisms import ALGORITHMS, Training
from fedpapers.privacy.leakage_report import leakage_report
from fedpapers.privacy.mechanism import Mechanism
from fedpapers.randomness import Purpose, generator
from fedpapers.reporting.leakage_audit import plot_audit

DELTA = 1e-5
STRING = string(4, 3, 1)  # worker 1 leaks; 2, 4, 6 and 8 belong to one group each, 0 to 3 hops away
OBSERVERS = ("2", "4", "6", "8")
RUNS = 40_000


def upper(setting: Setting, observer: str, delta: float, bound: str = "percolation") -> float:
    count = len(setting.structure.names)
    report = leakage_report(
        setting.structure,
        setting.training,
        [setting.noise_multiplier] * count,
        [setting.sampling_rate] * count,
        delta,
        setting.source,
    )
    return float(report["bounds"][bound][0][setting.structure.workers.index(observer)])


# The statistic


def test_gaussian_worlds_stay_below_their_epsilon():
    draw = np.random.default_rng(1)
    absent, present = draw.normal(size=(100_000, 2)), draw.normal([1.2, 0], size=(100_000, 2))
    found = lower_bound(absent, present, 0.01)
    assert 0.7 * gaussian_epsilon(1.2, 0.01) < found.epsilon < gaussian_epsilon(1.2, 0.01)
    assert found.runs == 50_000


def test_epsilon_is_from_clopper_pearson():
    draw = np.random.default_rng(2)
    found = lower_bound(draw.normal(size=(2000, 1)), draw.normal(1.5, size=(2000, 1)), 0.02, confidence=0.9)
    intervals = [
        binomtest(round(rate * found.runs), found.runs).proportion_ci(0.9, method="exact")
        for rate in (found.likely, found.unlikely)
    ]
    assert found.epsilon == pytest.approx(np.log((intervals[0].low - 0.02) / intervals[1].high), rel=1e-9)


def test_both_directions():
    """With chance 0.1 one world steps aside: only its own tail tells."""
    draw = np.random.default_rng(3)
    calm, aside = draw.normal(size=(20_000, 1)), draw.normal(size=(20_000, 1)) + 6 * (draw.random((20_000, 1)) < 0.1)
    for present_likely, worlds in ((True, (calm, aside)), (False, (aside, calm))):
        found = lower_bound(*worlds, DELTA)
        assert found.present_likely is present_likely
        assert found.epsilon > 4


def test_the_confidence_is_kept():
    """Randomised response: every test of it that says anything has exactly ε = 1."""
    wrong = 0
    for seed in range(400):
        draw = np.random.default_rng(seed)
        truth = draw.random((2, 2000, 1)) < np.e / (1 + np.e)
        wrong += lower_bound(~truth[0] * 1.0, truth[1] * 1.0, 0.0).epsilon > 1
    assert wrong <= 20


def test_equal_worlds_prove_nothing():
    draw = np.random.default_rng(4)
    assert lower_bound(draw.normal(size=(4000, 5)), draw.normal(size=(4000, 5)), 0.0).epsilon == 0
    assert lower_bound(np.zeros((10, 3)), np.zeros((10, 3)), DELTA).epsilon == 0
    with pytest.raises(ValueError, match="expected two equal ones"):
        lower_bound(np.zeros((10, 3)), np.zeros((12, 3)), DELTA)


# The runs


def engine_draws(setting: Setting, runs: int, seed: int) -> Draws:
    """What the engine draws for copies of a structure."""
    membership = setting.structure.membership
    groups = len(membership)

    def cohort(t):
        drawn = np.zeros((runs, *membership.shape), dtype=bool)
        for copy, m in np.ndindex(runs, groups):
            chance = generator(seed, Purpose.COHORT, round=t, group=copy * groups + m).random(membership[m].sum())
            drawn[copy, m, membership[m]] = chance < setting.sampling_rate
        return drawn

    def noise(t):
        return np.array(
            [
                generator(seed, Purpose.NOISE, round=t, group=g).standard_normal(setting.coordinates, dtype=np.float32)
                for g in range(runs * groups)
            ]
        ).reshape(runs, groups, -1)

    return Draws(cohort, noise)


@pytest.mark.parametrize("present", [True, False])
@pytest.mark.parametrize("interval", [1, 3])
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_the_simulation_is_the_engine(algorithm, interval, present):
    setting = Setting(string(3, 3, 1), Training(6, interval, algorithm), 1.5, 0.6, "1")
    by_engine = engine_views(setting, present, 4, seed=5)
    simulated = play(setting, present, engine_draws(setting, 4, seed=5))
    if setting.training.unnoised_inside:
        simulated = simulated[:, interval - 1 :: interval]  # the engine gives released models only
    assert by_engine.shape == simulated.shape
    assert np.abs(by_engine - simulated).max() < 1e-4  # workers amplify the rounding of float32
    assert np.abs(simulated).max() > 1


def test_members_of_dp_ogl_plus_see_unnoised_models():
    setting = Setting(STRING, Training(5, 2, "dp-ogl-plus"), 2.0, 1.0, "1")
    seen = views(setting, True, 50, seed=0)
    assert seen.shape == (50, 5, 4, setting.coordinates)
    spread = seen.std(axis=(0, 2, 3), where=np.arange(4)[:, None] == 0)
    assert np.ptp(seen[:, 0], axis=0).max() == 0
    assert spread[0] > 0
    assert np.ptp(seen[:, 1], axis=0).max() > 0.1


def test_nothing_arrives_beyond_the_last_interval():
    """T = 6, S = 3: what the source sends cannot be two hops away, whoever does what with it."""
    for algorithm in ALGORITHMS:
        setting = Setting(STRING, Training(6, 3, algorithm), 1.0, 0.5, "1")
        worlds = [play(setting, there, engine_draws(setting, 20, seed=1)) for there in (False, True)]
        differs = np.abs(worlds[0] - worlds[1]).max(axis=(0, 1, 3)) > 0
        assert differs.tolist() == [True, True, False, False]


def test_a_setting_that_cannot_be():
    setting = Setting(STRING, Training(4, 2), 1.0, 0.5, "1")
    with pytest.raises(InputError, match="no worker '11'; did you mean '1'"):
        replace(setting, source="11")
    with pytest.raises(InputError, match="noise multiplier above 0"):
        replace(setting, noise_multiplier=0.0)


# Under the bounds


@pytest.fixture(scope="module")
def table():
    frames = [
        pd.DataFrame(
            audit_rows(Setting(STRING, Training(8, 2, algorithm), 2.0, 1.0, "1"), OBSERVERS, RUNS, 1, DELTA, 1.0, 0.99)
        )
        for algorithm in ALGORITHMS
    ]
    return pd.concat(frames).astype({"epsilon": float})


def test_every_bound_is_above_audit_and_exact_reference(table):
    assert list(table.columns) == list(COLUMNS)
    wide = table.pivot_table(index=["algorithm", "distance"], columns="bound", values="epsilon", dropna=False)
    for bound in ("naive", "delay", "cut", "percolation"):
        assert (wide["audit"] <= wide[bound]).all()
        assert (wide["exact"] <= wide[bound]).all()


def test_the_audit_says_something(table):
    audit = table[table["bound"] == "audit"].set_index(["algorithm", "distance"])["epsilon"]
    assert audit["dp-ogl", 0] > 2.5
    assert audit["dp-ogl", 1] > 0.3
    assert audit["dp-ogl-local", 0] > 1.5
    assert audit["dp-ogl-plus", 0] > 8


def test_the_claim_for_dp_ogl_plus_does_not_hold(table):
    own = table[(table["algorithm"] == "dp-ogl-plus") & (table["distance"] == 1)].set_index("bound")["epsilon"]
    assert own["audit"] > own["paper"] + 0.5


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_sampled_runs_stay_below(algorithm):
    setting = Setting(STRING, Training(6, 3, algorithm), 1.0, 0.5, "1")
    worlds = [views(setting, there, RUNS // 2, seed=2) for there in (False, True)]
    for observer in OBSERVERS:
        for delta in (DELTA, 0.05):
            found = lower_bound_to(setting, observer, *worlds, delta, confidence=0.999).epsilon
            assert found <= upper(setting, observer, delta)


# Bugs are seen

PAIR = Setting(Groups({"A": ("1", "2")}), Training(1, 1), 1.0, 1.0, "1")
CHAIN = Setting(Groups({"A": ("1", "2"), "B": ("2", "3")}), Training(2, 2), 0.5, 1.0, "1")


def audit_of_the_engine(setting, observer, runs, delta=0.01):
    seeds = range(runs // 200)
    worlds = [
        np.concatenate([engine_views(setting, there, 200, 2 * seed + there) for seed in seeds])
        for there in (False, True)
    ]
    return lower_bound_to(setting, observer, *worlds, delta).epsilon


def test_the_engine_is_under_its_bound():
    assert 1 < audit_of_the_engine(PAIR, "2", 3000) < upper(PAIR, "2", 0.01)
    assert audit_of_the_engine(CHAIN, "3", 600) == upper(CHAIN, "3", 0.01) == 0


def test_half_the_noise_is_seen(monkeypatch):
    right = Mechanism.add_noise

    def half(self, total, draws):
        return right(replace(self, noise_multiplier=self.noise_multiplier / 2), total, draws)

    monkeypatch.setattr(Mechanism, "add_noise", half)
    assert audit_of_the_engine(PAIR, "2", 3000) > upper(PAIR, "2", 0.01) + 0.2


def test_missing_clipping_is_seen(monkeypatch):
    monkeypatch.setattr(Mechanism, "clip", lambda self, update: (update, float(torch.linalg.vector_norm(update))))
    assert audit_of_the_engine(PAIR, "2", 1000) > upper(PAIR, "2", 0.01) + 1


def test_too_many_inter_group_epochs_are_seen(monkeypatch):
    right = audited._federation
    monkeypatch.setattr(audited, "_federation", lambda *of: replace(right(*of), interval=1))
    assert audit_of_the_engine(CHAIN, "3", 600) > upper(CHAIN, "3", 0.01) + 0.5


# The figure


def test_figure(table):
    figure = plot_audit(table, DELTA)
    titles = [axes.get_title() for axes in figure.axes]
    assert titles == ["DP-OGL, S = 2", "DP-OGL+, S = 2", "DP-OGL (local), S = 2"]
    left, plus = figure.axes[:2]
    assert [tick.get_text() for tick in left.get_yticklabels()][::10] == ["0"]
    assert left.get_yticklabels()[-1].get_text() == "inf"
    (label,) = [text.get_text() for text in figure.legends[0].get_texts() if "claimed" in text.get_text()]
    assert label == "claimed, unproven"
    line = next(line for line in plus.get_lines() if line.get_label() == "audit, from below (95 %)")
    expected = table[(table["algorithm"] == "dp-ogl-plus") & (table["bound"] == "audit")]["epsilon"]
    assert np.asarray(line.get_ydata()).tolist() == expected.tolist()
    plt.close(figure)
