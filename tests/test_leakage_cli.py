"""`fedpapers leakage`: its JSON, its text, its heat map, its errors."""

from __future__ import annotations

import json

import pytest

FIGURE_1B = "groups: {A: [1, 2], B: [2, 3, 4], C: [4, 5], D: [5, 6, 7], E: [3, 6]}\n"
BASE = {"epochs": "40", "interval": "5", "noise-multiplier": "2", "sampling-rate": "0.5", "delta": "1e-5"}


@pytest.fixture
def run(tmp_path, command):
    """Write GROUPS.yaml and run the command; an option of None is left out."""

    def run(*more, groups=FIGURE_1B, **changed):
        path = tmp_path / "GROUPS.yaml"
        path.write_text(groups, encoding="utf-8")
        options = BASE | {name.replace("_", "-"): value for name, value in changed.items()}
        words = [f"--{name}={value}" for name, value in options.items() if value is not None]
        return command("leakage", path, *words, *more)

    return run


def test_json(run):
    status, out, err = run("--json")
    assert (status, err) == (0, "")
    report = json.loads(out)
    assert report["workers"] == ["1", "2", "3", "4", "5", "6", "7"]
    assert report["groups"]["E"] == ["3", "6"]
    assert list(report["bounds"]) == ["naive", "delay", "cut", "percolation"]
    assert report["epsilon"] == report["bounds"]["percolation"]
    assert (report["unit"], report["relation"], report["delta"]) == ("worker", "add-or-remove-one", 1e-5)
    for matrix in [report["distance"], *report["bounds"].values()]:
        assert len(matrix) == 7
        assert all(len(row) == 7 and row[i] is None for i, row in enumerate(matrix))
    assert report["distance"][0] == [None, 0, 1, 1, 2, 2, 3]
    assert report["epsilon"][0][1:] == pytest.approx([9.0667, 6.3370, 6.3370, 5.3760, 5.3760, 4.7209], abs=1e-4)


def test_plus_json(run):
    report = json.loads(run("--json", algorithm="dp-ogl-plus")[1])
    assert report["epsilon"][0][1] == "inf"
    assert report["bounds"]["paper"][0][1] == "inf"
    assert report["bounds"]["paper"][0][2:] == pytest.approx([3.6656, 3.6656, 3.4039, 3.4039, 3.1218], abs=1e-4)
    assert report["epsilon"][0][2] > report["bounds"]["paper"][0][2]


def test_from_gives_one_row(run):
    report = json.loads(run("--json", "--from", "3")[1])
    assert report["from"] == "3"
    assert [len(matrix) for matrix in report["bounds"].values()] == [1] * 4
    assert report["epsilon"][0][2] is None


def test_a_groups_own_values(run):
    own = "groups: {A: {workers: [a, b], noise_multiplier: 0}, B: {workers: [b, c], sampling_rate: 1.0}}\n"
    report = json.loads(run("--json", groups=own)[1])
    assert report["epsilon"][0][1] == "inf"
    assert isinstance(report["epsilon"][2][1], float)
    default = json.loads(run("--json", groups="groups: {A: [a, b], B: [b, c]}\n")[1])
    assert report["epsilon"][2][1] > default["epsilon"][2][1]


def test_text_says_what_the_numbers_mean(run):
    status, out, _ = run(algorithm="dp-ogl-plus")
    assert status == 0
    for words in (
        "one worker with all its data",
        "add-or-remove-one",
        "honest-but-curious worker",
        "δ = 1e-05",
        "percolation",
        "counterexample",
        "for comparison only",
        "inf: not private",
    ):
        assert words in out
    assert "counterexample" not in run()[1]
    assert "not proven" in run(coefficient="alpha")[1]


def test_distances_with_equal_values_share_a_line(run):
    chain = ", ".join(f"G{m}: [{m}, {m + 1}]" for m in range(30))
    _, out, _ = run(groups=f"groups: {{{chain}}}\n", epochs="4", interval="2", **{"from": "0"})
    assert [line.split()[:2] for line in out.splitlines() if line.split()[1:2] == ["28"]] == [["2–29", "28"]]


def test_text_of_many_workers_has_no_matrix(run):
    many = "groups: {A: [" + ", ".join(f"w{n}" for n in range(40)) + "]}\n"
    out = run(groups=many)[1]
    assert "w7" not in out
    assert "pairs" in out


@pytest.mark.parametrize("kind", ["png", "pdf", "svg"])
def test_heat_map(run, tmp_path, kind):
    path = tmp_path / f"map.{kind}"
    assert run("--plot", str(path), algorithm="dp-ogl-plus")[0] == 0
    start = path.read_bytes()[:300]
    assert {"png": b"\x89PNG", "pdf": b"%PDF", "svg": b"<svg"}[kind] in start or b"<?xml" in start
    assert path.stat().st_size > 5000


def test_heat_map_of_one_row_and_without_a_finite_value(run, tmp_path):
    path = tmp_path / "map.png"
    assert run("--plot", str(path), "--from", "1", noise_multiplier="0")[0] == 0
    assert path.exists()


