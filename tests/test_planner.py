"""`fedpapers plan`: the smallest noise that meets the targets, and what cannot be met."""

from __future__ import annotations

import json

import numpy as np
import pytest

from fedpapers.errors import InputError
from fedpapers.groups import Groups, disjoint, overlapping, single
from fedpapers.privacy.epsilon_report import epsilon_report
from fedpapers.privacy.group_mechanisms import Training
from fedpapers.privacy.leakage_report import leakage_report
from fedpapers.privacy.planner import LARGEST, SMALLEST, Planner, _sigma, _step_of, plan_report
from fedpapers.privacy.targets import targets_by_group

DELTA = 1e-5
FIGURE_1B = "groups: {A: [1, 2], B: [2, 3, 4], C: [4, 5], D: [5, 6, 7], E: [3, 6]}\n"


def planner(structure, training, in_group, out_of_group, rate=0.5, fixed=None):
    count = len(structure.names)
    targets = targets_by_group(structure, in_group, out_of_group)
    return Planner(structure, training, [rate] * count, fixed or [None] * count, targets, DELTA)


def met(plan, noise):
    report = leakage_report(plan.structure, plan.training, noise, plan.rate, plan.delta)
    table = np.array([[0.0 if value is None else float(value) for value in row] for row in report["epsilon"]])
    return bool(np.all(table <= plan.targets))


def next_lower(sigma):
    return _sigma(_step_of(sigma) - 1)


def test_steps_of_three_digits():
    values = [_sigma(step) for step in range(_step_of(LARGEST) + 1)]
    assert values[:2] == [0, SMALLEST]
    assert values[-1] == LARGEST
    assert np.all(np.diff(values) > 0)
    assert [_step_of(value) for value in values] == list(range(len(values)))
    assert all(float(f"{value:.3g}") == value for value in values)


def test_one_group_as_an_accountant_calibrates_it():
    plan = planner(single(5), Training(30, 1), 3.0, None)
    (sigma,) = plan.noise()
    spent = [epsilon_report(s, 0.5, 30, DELTA, ["rdp"])["accountants"]["rdp"]["epsilon"] for s in (sigma, sigma - 0.01)]
    assert spent[0] <= 3.0 < spent[1]


@pytest.mark.parametrize(("algorithm", "in_group"), [("dp-ogl", 8.0), ("dp-ogl-local", 8.0), ("dp-ogl-plus", None)])
def test_targets_are_met_and_nothing_can_be_lowered(algorithm, in_group):
    plan = planner(overlapping(), Training(20, 5, algorithm), in_group, 3.0)
    noise = plan.noise()
    assert met(plan, noise)
    for m, sigma in enumerate(noise):
        assert not met(plan, [*noise[:m], next_lower(sigma), *noise[m + 1 :]])


def test_groups_get_equal_noise_where_that_is_least():
    report = plan_report(planner(disjoint(3, 4), Training(10, 2), 4.0, None))
    assert report["equal"] is True
    assert len({group["noise_multiplier"] for group in report["noise"].values()}) == 1


def test_no_noise_where_no_target_needs_any():
    structure = Groups({"A": ("1", "2"), "B": ("3", "4")})
    assert planner(structure, Training(10, 2), None, 1.0).noise() == [0.0, 0.0]
    assert planner(overlapping(), Training(5, 5), None, 0.0).noise() == [0.0] * 5  # K = 1: nothing crosses groups


def test_dp_ogl_plus_within_a_group():
    plan = planner(overlapping(), Training(20, 5, "dp-ogl-plus"), 8.0, 3.0)
    with pytest.raises(InputError, match=r"from worker '1' to worker '2' \(and 17 more pairs\).*group 'A'.*un-noised"):
        plan.noise()
    every_epoch = planner(overlapping(), Training(20, 1, "dp-ogl-plus"), 8.0, 3.0)
    assert every_epoch.noise() == planner(overlapping(), Training(20, 1), 8.0, 3.0).noise()


def test_noise_that_is_given_stays():
    given = [None, 3.0, None, None, None]
    noise = planner(overlapping(), Training(20, 5), 12.0, 6.0, fixed=given).noise()
    assert noise[1] == 3.0
    with pytest.raises(InputError, match=r"even with noise multipliers of 1e\+06 and the noise .* sets for B$"):
        planner(overlapping(), Training(20, 5), 2.0, None, fixed=given).noise()
    with pytest.raises(InputError, match="every group sets its own noise_multiplier"):
        planner(overlapping(), Training(20, 5), 2.0, None, fixed=[3.0] * 5)


# The command


@pytest.fixture
def run(tmp_path, command):
    """Write the files and run the command; an option of None is left out."""

    def run(*more, groups=FIGURE_1B, targets=None, **changed):
        (tmp_path / "GROUPS.yaml").write_text(groups, encoding="utf-8")
        options = {"epochs": "20", "interval": "5", "sampling-rate": "0.5", "delta": "1e-5"}
        if targets is None:
            options |= {"in-group": "8", "out-of-group": "3"}
        else:
            (tmp_path / "TARGETS.yaml").write_text(targets, encoding="utf-8")
            options["targets"] = str(tmp_path / "TARGETS.yaml")
        options |= {name.replace("_", "-"): value for name, value in changed.items()}
        words = [f"--{name}={value}" for name, value in options.items() if value is not None]
        return command("plan", tmp_path / "GROUPS.yaml", *words, *more)

    return run


