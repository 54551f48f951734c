"""`fedpapers bench cohort`: the shape of its JSON, and wrong numbers in one line. `make bench`: the peers' task."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from torch.nn.functional import cross_entropy
from torch.nn.utils import parameters_to_vector

from fedpapers.federated.bench import benched
from fedpapers.federated.rounds import next_release
from fedpapers.privacy.mechanism import Mechanism

ROOT = Path(__file__).parents[1]


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


def test_overlapping_groups_make_as_many_participations() -> None:
    groups = benched("mnist", 35, 1, 2, overlapping=True).groups
    assert [len(workers) for workers in groups.members.values()] == [7] * 5
    assert groups.membership.sum() == 35 and len(groups.workers) == 25


def test_the_peers_get_the_engines_own_task(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A round of it by plain PyTorch, clipped, is the engine's round."""
    monkeypatch.syspath_prepend(str(ROOT))
    from benchmarks.compare import Case, write_task
    from benchmarks.task import CLIPPING_NORM, RATE, Task

    write_task(Case("", "mnist", 3, 2, 1, ()), tmp_path / "task.npz")
    task, total = Task.read(str(tmp_path / "task.npz")), 0.0
    clip = Mechanism(1.0, CLIPPING_NORM)
    for own_images, own_labels in zip(task.images, task.labels, strict=True):
        network = task.network()
        for images, labels in zip(own_images.split(task.batch), own_labels.split(task.batch), strict=True):
            network.zero_grad()
            cross_entropy(network(images), labels).backward()
            for parameter in network.parameters():
                parameter.data -= RATE * parameter.grad
        total += clip.clip(parameters_to_vector(network.parameters()).detach() - task.start)[0]
    federation = benched("mnist", 3, 2, 10)
    object.__setattr__(federation, "mechanism", clip)
    state, _ = next_release(federation, federation.initial_state())
    np.testing.assert_allclose(state.shared[0], task.start + total / 3, atol=1e-6)


def test_ratios_are_taken_turn_by_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT))
    from benchmarks.compare import table

    rows = [
        {"case": "a", "side": side, "start": k % 2, "turn": k // 2, "ms": ms, "memory_mib": 1.0}
        for side, times in (("ours", [1, 10, 2]), ("pfl", [3, 30, 8]))
        for k, ms in enumerate(times)
    ]
    assert table(pd.DataFrame(rows)).ratio.tolist() == [1, 3]


def test_everybody_has_the_same_pytorch() -> None:
    files = [ROOT / "envs" / "requirements.txt", *(ROOT / "benchmarks").glob("*.txt")]
    assert len({re.search(r"^torch==\S+", file.read_text(), re.M)[0] for file in files}) == 1
    assert len(files) == 3
