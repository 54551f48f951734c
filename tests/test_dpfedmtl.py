"""DPFedMTL end to end: real writers through the loaders, its configuration, its part of the workflow."""

from __future__ import annotations

import csv
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from checkout import copy_parts, snakemake
from data_folders import some_writers, write_celeba, write_leaf

from fedpapers.data.format import read_dataset
from fedpapers.errors import InputError
from fedpapers.experiment.config import load_config, merged, read_config
from fedpapers.experiment.dataset_spec import read_dataset_spec
from fedpapers.experiment.grid import run_table
from fedpapers.experiment.plan import Plan
from fedpapers.experiment.prepare_data import prepare_data
from fedpapers.experiment.prepare_partition import prepare_partition
from fedpapers.experiment.run_files import state_file
from fedpapers.experiment.spec import Run
from fedpapers.experiment.train import Segment, train_segment

ROOT = Path(__file__).parents[1]
REAL = ROOT.parent / "shared" / "data" / "mnist_by_writer_100.npz"
SIGMAS = [0.11, 0.65, 2.42, 9.69]


def fedmtl(**changes: Any) -> Run:
    values: dict[str, Any] = {
        "dataset_name": "femnist",
        "dataset": {"kind": "femnist", "source": "folder"},
        "partition": {"scheme": "writer", "train_fraction": 0.9},
        "algorithm": "fedmtl",
        "model": "mnist-cnn",
        "local_steps": 5,
        "batch_size": 10,
        "learning_rate": 0.1,
        "cohort_size": 10,
        "features": "normalised",
        "private_layers": "last",
        "personalise_epochs": 5,
        "evaluate_every": 20,
        "seed": 0,
    }
    return Run(**{key: value for key, value in (values | changes).items() if value is not None})