def test_names_are_drawn_as_they_are(run, tmp_path):
    picture = tmp_path / "map.png"
    status, _, err = run(groups='groups: {"$x$": ["a$b", "\\\\frac{1$", "_^%&#"]}\n', plot=str(picture))
    assert (status, err) == (0, "") and picture.stat().st_size > 0


def test_large_intervals_and_no_epochs(run):
    report = json.loads(run("--json", epochs="0")[1])
    assert {value for row in report["epsilon"] for value in row} == {None, 0}
    report = json.loads(run("--json", epochs="3", interval="100")[1])
    assert report["epsilon"][0][2] == 0


@pytest.mark.parametrize(
    ("groups", "words"),
    [
        ("", ["is empty", "groups"]),
        ("group: {A: [1]}\n", ["no key 'groups'"]),
        ("- A\n", ["no key 'groups'"]),
        ("groups: {A: [1]}\ndelta: 3\n", ["unknown key 'delta'"]),
        ("groups:\n", ["expected a mapping"]),
        ("groups: {}\n", ["at least one group"]),
        ("groups: [A, B]\n", ["expected a mapping"]),
        ("groups: {A: []}\n", ["A", "empty"]),
        ("groups: {A: [1, 2, 1]}\n", ["A", "'1'", "twice"]),
        ("groups: {A: [1, '1']}\n", ["A", "'1'", "twice"]),
        ("groups: {A: [1], A: [2]}\n", ["'A'", "twice"]),
        ("groups: {A: {workers: []}}\n", ["A", "empty"]),
        ("groups: {A: {noise_multiplier: 1}}\n", ["A", "no key 'workers'"]),
        (
            "groups: {A: {workers: [1], noise_multiplyer: 1}}\n",
            ["did you mean 'noise_multiplier'?"],
        ),
        ("groups: {A: {workers: [1], noise_multiplier: -1}}\n", ["'A'", "-1", "σ"]),
        (f"groups: {{A: {{workers: [1], noise_multiplier: 1{'0' * 400}}}}}\n", ["noise_multiplier", "a number"]),
        ("groups: {A: {workers: [1], noise_multiplier: .nan}}\n", ["'A'", "nan"]),
        ("groups: {A: {workers: [1], noise_multiplier: 1e-3}}\n", ["noise_multiplier", "1.0e-3"]),
        ("groups: {A: {workers: [1], sampling_rate: 0}}\n", ["'A'", "sampling rate"]),
        ("groups: {A: {workers: [1], sampling_rate: 1.5}}\n", ["'A'", "1.5"]),
        ("groups: {A: {workers: [1], sampling_rate: true}}\n", ["sampling_rate", "a number"]),
        ("groups: {A: 3}\n", ["A", "a list of workers"]),
        ("groups: {A: [[1, 2]]}\n", ["A", "not a text or a number"]),
        ("groups: {A: [{x: 1}]}\n", ["A", "not a text or a number"]),
        ("groups: {A: [null]}\n", ["A", "nothing", "quotes"]),
        ("groups: {A: [yes]}\n", ["A", "True", "quotes"]),
        ("groups: {[A]: [1]}\n", ["line 1", "key"]),
        ("groups: {A: [1\n", ["line"]),
    ],
)
def test_malformed_groups(run, groups, words):
    status, out, err = run(groups=groups)
    assert (status, out) == (2, "")
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    assert "GROUPS.yaml" in err or "'A'" in err
    for word in words:
        assert word in err


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"epochs": "-1"}, ["epochs", "T ≥ 0"]),
        ({"epochs": "2.5"}, ["--epochs"]),
        ({"epochs": None}, ["--epochs"]),
        ({"interval": "0"}, ["interval", "S ≥ 1"]),
        ({"noise-multiplier": "-0.1"}, ["-0.1"]),
        ({"noise-multiplier": "inf"}, ["inf"]),
        ({"noise-multiplier": "1e-300"}, ["1e-300", "0.0001 ≤ σ"]),
        ({"noise-multiplier": "1e20"}, ["1e+20", "σ ≤ 1e+09"]),
        ({"sampling-rate": "1e-300"}, ["1e-300"]),
        ({"epochs": "1000000000"}, ["1,000,000,000", "100,000"]),
        ({"sampling-rate": "0"}, ["0"]),
        ({"sampling-rate": "nan"}, ["nan"]),
        ({"delta": "0"}, ["delta"]),
        ({"delta": "1"}, ["delta"]),
        ({"algorithm": "dp-olg"}, ["dp-olg", "dp-ogl"]),
        ({"coefficient": "beta"}, ["beta", "alpha"]),
        ({"from": "77"}, ["77", "7"]),
        ({"plot": "map.jpeg"}, ["map.jpeg", "png"]),
    ],
)
def test_wrong_options(run, changed, words):
    status, out, err = run(**changed)
    assert (status, out) == (2, "")
    assert err.count("\n") == 1
    for word in words:
        assert word in err


def test_no_such_file(command, tmp_path):
    status, _, err = command("leakage", tmp_path / "none.yaml", *(f"--{name}={value}" for name, value in BASE.items()))
    assert status == 2 and "no such file" in err
