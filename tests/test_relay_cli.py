"""`fedpapers relay`: its JSON, its text, its map, its errors."""

from __future__ import annotations

import functools
import json
import math
import subprocess
import sys
from pathlib import Path

import matplotlib.image
import numpy as np
import pytest
import relay_brute_force as brute

from fedpapers.errors import InputError
from fedpapers.relay.layouts import read_layout
from fedpapers.relay.report import Setting, relay_report
from fedpapers.reporting.relay_map import plot_map

GOLDEN = json.loads((Path(__file__).parent / "golden/relay.json").read_text(encoding="utf-8"))
TARGETS, DUMMIES = [3, 7, 3, 1, 0, 9], [[5], [3], [9], [7], [], [1, 2]]
SIX = [
    {"x": x, "y": y, "target": target, "dummies": dummies}
    for (x, y), target, dummies in zip(GOLDEN["six"]["pos_km"], TARGETS, DUMMIES, strict=True)
]


@pytest.fixture
def layout(tmp_path):
    """Writes a layout, or any text, and gives its path."""

    def write(content=SIX):
        path = tmp_path / "layout.yaml"
        # JSON is YAML.
        path.write_text(content if isinstance(content, str) else json.dumps({"devices": content}), encoding="utf-8")
        return path

    return write


@pytest.fixture
def run(command):
    return functools.partial(command, "relay")


def answer(run, path, *words):
    status, out, err = run(path, "--json", *words)
    assert (status, err) == (0, "")
    return json.loads(out)


def test_json(run, layout):
    report = answer(run, layout(), "--max-hops=3")
    assert [route["devices"] for route in report["routes"]] == GOLDEN["six"]["table"]["3"]
    for route, lengths in zip(report["routes"], GOLDEN["six"]["hop_dist_m"]["3"], strict=True):
        assert set(route) == {
            "devices",
            "hops",
            "labels_arrived",
            "samples_arrived",
            "label_privacy",
            "latency_s",
            "expected_latency_s",
        }
        assert [hop["distance_m"] for hop in route["hops"]] == pytest.approx(lengths, rel=1e-9)
        for hop in route["hops"]:
            assert hop["expected_slots"] == pytest.approx(hop["required_slots"] / hop["success_probability"], rel=1e-12)
            assert hop["required_slots"] == math.ceil(hop["bits"] / hop["slot_bits"])
            assert hop["bits"] == pytest.approx(10 + hop["samples"] * (4 + 290 + 13 * 151.12), rel=1e-12)
            assert hop["used_slots"] >= hop["required_slots"]
        slots = sum(hop["used_slots"] for hop in route["hops"])
        assert route["latency_s"] == pytest.approx(0.032 * slots, rel=1e-12)
        expected = sum(hop["expected_slots"] for hop in route["hops"])
        assert route["expected_latency_s"] == pytest.approx(0.032 * expected, rel=1e-12)
    assert report["system_latency_s"] == max(route["latency_s"] for route in report["routes"])
    assert [route["labels_arrived"] for route in report["routes"]] == [[0, 1, 3, 7, 9], [3, 5, 7], [1, 2, 9]]
    assert [route["samples_arrived"] for route in report["routes"]] == [20, 12, 12]
    assert [route["label_privacy"] for route in report["routes"]] == pytest.approx([0.8, 2 / 3, 2 / 3])


def test_payload_chain(run, layout):
    """Four devices in a row have the golden payload and label privacy."""
    steps = GOLDEN["payload_chain"]["steps"]
    devices = [
        {"x": 4 - i, "y": 0, "target": step["target"], "dummies": step["own_dummies"]} for i, step in enumerate(steps)
    ]
    report = answer(run, layout(devices), "--max-hops=4", "--csr-bits-per-sample=2240")
    (route,) = report["routes"]
    assert [hop["bits"] for hop in route["hops"]] == [step["bits"] for step in steps]
    assert [hop["samples"] for hop in route["hops"]] == [step["samples"] for step in steps]
    assert route["label_privacy"] == pytest.approx(steps[-1]["label_privacy"])