def trained(run: Run, folder: Path, data: Path, rounds: int) -> list[dict[str, str]]:
    """The rows of a run's metrics."""
    prepare_partition(run.recipe, data, folder)
    segment = Segment(run, folder / "run", 0, rounds, data, folder / "partition.safetensors")
    train_segment(segment, lambda *_: None)
    with (folder / "run" / f"round-{rounds:06d}.metrics.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def test_real_writers_reach_90_percent(tmp_path: Path) -> None:
    if not REAL.is_file():
        pytest.skip(f"the real digits by writer are not here: {REAL}")
    real = np.load(REAL)
    writers = {str(w): (real["x"][real["writer"] == w], real["y"][real["writer"] == w]) for w in set(real["writer"])}
    write_leaf(tmp_path / "json", writers)
    spec = {"kind": "femnist", "source": "folder", "path": str(tmp_path / "json")}
    prepare_data(read_dataset_spec(json.dumps(spec)), tmp_path / "data")
    started = time.process_time()
    *_, last = trained(fedmtl(), tmp_path, tmp_path / "data", 20)
    assert float(last["accuracy"]) > 0.9 > float(last["accuracy_unpersonalised"])
    assert time.process_time() - started < 60


@pytest.fixture(scope="module")
def generated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Generated characters of eight writers, prepared."""
    folder = tmp_path_factory.mktemp("generated")
    spec = {"kind": "femnist", "source": "embedded", "writers": 8, "scale": 0.1, "seed": 0}
    prepare_data(read_dataset_spec(json.dumps(spec)), folder)
    return folder


def test_a_cohort_size_is_a_sampling_rate_of_the_clients_that_there_are(generated: Path, tmp_path: Path) -> None:
    assert len(read_dataset(generated).writer_names) == 8
    few = {"evaluate_every": 1, "local_steps": 1, "algorithm": "dpfedmtl", "noise": "client"}
    few |= {"clipping_norm": 0.5, "noise_multiplier": 0.5}
    by_size = trained(fedmtl(cohort_size=4, **few), tmp_path / "size", generated, 2)
    by_rate = trained(fedmtl(cohort_size=None, sampling_rate=0.5, **few), tmp_path / "rate", generated, 2)
    assert by_size == by_rate and {row["accuracy"] for row in by_size} != {"0.0"}
    ledger = json.loads((tmp_path / "size/run/round-000002.json").read_text())["ledger"]
    assert "0.5" in json.dumps(ledger)
    with pytest.raises(InputError, match="cohort_size is 9; expected at most the 8 clients of the data"):
        trained(fedmtl(cohort_size=9, **few), tmp_path / "many", generated, 1)


def test_how_often_it_is_evaluated_changes_nothing(generated: Path, tmp_path: Path) -> None:
    seldom = trained(fedmtl(evaluate_every=4, cohort_size=4), tmp_path / "seldom", generated, 4)
    often = trained(fedmtl(evaluate_every=1, cohort_size=4), tmp_path / "often", generated, 4)
    assert len(often) == 5 and seldom == [often[0], often[4]]
    states = [(tmp_path / name / "run/round-000004.safetensors").read_bytes() for name in ("seldom", "often")]
    assert states[0] == states[1]


# The configuration


@pytest.mark.parametrize("files", [["config.yaml"], ["config.yaml", "configs/paper.yaml"]])
def test_all_methods_at_all_noise_multipliers_on_both_data_sets(files: list[str]) -> None:
    config = read_config([ROOT / file for file in files])
    table = run_table(config, "dpfedmtl")
    seeds = {planned.run.seed for planned in table}
    assert len(seeds) >= 3 and len(table) == len(seeds) * 2 * (3 + 2 * len(SIGMAS))
    for data in ("femnist", "celeba"):
        own = [planned.run for planned in table if planned.parameters.dataset == data and planned.run.seed == 0]
        assert sorted(run.algorithm for run in own if run.noise_multiplier is None) == ["fedavg", "fedmtl", "local"]
        for algorithm in ("dpfedavg", "dpfedmtl"):
            assert [run.noise_multiplier for run in own if run.algorithm == algorithm] == SIGMAS
        private = [run for run in own if run.noise_multiplier is not None]
        assert {(run.noise, run.clipping_norm, run.model, run.features) for run in private} == {
            ("client", private[0].clipping_norm, private[0].model, "normalised")
        }, "the two private methods differ in what is shared, and in nothing else"


def test_the_search_is_on_other_clients() -> None:
    config = read_config([ROOT / "config.yaml"])
    plan = Plan(config)
    shown = {config.datasets[planned.parameters.dataset] for planned in plan.tables["dpfedmtl"]}
    searched = {config.datasets[planned.parameters.dataset] for planned in plan.tables["dpfedmtl.tuning"]}
    assert shown and searched and not shown & searched
    assert {data.seed for data in shown}.isdisjoint(data.seed for data in searched)


MISTAKES = [
    ({"writers": None}, "datasets.femnist: writers is missing; source embedded needs it"),
    ({"path": "x"}, "datasets.femnist: path does not go with source embedded; expected none, or null, or source: f*"),
    ({"fraction": 0.5}, "datasets.femnist: fraction does not go with source embedded; *"),
    ({"source": "folder"}, "datasets.femnist: path is missing; source folder needs it"),
    ({"source": "folder", "path": "x"}, "datasets.femnist: * does not go with source folder; *source: embedded"),
    ({"source": "download"}, "datasets.femnist.source is 'download'; expected embedded or folder"),
    ({"identities": 3}, "datasets.femnist: unknown key 'identities'; *"),
    (
        {"kind": "femnits"},
        "datasets.femnist.kind is 'femnits'; expected celeba, femnist or mnist; did you mean femnist?",
    ),
]


@pytest.mark.parametrize(("changes", "expected"), MISTAKES, ids=[expected for _, expected in MISTAKES])
def test_mistakes_about_a_data_set_are_one_line(changes: dict[str, Any], expected: str) -> None:
    content = yaml.safe_load((ROOT / "config.yaml").read_text())
    with pytest.raises(InputError) as caught:
        load_config(merged(content, {"datasets": {"femnist": changes}}))
    start, *rest = expected.split("*")
    said = str(caught.value).removeprefix("config.yaml: ")
    assert said.startswith(start) and all(part in said for part in rest) and "\n" not in said


def test_both_ways_to_say_how_many_join_are_one_too_many() -> None:
    content = yaml.safe_load((ROOT / "config.yaml").read_text())
    common = {"papers": {"dpfedmtl": {"common": {"sampling_rate": 0.1}}}}
    with pytest.raises(InputError, match=r"both sampling_rate and cohort_size are given; expected one of them"):
        run_table(load_config(merged(content, common)), "dpfedmtl")


# The workflow


def configure(folder: Path, changes: dict[str, Any]) -> None:
    path = folder / "config.yaml"
    path.write_text(yaml.safe_dump(merged(yaml.safe_load(path.read_text()), changes), sort_keys=False))


@pytest.mark.workflow
@pytest.mark.xdist_group("workflow")
def test_the_search_makes_its_table(checkout: Path) -> None:
    done = snakemake(checkout, "--cores", "2", "tune")
    assert done.returncode == 0, done.stderr
    rows = list(csv.DictReader((checkout / "results/dpfedmtl/tables/tuning.csv").open(newline="")))
    assert [(row["η"], row["round"]) for row in rows] == [("0.05", "1"), ("0.05", "2"), ("0.1", "1"), ("0.1", "2")]
    assert [row["Best"] for row in rows].count("best") >= 1


def bad_leaf(folder: Path) -> None:
    write_leaf(folder, some_writers())
    text = (folder / "all_data_0.json").read_text()
    (folder / "all_data_0.json").write_text(text[:-200])


def bad_celeba(folder: Path) -> None:
    write_celeba(folder, [("a.jpg", 1, True), ("b.jpg", 1, False)])
    (folder / "identity_CelebA.txt").unlink()


BAD_FOLDERS: list[tuple[str, Any, str]] = [
    ("femnist", lambda folder: None, "no such folder"),
    ("femnist", lambda folder: folder.mkdir(), "no FEMNIST files"),
    ("femnist", bad_leaf, "truncated"),
    ("celeba", bad_celeba, "identity_CelebA.txt: no such file"),
]


@pytest.mark.workflow
@pytest.mark.xdist_group("workflow")
@pytest.mark.parametrize(("kind", "make", "expected"), BAD_FOLDERS, ids=[expected for *_, expected in BAD_FOLDERS])
def test_a_bad_folder_is_one_line_through_the_workflow(checkout: Path, kind: str, make: Any, expected: str) -> None:
    make(checkout / "real")
    none = dict.fromkeys(("writers", "identities", "scale", "seed"))
    keys = {"femnist": ("writers", "scale", "seed"), "celeba": ("identities", "scale", "seed")}[kind]
    folder = {"source": "folder", "path": "real"} | {key: none[key] for key in keys}
    configure(checkout, {"datasets": {kind: folder}})
    answer = snakemake(checkout, "--cores", "1", f"results/data/{kind}_folder/about.json")
    assert answer.returncode != 0
    complaints = [line for line in (answer.stdout + answer.stderr).splitlines() if line.startswith("error:")]
    assert len(complaints) == 1 and expected in complaints[0]
    assert not list((checkout / "results/data").glob(f"{kind}_folder/*"))


def own_folder(checkout: Path, path: str) -> str:
    """Have the tiny experiment take its characters from a folder: the target that prepares them."""
    none = dict.fromkeys(("writers", "scale", "seed"))
    configure(checkout, {"datasets": {"femnist": {"source": "folder", "path": path} | none}})
    return "results/data/femnist_folder/about.json"


@pytest.mark.workflow
@pytest.mark.xdist_group("workflow")
def test_a_changed_file_of_a_folder_prepares_it_again(checkout: Path) -> None:
    write_leaf(checkout / "real", some_writers())
    about = own_folder(checkout, "real")
    assert snakemake(checkout, "--cores", "1", about).returncode == 0
    assert "Nothing to be done" in snakemake(checkout, "-n", "--cores", "1", about).stdout
    write_leaf(checkout / "real", some_writers(seed=1))
    assert "prepare_data" in snakemake(checkout, "-n", "--cores", "1", about).stdout


@pytest.mark.workflow
@pytest.mark.xdist_group("workflow")
def test_a_folder_that_is_not_there_costs_no_prepared_data_set(checkout: Path) -> None:
    write_leaf(checkout / "real", some_writers())
    about = own_folder(checkout, "real")
    assert snakemake(checkout, "--cores", "1", about).returncode == 0
    (checkout / "empty").mkdir()
    for path, found in (("rael", "no such folder"), ("empty", "no files of kind femnist")):
        own_folder(checkout, path)
        prepared = {file: file.stat() for file in (checkout / about).parent.iterdir()}
        for arguments in (["-n", about], [about], ["-n", "dpfedmtl"]):
            answer = snakemake(checkout, "--cores", "1", *arguments)
            assert answer.returncode != 0 and "Traceback" not in answer.stderr
            complaints = [line for line in answer.stderr.splitlines() if line.startswith("error:")]
            assert len(complaints) == 1 and f"datasets.femnist.path is '{path}': {found}; expected" in complaints[0]
        assert {file: file.stat() for file in (checkout / about).parent.iterdir()} == prepared
    answer = snakemake(checkout, "-n", "--cores", "1", "results/data/celeba_embedded/about.json")
    assert answer.returncode == 0 and "Nothing to be done" in answer.stdout


@pytest.mark.workflow
@pytest.mark.xdist_group("workflow")
def test_the_same_data_in_another_place_prepared_alone_train_nothing_again(checkout: Path) -> None:
    for place in ("real", "moved"):
        write_leaf(checkout / place, some_writers((20,) * 6))
    about = own_folder(checkout, "real")
    run = next(one for one in run_table(read_config([checkout / "config.yaml"]), "dpfedmtl") if "femnist" in one.id)
    trained = str(state_file(run.id, run.rounds))
    done = snakemake(checkout, "--cores", "1", trained)
    assert done.returncode == 0, done.stderr
    own_folder(checkout, "moved")
    assert "prepare_partition" in snakemake(checkout, "-n", "--cores", "1", trained).stdout
    assert snakemake(checkout, "--cores", "1", about).returncode == 0
    assert "Nothing to be done" in snakemake(checkout, "-n", "--cores", "1", trained).stdout
    write_leaf(checkout / "moved", some_writers((20,) * 6, seed=1))
    assert snakemake(checkout, "--cores", "1", about).returncode == 0
    assert "prepare_partition" in snakemake(checkout, "-n", "--cores", "1", trained).stdout


@pytest.mark.workflow
@pytest.mark.xdist_group("workflow")
def test_own_data_go_by_their_title_and_are_not_the_papers(tmp_path: Path) -> None:
    """The example of docs/own-data.md, shorter, on three letters of four writers."""
    folder = tmp_path / "with a space"
    copy_parts(folder)
    writers = {name: (images, labels % 3 + 10) for name, (images, labels) in some_writers((12,) * 4).items()}
    write_leaf(folder / "data/mine", writers)
    content = yaml.safe_load((ROOT / "docs/examples/own-leaf.yaml").read_text())
    paper = content["papers"]["dpfedmtl"]
    paper["common"] |= {"rounds": 2, "evaluate_every": 1, "cohort_size": 2, "personalise_epochs": 1, "seed": 0}
    paper["runs"] = {"plain": {"algorithm": "fedmtl"}, "private": {"algorithm": "dpfedmtl", "noise_multiplier": 9.69}}
    own = folder / "own.yaml"
    own.write_text(yaml.safe_dump(content))
    alone = ["dpfedmtl", "--cores", "2", "--replace-workflow-config", "--configfile", "own.yaml"]
    done = snakemake(folder, *alone)
    assert done.returncode == 0 and "merged over" not in done.stderr, done.stderr
    title = content["datasets"]["mine"]["title"]
    tables = {
        name: list(csv.DictReader((folder / f"results/dpfedmtl/tables/{name}.csv").open(newline="", encoding="utf-8")))
        for name in ("clients", "methods", "noise", "guarantees", "claims")
    }
    ours = tables["clients"][0]
    assert (ours["Data"], ours["Clients"], ours["Samples"], ours["Classes"]) == (title, "4", "48", "3")
    for row in (*tables["methods"], *tables["noise"]):
        assert (row["Data"], row["Published, on the real data (%)"]) == (title, "not available")
    assert {row["Data"] for row in tables["guarantees"] if row["Setting"] == "ours"} == {title}
    verdicts = {row["Claim"]: row for row in tables["claims"]}
    most = verdicts["FedMTL gains most on FEMNIST."]
    assert most["Verdict"] == "not decided" and title in most["Our numbers"]

    content["datasets"]["mine"]["title"] = "Other letters"
    own.write_text(yaml.safe_dump(content))
    planned = snakemake(folder, "-n", *alone).stdout
    assert "count_clients" in planned and "certify" in planned and "prepare_" not in planned and "train" not in planned
    content["scale"] = "big"
    own.write_text(yaml.safe_dump(content))
    complaints = [line for line in snakemake(folder, "-n", *alone).stderr.splitlines() if "error" in line]
    assert complaints == ["error: own.yaml: scale is 'big'; expected tiny, embedded or paper"]


@pytest.mark.workflow
@pytest.mark.xdist_group("workflow")
def test_a_configuration_that_is_merged_over_ours_says_so(tmp_path: Path) -> None:
    folder = tmp_path / "checkout"
    copy_parts(folder)
    (folder / "own.yaml").write_text("training: {threads: 2}\n")
    target = "results/data/mnist_embedded/about.json"
    for files, times in ((["own.yaml"], 1), (["config.yaml", "own.yaml"], 0)):
        answer = snakemake(folder, target, "--summary", "--configfile", *files)
        assert answer.returncode == 0 and answer.stdout.startswith("output_file\t"), answer.stderr
        line = "note: own.yaml is merged over config.yaml; --replace-workflow-config takes own.yaml alone"
        assert answer.stderr.splitlines().count(line) == times
    (folder / "own.yaml").write_text("scale: big\n")
    complaint = snakemake(folder, target, "-n", "--configfile", "own.yaml").stderr
    assert "error: config.yaml, own.yaml: scale is 'big'" in complaint