def test_json(run):
    status, out, err = run("--json")
    assert (status, err) == (0, "")
    report = json.loads(out)
    assert (report["unit"], report["relation"], report["delta"]) == ("worker", "add-or-remove-one", 1e-5)
    assert list(report["noise"]) == ["A", "B", "C", "D", "E"]
    assert report["noise"]["A"] == {
        "noise_multiplier": report["noise"]["A"]["noise_multiplier"], "sampling_rate": 0.5, "set": False,
    }  # fmt: skip
    assert report["targets"][0][:3] == [None, 8.0, 3.0]
    for row, wanted in zip(report["epsilon"], report["targets"], strict=True):
        assert all(target is None or epsilon <= target for epsilon, target in zip(row, wanted, strict=True))


def test_text(run):
    status, out, _ = run(groups="groups: {A: [1, 2], B: {workers: [2, 3], noise_multiplier: 9, sampling_rate: 0.25}}\n")
    assert status == 0
    for part in ("unit: one worker", "add-or-remove-one", "adversary: one honest-but-curious worker", "δ = 1e-05"):
        assert part in out
    assert "B  σ = 9  (q = 0.25, as GROUPS.yaml sets it)" in out
    assert "Closest to its target: from worker" in out


def test_the_smallest_noise_that_is_tried_is_said(run):
    _, out, _ = run(groups="groups: {A: [1, 2]}\n", epochs="1", in_group="1e5", out_of_group=None)
    assert "A  σ = 0.01 " in out and "σ = 0.01 is the smallest noise that is tried: less than it may do." in out
    assert "is tried" not in run(groups="groups: {A: {workers: [1, 2], noise_multiplier: 0.01}, B: [3, 4]}\n")[1]


def test_too_many_pairs_are_refused_before_a_table_is_made(run):
    many = ", ".join(map(str, range(3000)))
    for targets in (None, "default: 9\n"):
        status, _, err = run(groups=f"groups: {{A: [{many}]}}\n", targets=targets)
        assert status == 2 and "plan: 3,000 workers; expected at most 2,000; let one stand for each kind" in err


def test_names_steer_no_terminal(run):
    for more in ([], ["--json"]):
        _, out, _ = run(*more, groups='groups: {"\\e[31mA": ["\\u202Eann", "bo\\nb"]}\n')
        assert "\\u001b[31mA" in out and "\x1b" not in out and "\u202e" not in out
    assert "\u202eann" in json.loads(out)["workers"], "JSON says the same name"


def test_targets_by_pair(run):
    status, out, _ = run("--json", targets="default: 9\npairs: {1: {7: 0.5}}\n")
    assert status == 0
    report = json.loads(out)
    assert report["targets"][0] == [None, 9.0, 9.0, 9.0, 9.0, 9.0, 0.5]
    assert report["epsilon"][0][6] <= 0.5
    _, out, _ = run("--json", targets="pairs: {1: {7: 0.5}}\n")
    assert json.loads(out)["targets"][1] == [None] * 7


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({"in_group": None, "out_of_group": None}, "expected either --targets, or --in-group and --out-of-group"),
        ({"in_group": "-1"}, "in-group: -1.0; expected ε ≥ 0"),
        ({"out_of_group": "nan"}, "out-of-group: nan; expected ε ≥ 0"),
        ({"delta": "1"}, "delta: 1; expected a probability"),
        ({"interval": "0"}, "interval: 0; expected S ≥ 1"),
        ({"sampling_rate": "2"}, "sampling rate 2; expected 0 < q ≤ 1"),
        ({"algorithm": "dpogl"}, "did you mean 'dp-ogl'?"),
        ({"groups": "groups: {A: [1, 1]}"}, "worker '1' is listed twice"),
        ({"groups": "groups: {A: {workers: [1, 2], noise_multiplier: -1}, B: [3]}"}, "noise multiplier -1; expected"),
        ({"algorithm": "dp-ogl-plus"}, "both are in group 'A'"),
        ({"targets": ""}, "TARGETS.yaml: expected 'default: ε'"),
        ({"targets": "defualt: 3"}, "unknown key 'defualt'; did you mean 'default'?"),
        ({"targets": f"default: 1{'0' * 400}"}, "expected ε ≥ 0, a finite number"),
        ({"targets": "default: three"}, "default: 'three'; expected ε ≥ 0, a finite number"),
        ({"targets": "pairs: [1, 2]"}, "pairs: [1, 2]; expected 'default: ε'"),
        ({"targets": "pairs: {9: {1: 2}}"}, "pairs: unknown worker '9'"),
        ({"targets": "pairs: {1: {9: 2}}"}, "pairs.1: unknown worker '9'"),
        ({"targets": "pairs: {1: {1: 2}}"}, "pairs.1.1: a worker's data are no secret to itself"),
        ({"targets": "pairs: {1: {2: -2}}"}, "pairs.1.2: -2; expected ε ≥ 0"),
        ({"targets": "default: 3", "in_group": "3"}, "expected either --targets, or --in-group"),
    ],
)  # fmt: skip
def test_bad_input_is_one_line(run, changed, expected):
    status, out, err = run(**changed)
    assert (status, out) == (2, "")
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    assert expected in err