def test_sparsify_and_a_constant_size(run, layout):
    bits = answer(run, layout(), "--max-hops=1", "--sparsify=0.15")["routes"][0]["hops"][0]["bits"]
    assert bits == pytest.approx(10 + 8 * (4 + 290 + 13 * 151.12 * (1 - 117 / 784)), rel=1e-12)
    words = ("--max-hops=1", "--sparsify=0.15", "--csr-bits-per-sample=100")
    assert answer(run, layout(), *words)["routes"][0]["hops"][0]["bits"] == 842


def test_no_fading_uses_the_required_slots(run, layout):
    report = answer(run, layout(), "--max-hops=3", "--fading=none")
    for route in report["routes"]:
        for hop in route["hops"]:
            assert hop["used_slots"] == hop["required_slots"]
            assert hop["success_probability"] < 1
            assert hop["expected_slots"] > hop["required_slots"]


@pytest.mark.parametrize("deadline", [None, 0, 3, 9, 14, 20, 12.5])
@pytest.mark.parametrize("gains", [(1.5, 0.2), (0.2, 0.4, 2.0), (1.0,)])
@pytest.mark.parametrize("cap", [2, 4])
def test_patterns_by_hand(layout, deadline, gains, cap):
    setting = Setting(3, cap=cap, deadline=deadline, slot=0.02, fading=f"pattern:{','.join(map(str, gains))}")
    report = relay_report(read_layout(layout()), setting)
    by_hand = {"bits": 290 + 13 * 151.12, "cap": cap, "slot": 0.02, "shuffle": False}
    for route in report["routes"]:
        common = (route["devices"], SIX, by_hand, len(report["routes"]))
        used, _ = brute.run_route(*common, None, lambda n: gains[(n - 1) % len(gains)], _no_draw())
        _, held = brute.run_route(*common, deadline, lambda n: gains[(n - 1) % len(gains)], _no_draw())
        assert [hop["used_slots"] for hop in route["hops"]] == used
        assert route["samples_arrived"] == len(held)
        assert route["labels_arrived"] == sorted({label for _, label in held})
        floor = 1 + len(SIX[route["devices"][0]]["dummies"])
        assert route["label_privacy"] == pytest.approx(1 - 1 / max(len(route["labels_arrived"]), floor))


def _no_draw():
    return np.random.default_rng(0)


def test_a_pattern_that_never_succeeds(run, layout):
    words = ("--max-hops=2", "--fading=pattern:0.1,0", "--deadline=30")
    report = answer(run, layout(), *words)
    assert report["system_latency_s"] == "inf"
    assert {hop["used_slots"] for route in report["routes"] for hop in route["hops"]} == {"inf"}
    assert [route["samples_arrived"] for route in report["routes"]] == [0, 0, 0]
    assert [route["label_privacy"] for route in report["routes"]] == pytest.approx([1 / 2, 1 / 2, 2 / 3])
    status, out, _ = run(layout(), *words)
    assert status == 0
    assert "system latency: inf" in out
    assert "labels none" in out


def test_a_deadline_changes_no_latency(run, layout):
    early = answer(run, layout(), "--max-hops=3", "--deadline=2")
    late = answer(run, layout(), "--max-hops=3")
    for one, other in zip(early["routes"], late["routes"], strict=True):
        assert one["hops"] == other["hops"]
        assert one["latency_s"] == other["latency_s"]
        assert one["samples_arrived"] <= other["samples_arrived"]
    assert early["system_latency_s"] == late["system_latency_s"]


def test_equal_seeds_agree(run, layout):
    words = ("--max-hops=3", "--deadline=9", "--seed")
    first, again, other = (answer(run, layout(), *words, seed) for seed in ("3", "3", "4"))
    assert first == again
    assert first["routes"] != other["routes"]


def test_edge_layouts(run, layout):
    at_server = answer(run, layout([{"x": 0, "y": 0, "target": 1, "dummies": []}]), "--max-hops=5")
    (route,) = at_server["routes"]
    assert route["hops"][0]["distance_m"] == 1
    assert route["hops"][0]["mean_snr"] == pytest.approx(GOLDEN["links"][0]["mean_snr"], rel=1e-5)
    assert route["hops"][0]["samples"] == 4
    assert route["label_privacy"] == 0
    everything = [{"x": 1, "y": 1, "target": 9, "dummies": list(range(9))}]
    (route,) = answer(run, layout(everything), "--max-hops=1", "--cap=300")["routes"]
    assert route["samples_arrived"] == 9 * 200 + 4
    assert route["label_privacy"] == pytest.approx(0.9)
    twins = [SIX[0], SIX[0]]
    assert [route["devices"] for route in answer(run, layout(twins), "--max-hops=2")["routes"]] == [[0], [1]]


