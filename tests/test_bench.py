"""`fedpapers bench cohort`: the shape of its JSON, and wrong numbers in one line."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest


def bench(*options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "fedpapers", "bench", "cohort", *options]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("model", ["femnist", "celeba", "mnist"])
def test_its_report(model: str) -> None:
    done = bench(
        "--model", model, "--clients", "2", "--steps", "2", "--batch", "3", "--threads", "1", "--rounds", "2", "--json"
    )
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report.keys() == {"ms_per_round", "bound_ms", "peak_memory_mib"}
    spent = report["ms_per_round"]
    assert spent.keys() == {"median", "min", "max"}
    assert 0 < spent["min"] <= spent["median"] <= spent["max"] and report["bound_ms"] > 0
    assert 1 < report["peak_memory_mib"] < 1000


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--model", "mnits", "--clients", "2", "--steps", "1"], "did you mean 'mnist'"),
        (["--model", "mnist", "--clients", "0", "--steps", "1"], "--clients is 0"),
        (["--model", "mnist", "--clients", "2", "--steps", "-1"], "--steps is -1"),
        (["--model", "mnist", "--clients", "2", "--steps", "1", "--threads", "0"], "--threads is 0"),
        (["--model", "mnist", "--clients", "two", "--steps", "1"], "--clients"),
        (["--model", "mnist", "--clients", "1000000", "--steps", "1000000"], "fits into memory"),
        (["--model", "mnist", "--clients", "2", "--steps", "1", "--threads", "1000000"], "at most 1024"),
    ],
)
def test_wrong_values_are_one_line(options: list[str], said: str) -> None:
    done = bench(*options)
    assert done.returncode == 2 and said in done.stderr and len(done.stderr.splitlines()) == 1
