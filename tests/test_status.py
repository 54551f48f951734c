"""What `fedpapers status` tells of runs in every state."""

import json
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from fedpapers.experiment.config import read_config
from fedpapers.experiment.plan import Plan
from fedpapers.experiment.status import COLUMNS, format_status, other_runs, status

TINY = Path(__file__).parents[1] / "configs" / "tiny.yaml"


@pytest.fixture
def plan(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return Plan(read_config([TINY]))


def leave(run, *records, **progress):
    folder = Path("results/runs") / run
    folder.mkdir(parents=True)
    for round in records:
        (folder / f"round-{round:06d}.json").write_text('{"seal": ""}')
    if progress:
        (folder / "progress.json").write_text(json.dumps(progress))


def test_each_state_is_told_apart(plan):
    runs = [row["run"] for row in status(plan)]  # without those of a search that nobody has started
    finished, running, stopped, waiting, *others = runs
    now = time.time()
    news = {"accuracy": 0.5, "epsilon": "inf", "seconds_per_round": 2.0}
    leave(finished, 2, 4, round=4, segment_end=4, updated=now - 9e6, **news)
    leave(running, 2, round=3, segment_end=4, updated=now, **news)
    leave(stopped, 2, round=3, segment_end=4, updated=now - 9e6, **news)
    rows = {row["run"]: row for row in status(plan)}
    assert [rows[run]["state"] for run in runs] == [
        "finished",
        "running",
        "stopped",
        *["waiting"] * (1 + len(others)),
    ]
    assert [rows[run]["round"] for run in runs] == [4, 3, 3, 0, *[0 for _ in others]]
    assert [rows[run]["seconds_left"] for run in runs] == [0.0, 2.0, 2.0, None, *[None for _ in others]]
    assert rows[waiting]["accuracy"] is None
    text = format_status(list(rows.values()), "tiny.yaml", 0)
    assert text.splitlines()[0] == f"tiny.yaml: 1 of {len(runs)} runs finished, 1 running"
    assert "nan" not in text.lower() and waiting not in text


def test_a_damaged_progress_file_is_as_good_as_none(plan):
    run = next(iter(plan.runs))
    leave(run, 2)
    for text in ("{half", "[]", '{"round": "three", "segment_end": 4}', '{"round": 3}'):
        (Path("results/runs") / run / "progress.json").write_text(text)
        assert status(plan)[0]["state"] == "stopped"


@pytest.mark.parametrize("text", ["", "{half", "[]", "3"])
def test_a_damaged_record_is_no_finished_run(plan, text):
    run = next(iter(plan.runs))
    leave(run, 2, 4)
    (Path("results/runs") / run / "round-000004.json").write_text(text)
    assert (status(plan)[0]["state"], status(plan)[0]["round"]) == ("stopped", 2)


def test_the_command_prints_text_or_json(tmp_path):
    shutil.copy(TINY, tmp_path / "config.yaml")
    command = [sys.executable, "-m", "fedpapers", "status"]
    text = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    assert text == "config.yaml: 0 of 13 runs finished, 0 running\n"
    answer = subprocess.run([*command, "--json"], cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    report = json.loads(answer)
    rows = report["runs"]
    assert (report["configuration"], report["other_runs"]) == ("config.yaml", 0)
    assert len(rows) == 13 and set(rows[0]) == set(COLUMNS)


def test_runs_of_other_configurations_are_counted(plan):
    leave(next(iter(plan.runs)), 2)
    leave("dp-ogl_other_01234567", 2, 4)
    leave("ogl_other_89abcdef")
    (Path("results/runs") / ".snakemake_timestamp").touch()
    assert other_runs(plan) == 2
    *_, last = format_status(status(plan), "a.yaml", other_runs(plan)).splitlines()
    assert last == "results/runs also holds runs of other configurations: 2; fedpapers status FILE shows those of FILE"


def test_configuration_files_are_arguments_or_options(tmp_path, monkeypatch, command):
    monkeypatch.chdir(tmp_path)
    shutil.copy(TINY, "a.yaml")
    Path("b.yaml").write_text("scale: embedded\n")
    for words in (["a.yaml", "b.yaml"], ["--config", "a.yaml", "--config", "b.yaml"]):
        assert command("status", *words) == (0, "a.yaml, b.yaml: 0 of 13 runs finished, 0 running\n", "")
    for name in ("status", "verify"):
        code, text, error = command(name, "b.yaml", "--config", "a.yaml")
        assert (code, text) == (2, "") and error.startswith("error: FILES and --config: both were given")


def test_without_a_configuration_there_is_one_line(tmp_path):
    command = [sys.executable, "-m", "fedpapers", "status"]
    answer = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert answer.returncode == 2 and answer.stderr == "error: config.yaml: no such file\n"
