"""Tables and figures say of each run who trained together; the truth is the federation that its training makes."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import get_args

import pandas as pd
import pytest
import torch
import yaml

from fedpapers import groups
from fedpapers.errors import InputError
from fedpapers.experiment.config import load_config
from fedpapers.experiment.plan import Plan
from fedpapers.experiment.prepare_partition import prepare_partition
from fedpapers.experiment.run_files import partition_file
from fedpapers.experiment.train import federate
from fedpapers.federated.algorithms import ALGORITHMS, Algorithm, Grouping
from fedpapers.reporting import collect
from fedpapers.reporting.runs import read_runs

TINY = Path(__file__).parents[1] / "configs/tiny.yaml"
PAPER = SimpleNamespace(paper="dpogl")
FIGURE_1B = groups.overlapping()
TRAINING_GROUPS = {
    "one group": FIGURE_1B.merged(),
    "each worker alone": FIGURE_1B.separated(),
    "overlapping groups": FIGURE_1B,
    "disjoint groups": FIGURE_1B.disjoint(),
}


def planned(algorithms: Iterable[str], **common: object) -> Plan:
    """Runs of these algorithms at tiny scale."""
    paper = yaml.safe_load(TINY.read_text(encoding="utf-8"))["papers"]["dpogl"]
    own = {"noise_multiplier": 0.5, "private_layers": "last", "personalise_epochs": 0, "model": "mnist-cnn"}
    paper |= {"common": paper["common"] | own | common, "runs": {"all": {"algorithm": list(algorithms)}}}
    return Plan(load_config(yaml.safe_load(TINY.read_text(encoding="utf-8")) | {"papers": {"dpogl": paper}}))


def labelled(plan: Plan, digits: Path) -> pd.DataFrame:
    """The runs' table as reports read it, by run, as if all had been trained, in the current folder."""
    (partition,) = {partition_file(one).parent for one in plan.runs.values()}
    prepare_partition(next(iter(plan.runs.values())).run.recipe, digits, partition)
    table = plan.table(PAPER)
    metrics = pd.DataFrame([dict.fromkeys(("accuracy", "accuracy_unpersonalised", "accuracy_by_sample", "loss"), 0.5)])
    for file in (Path(state).with_suffix(".metrics.csv") for row in table for state in row["states"]):
        file.parent.mkdir(parents=True, exist_ok=True)
        metrics.to_csv(file, index=False)
    collect.runs(table).to_csv("runs.csv", index=False)
    return read_runs("runs.csv").set_index("run")


def check(plan: Plan, digits: Path) -> pd.DataFrame:
    """The labels, each compared with the groups in which its run trains."""
    runs = labelled(plan, digits)
    for name, one in plan.runs.items():
        federation = federate(one.run, digits, partition_file(one), torch.device("cpu"))
        assert federation.groups.members == TRAINING_GROUPS[runs.loc[name, "groups"]].members, name
    return runs


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_labels_of_all_algorithms_say_who_trains_together(digits: Path) -> None:
    runs = check(planned(ALGORITHMS, grouping=["overlapping", "disjoint"]), digits)
    ways = {name: {one.title for one in ALGORITHMS.values() if name in one.groupings} for name in get_args(Grouping)}
    assert runs.groupby("grouping")["title"].agg(set).to_dict() == ways
    assert set(runs["algorithm"]) == set(ALGORITHMS)


@pytest.mark.parametrize("grouping", get_args(Grouping))
def test_label_of_a_new_algorithm_says_who_trains_together(
    grouping: Grouping, digits: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its entry in the table of algorithms is enough; it takes the place of one whose name a configuration may use."""
    monkeypatch.setitem(ALGORITHMS, "fedavg", Algorithm("New", (grouping,)))
    (row,) = check(planned(["fedavg"]), digits).to_dict("records")
    assert row["method"] == f"New, {row['groups']}"


@pytest.mark.parametrize("grouping", ["overlapping", "disjoint"])
def test_groups_of_a_structure_need_one(grouping: Grouping, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without one, all clients would be one group under another name."""
    monkeypatch.setitem(ALGORITHMS, "fedavg", Algorithm("New", (grouping,)))
    with pytest.raises(InputError, match="structure is missing; fedavg needs one of structures"):
        planned(["fedavg"], structure=None, partition="by-writer", dataset="femnist")


def test_labels_of_methods_stay_as_they_are(digits: Path) -> None:
    assert set(labelled(planned(ALGORITHMS), digits)["method"]) == {
        "Local, each worker alone",
        "FedAvg, one group",
        "DPFedAvg, one group",
        "FedMTL, one group",
        "DPFedMTL, one group",
        "OGL, overlapping groups",
        "DP-OGL, overlapping groups",
        "DP-OGL+, overlapping groups",
        "DP-OGL (local), overlapping groups",
    }