def test_numbers_that_yaml_takes_for_text(run, layout):
    path = layout("devices: [{x: 1e-3, y: -2e0, target: 1, dummies: []}]")
    assert answer(run, path, "--max-hops=1")["devices"] == [{"x": 0.001, "y": -2, "target": 1, "dummies": []}]


def test_text(run, layout):
    status, out, err = run(layout(), "--max-hops=3", "--fading=none", "--deadline=25")
    assert (status, err) == (0, "")
    assert "6 devices on 3 routes of at most 3 hops" in out
    assert "3 → 4 → 2 → server" in out
    assert "label privacy 0.8" in out
    assert "system latency: 0.288 s" in out


def test_map(run, layout, tmp_path):
    path = layout()
    for ending, start in (("png", b"\x89PNG"), ("pdf", b"%PDF"), ("svg", b"<?xml")):
        file = tmp_path / f"map.{ending}"
        status, _, err = run(path, "--max-hops=3", f"--plot={file}")
        assert (status, err) == (0, "")
        assert file.read_bytes().startswith(start)
    image = matplotlib.image.imread(tmp_path / "map.png")
    assert min(image.shape[:2]) > 400
    plot_map(answer(run, path, "--max-hops=3"), tmp_path / "again.png")
    assert (tmp_path / "again.png").read_bytes() == (tmp_path / "map.png").read_bytes()


def test_bad_name_of_a_map(run, layout, tmp_path):
    status, out, err = run(layout(), "--max-hops=3", f"--plot={tmp_path}/map.pgn")
    assert (status, out) == (2, "")
    assert "did you mean 'png'?" in err


@pytest.mark.parametrize(
    ("option", "expected"),
    [
        ("--max-hops=0", "--max-hops 0: expected at least 1"),
        ("--max-hops=-1", "--max-hops -1: expected at least 1"),
        ("--max-hops=1.5", "--max-hops"),
        ("--cap=0", "--cap 0: expected at least 1"),
        ("--sparsify=1", "--sparsify 1.0: expected a share of at least 0 and below 1"),
        ("--sparsify=-0.1", "--sparsify -0.1"),
        ("--sparsify=nan", "--sparsify nan"),
        ("--csr-bits-per-sample=-1", "--csr-bits-per-sample -1.0: expected bits"),
        ("--csr-bits-per-sample=inf", "--csr-bits-per-sample inf"),
        ("--deadline=-1", "--deadline -1.0: expected a finite number of slots"),
        ("--deadline=nan", "--deadline nan: expected a finite number of slots"),
        ("--deadline=inf", "--deadline inf: expected a finite number of slots of at least 0; leave it out for none"),
        ("--slot=0", "--slot 0.0: expected seconds above 0"),
        ("--slot=-1", "--slot -1.0"),
        ("--slot=nan", "--slot nan: expected seconds above 0"),
        ("--slot=1e300", "--slot 1e+300"),
        ("--slot=1e-300", "successful slots"),
        ("--seed=-1", "--seed -1: expected an integer of at least 0"),
        ("--fading=raileigh", "did you mean 'rayleigh'?"),
        ("--fading=none:1", "--fading 'none:1'"),
        ("--fading=", "expected rayleigh, none, pattern"),
        ("--fading=pattern:", "'' is no h²"),
        ("--fading=pattern:1,,2", "'' is no h²"),
        ("--fading=pattern:1,-2", "'-2' is no h²"),
        ("--fading=pattern:1,nan", "'nan' is no h²"),
        ("--fading=pattern:1;2", "'1;2' is no h²"),
        ("--max-hop=2", "--max-hops"),
    ],
)
def test_bad_options(run, layout, option, expected):
    status, out, err = run(layout(), "--max-hops=3", option, "--json")
    assert (status, out) == (2, "")
    assert err.count("\n") == 1
    assert expected in err


def test_max_hops_is_needed(run, layout):
    status, _, err = run(layout())
    assert status == 2
    assert "--max-hops" in err


