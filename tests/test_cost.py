"""Expected cost: exact sums from given timings, and a timing of each kind of run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from fedpapers import cli
from fedpapers.experiment import cost
from fedpapers.experiment.config import read_config
from fedpapers.experiment.cost import Clients, Timing, cost_report, format_cost, timing
from fedpapers.experiment.dataset_spec import FemnistData
from fedpapers.experiment.partition_spec import WriterPartition
from fedpapers.experiment.plan import Plan
from fedpapers.reporting.published import HEADLINE

ROOT = Path(__file__).parents[1]


@pytest.fixture
def plan(tmp_path, monkeypatch):
    """DP-OGL as the default configuration has it, where nothing has been prepared."""
    content = yaml.safe_load((ROOT / "config.yaml").read_text())
    content["papers"] = {"dpogl": content["papers"]["dpogl"]}
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(content))
    monkeypatch.chdir(tmp_path)
    return Plan(read_config([Path("config.yaml")]))


def seconds(plan, timing):
    evaluations = [1 + planned.rounds // planned.run.evaluate_every for planned in plan.runs.values()]
    return sum(planned.rounds for planned in plan.runs.values()) * timing.round + sum(evaluations) * timing.evaluation


def test_cost_is_rounds_and_evaluations_times_their_seconds(plan):
    asked = []

    def measure(run, clients):
        asked.append(clients)
        return Timing(round=2.0, evaluation=10.0)

    report = cost_report(plan, HEADLINE, measure)
    (whole,) = report["tables"]
    assert (whole["paper"], whole["table"], whole["runs"]) == ("dpogl", "all runs", len(plan.runs))
    assert whole["core_hours"] == pytest.approx(seconds(plan, Timing(2.0, 10.0)) / 3600)
    assert sum(kind["core_hours"] for kind in report["kinds"]) == pytest.approx(whole["core_hours"])
    assert len(asked) < len(plan.runs) / 3  # seeds and noise multipliers share a timing
    assert set(asked) == {Clients(70, 60)}
    assert "dpogl" in format_cost(report)


def test_prepared_clients_are_counted(plan):
    (planned, *_) = plan.tables["dpogl"]
    folder = Path(plan.partition_folder(planned))
    folder.mkdir(parents=True)
    (folder / "histogram.csv").write_text("client,split,label,samples\na,train,0,7\na,test,0,2\nNA,train,0,1\n")
    asked = set()
    cost_report(plan, HEADLINE, lambda run, clients: asked.add(clients) or Timing(1.0, 1.0))
    assert Clients(2, 5) in asked


@pytest.mark.parametrize("algorithm", ["local", "fedavg", "dpfedavg", "dpfedmtl"])
def test_a_kind_of_run_is_timed(make_run, algorithm):
    private = {"noise_multiplier": 1.0, "noise": "client", "clipping_norm": 0.5} if "dp" in algorithm else {
        "noise_multiplier": None, "noise": None, "clipping_norm": None
    }  # fmt: skip
    run = make_run(
        algorithm=algorithm, structure=None, partition={"scheme": "writer"}, grouping=None, interval=None, mixing=None,
        sampling_rate=None if algorithm == "local" else 0.05,
        private_layers="last" if "mtl" in algorithm else None, **private,
    )  # fmt: skip
    measured = timing(run, Clients(100, 20))
    assert 0 < measured.round < 5
    assert 0 <= measured.evaluation < 60  # it may be lost in the scatter of rounds


def test_huge_runs_are_timed_in_part(make_run):
    private = {"algorithm": "dpfedavg", "grouping": None, "interval": None, "mixing": None}
    few = make_run(structure=None, partition={"scheme": "writer"}, **private)
    measured = timing(few.model_copy(update={"local_steps": 10**9}), Clients(2, 10**9))
    assert measured.round > 1e4


def test_command_line(plan, monkeypatch, capsys):
    monkeypatch.setattr(cost, "timing", lambda run, clients: Timing(2.0, 10.0))
    cli.app(["config", "cost", "--json"], standalone_mode=False)
    assert json.loads(capsys.readouterr().out)["tables"][0]["core_hours"] == pytest.approx(
        seconds(plan, Timing(2.0, 10.0)) / 3600
    )


def test_clients_that_nobody_has_counted_are_those_of_the_real_data(plan):
    (planned, *_) = plan.tables["dpogl"]
    changes = {"structure": None, "dataset": FemnistData(kind="femnist", source="folder", path="mine")}
    run = planned.run.model_copy(update=changes | {"partition": WriterPartition(scheme="writer")})
    plan.tables["dpogl"] = [type(planned)(planned.id, planned.grid, planned.parameters, run)]
    assert cost_report(plan, HEADLINE, lambda *_: Timing(1, 1))["kinds"][0]["clients"] == 178
