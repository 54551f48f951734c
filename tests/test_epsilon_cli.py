"""`fedpapers epsilon`: its JSON, its text, its errors."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from fedpapers.errors import InputError
from fedpapers.privacy.epsilon_report import epsilon_report, format_report

BASE = {"noise-multiplier": "0.65", "sampling-rate": "0.0021406400513753612", "steps": "400", "delta": "1e-5"}


@pytest.fixture
def run(command):
    def run(*more, **changed):
        options = BASE | {name.replace("_", "-"): value for name, value in changed.items()}
        return command("epsilon", *(f"--{name}={value}" for name, value in options.items()), *more)

    return run


def test_json(run):
    status, out, err = run("--json")
    assert (status, err) == (0, "")
    report = json.loads(out)
    assert report["delta"] == 1e-5
    assert report["unit"] == "client"
    assert report["relation"] == "add-or-remove-one"
    found = {name: answer["epsilon"] for name, answer in report["accountants"].items()}
    assert found == pytest.approx({"pld": 1.4148, "prv": 1.4251, "rdp": 2.4023, "gdp": 0.4652}, rel=5e-3)
    assert report["accountants"]["rdp"]["order"] > 1
    assert report["accountants"]["gdp"]["mu"] == pytest.approx(0.13309, rel=1e-4)
    assert report["accountants"]["gdp"]["approximation"] is True
    assert any("understate" in warning for warning in report["warnings"])


def test_no_noise(run):
    status, out, _ = run("--json", noise_multiplier="0")
    assert status == 0
    accountants = json.loads(out)["accountants"]
    assert [answer["epsilon"] for answer in accountants.values()] == ["inf"] * 4
    assert accountants["gdp"]["mu"] == "inf"
    assert all(answer["note"] for answer in accountants.values())
    status, out, _ = run(noise_multiplier="0")
    assert status == 0
    assert out.count("inf (not private)") == 4


def test_no_steps(run):
    _, out, _ = run("--json", steps="0")
    assert [answer["epsilon"] for answer in json.loads(out)["accountants"].values()] == [0, 0, 0, 0]


def test_text_says_what_the_number_means(run):
    status, out, _ = run(accountant="rdp,gdp")
    assert status == 0
    for part in ("client", "add-or-remove-one", "δ = 1e-05", "whoever sees the released models, not the server"):
        assert part in out
    assert "rdp  ε = 2.4023  (order 5.1)" in out
    assert "pld" not in out
    assert "warning: gdp" in out
    assert "approximation" in out


def test_accountants_are_a_list(run):
    _, out, _ = run("--json", accountant="gdp, rdp,gdp")
    assert list(json.loads(out)["accountants"]) == ["gdp", "rdp"]


@pytest.mark.parametrize(
    ("option", "given", "expected"),
    [
        ("noise-multiplier", "-1", "finite number of at least 0"),
        ("noise-multiplier", "nan", "finite number of at least 0"),
        ("noise-multiplier", "inf", "finite number of at least 0"),
        ("sampling-rate", "0", "above 0 and at most 1"),
        ("sampling-rate", "1.5", "above 0 and at most 1"),
        ("sampling-rate", "nan", "above 0 and at most 1"),
        ("steps", "-1", "an integer"),
        ("steps", "2.5", "integer"),
        ("steps", "1" + "0" * 400, "an integer"),
        ("delta", "0", "above 0 and below 1"),
        ("delta", "1", "above 0 and below 1"),
        ("accountant", "plt", "did you mean 'pld'?"),
        ("accountant", "", "pld, prv, rdp, gdp"),
    ],
)
def test_bad_options(run, option, given, expected):
    status, out, err = run("--json", **{option: given})
    assert status == 2
    assert out == ""
    assert err.count("\n") == 1
    assert f"--{option}" in err
    assert expected in err


@pytest.mark.parametrize("steps", [2.0, True, "4", None])
def test_steps_of_another_type(steps):
    with pytest.raises(InputError, match="--steps"):
        epsilon_report(1.0, 0.1, steps, 1e-5, "rdp")


def test_failed_accountants_say_why():
    report = epsilon_report(1e-3, 1.0, 10**6, 1e-5, ["pld", "prv", "rdp", "gdp"])
    accountants = report["accountants"]
    for name in ("pld", "prv"):
        assert accountants[name]["epsilon"] == accountants["rdp"]["epsilon"]
        assert f"{name} failed" in accountants[name]["note"]
    assert accountants["gdp"]["epsilon"] == "inf"
    json.dumps(report, allow_nan=False)
    text = format_report(report)
    assert "not private" not in text
    assert "q=1, σ=0.001, T=1000000, δ=1e-05" in text


def test_process():
    words = [f"--{name}={value}" for name, value in BASE.items()]
    command = [sys.executable, "-m", "fedpapers", "epsilon", *words, "--accountant=rdp", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["accountants"]["rdp"]["epsilon"] == pytest.approx(2.4023, rel=5e-3)
    assert done.stderr == ""
