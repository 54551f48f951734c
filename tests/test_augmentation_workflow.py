"""MultFAug's learning from end to end at the scale of tests, and what reruns what."""

from __future__ import annotations

import json

import pandas as pd
import pytest
from test_reruns import configure, edit, planned

pytestmark = [pytest.mark.workflow, pytest.mark.xdist_group("workflow")]

SHOWN = {"tabulate_augmentation": 1, "tabulate_augmentation_verdicts": 1, "plot_quality": 1, "plot_accuracy_by_hops": 1}


def learning(config):
    return config["papers"]["multfaug"]["learning"]


def test_everything_is_there(finished):
    results = finished / "results/multfaug"
    cells = pd.read_csv(results / "cells.csv")
    assert len(cells) == 2 and set(cells["deadline"]) == {"tight", "loose"}
    assert cells[["accuracy_alone", "accuracy_augmented", "target_accuracy_augmented"]].stack().between(0, 1).all()
    assert (cells.loc[cells["target_seeds"] > 0, "generated"] == 2).all()
    quality = pd.read_csv(results / "quality.csv")
    assert quality["f1"].between(0, 1).all() and (quality["common_map_privacy"] > 0).all()
    table = pd.read_csv(results / "tables/augmentation.csv")
    assert (table["Published"] == "not available").all()
    verdicts = pd.read_csv(results / "tables/augmentation_verdicts.csv")
    assert set(verdicts["Verdict"]) <= {"holds", "holds in part", "does not hold", "not decided"}
    for file in results.glob("gans/*/step-*.json"):
        record = json.loads(file.read_text())
        assert record["made"]["code"] and record["spec"]["devices"]["dataset_name"] == "mnist"


def test_another_deadline_trains_what_other_seeds_came_for(checkout):
    configure(checkout, lambda config: learning(config)["deadlines"].update(tight=6))
    found = planned(checkout)
    assert {key: found.get(key) for key in ("compress_seeds", "train_gan", "judge_generator")} == {
        "compress_seeds": 1,
        "train_gan": 1,
        "judge_generator": 1,
    }
    assert not {"prepare_data", "prepare_devices", "train_judge", "plot_seeds_and_digits"} & found.keys()


def test_a_later_loose_deadline_by_which_no_more_arrives_trains_nothing(checkout):
    configure(checkout, lambda config: learning(config)["deadlines"].update(loose=4000))
    assert planned(checkout) == {"collect_cells": 1, **SHOWN, "plot_seeds_and_digits": 1}


def test_more_steps_go_on(checkout):
    configure(checkout, lambda config: learning(config)["gan"].update(steps=8))
    found = planned(checkout)
    assert found["train_gan"] == 2 and "compress_seeds" not in found and "prepare_devices" not in found


def test_the_measure_of_quality_trains_no_generator(checkout):
    edit(checkout, "src/fedpapers/augment/quality.py", "NEIGHBOURS = 3", "NEIGHBOURS = 2")
    assert planned(checkout) == {"judge_generator": 2, "collect_cells": 1, **SHOWN, "plot_seeds_and_digits": 1}


def test_a_paper_alone(checkout):
    configure(checkout, lambda config: config["papers"].pop("dpogl"))
    assert planned(checkout) == {}