def changed(**keys):
    return [SIX[0], SIX[1] | keys]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("", "expected the key 'devices'"),
        ("- 1", "expected the key 'devices'"),
        ("device: []", "unknown key 'device'; did you mean 'devices'?"),
        ("{}", "the key 'devices' is missing"),
        ("{devices: [}", "layout.yaml, line 1"),
        ("devices: []\ndevices: []", "stands here twice"),
        ("devices: 3", "devices: expected a list"),
        ([], "at least one device"),
        ("devices: &a [*a]", "its aliases stand for more than"),
        ("devices: [{[1]: 2}]", "layout.yaml, line 1: a key is a list"),
        ("devices: [{x: !!python/name:os.system , y: 1, target: 3, dummies: []}]", "layout.yaml, line 1"),
        ("devices: {a: {x: 1, y: 1, target: 3, dummies: []}}", "devices: expected a list"),
        ([SIX[0]] * 10_001, "devices: 10,001 devices; expected at most 10,000"),
        ([7], "devices[0]: expected {x: …"),
        ([{"x": 1, "y": 2, "target": 3}], "devices[0]: the key 'dummies' is missing"),
        ([{"y": 2, "target": 3, "dummies": []}], "devices[0]: the key 'x' is missing"),
        (changed(tarjet=1), "devices[1]: unknown key 'tarjet'; did you mean 'target'?"),
        ("devices: [{x: .nan, y: 0, target: 1, dummies: []}]", "devices[0].x: nan; expected kilometres"),
        ("devices: [{x: 0, y: -.inf, target: 1, dummies: []}]", "devices[0].y: -inf; expected kilometres"),
        (changed(x="east"), "devices[1].x: 'east'"),
        (changed(x=True), "devices[1].x: True"),
        (changed(x=None), "devices[1].x: None"),
        (changed(y=1e200), "devices[1].y: '1e+200'; expected kilometres"),
        (changed(y=10**400), "devices[1].y: 1000"),
        (changed(x=1e6), "are the coordinates in km"),
        (changed(target=10), "devices[1].target: 10; expected a label from 0 to 9"),
        (changed(target=-1), "devices[1].target: -1"),
        (changed(target=3.0), "devices[1].target: 3.0"),
        (changed(target=True), "devices[1].target: True"),
        (changed(target="3"), "devices[1].target: '3'; expected a label from 0 to 9"),
        (changed(x=[1]), "devices[1].x: [1]; expected kilometres"),
        (changed(dummies=[[1]]), "devices[1].dummies[0]: [1]; expected a label from 0 to 9"),
        (changed(dummies=None), "devices[1].dummies: expected a list of labels, [] for none; found None"),
        (changed(dummies=7), "devices[1].dummies: expected a list"),
        (changed(dummies=[10]), "devices[1].dummies[0]: 10"),
        (changed(dummies=[1, 7]), "devices[1].dummies[1]: 7 is the device's target label"),
        (changed(dummies=[1, 1]), "devices[1].dummies[1]: 1 is listed twice"),
        (changed(dummies=[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]), "devices[1].dummies: 10 labels; expected at most 9"),
    ],
)
def test_bad_layouts(run, layout, content, expected):
    status, out, err = run(layout(content), "--max-hops=3", "--json")
    assert (status, out) == (2, "")
    assert err.count("\n") == 1
    assert "layout.yaml" in err or expected == "are the coordinates in km"
    assert expected in err


def test_missing_file(run, tmp_path):
    status, _, err = run(tmp_path / "none.yaml", "--max-hops=3")
    assert status == 2
    assert "none.yaml: no such file" in err


def test_a_folder_is_no_layout(run, tmp_path):
    status, out, err = run(tmp_path, "--max-hops=3")
    assert (status, out) == (2, "") and err.count("\n") == 1
    assert "cannot be read" in err


def test_huge_options_are_no_trouble(run, layout):
    words = ("--max-hops=99999999999999999999", "--cap=99999999999999999999", "--seed=99999999999999999999")
    assert [route["devices"] for route in answer(run, layout(), *words)["routes"]] == GOLDEN["six"]["table"]["5"]


def test_setting_checks_itself():
    with pytest.raises(InputError, match="--cap"):
        Setting(1, cap=0)


def test_process(layout):
    command = [sys.executable, "-W", "error", "-m", "fedpapers", "relay", str(layout()), "--max-hops=3", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert len(json.loads(done.stdout)["routes"]) == 3
    assert done.stderr == ""
