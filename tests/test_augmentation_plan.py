"""MultFAug's learning in the configuration, and which cells share what."""

from __future__ import annotations

import copy
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml

from fedpapers.errors import InputError
from fedpapers.experiment.config import load_config, read_config
from fedpapers.experiment.plan import Plan

ROOT = Path(__file__).parents[1]
BASE = yaml.safe_load((ROOT / "config.yaml").read_text(encoding="utf-8"))


def plan(**changes):
    """The plan of `config.yaml` with changed keys of `learning`; `a__b` is the key `a.b`."""
    content = copy.deepcopy(BASE)
    for key, value in changes.items():
        *parts, last = key.split("__")
        node = content["papers"]["multfaug"]["learning"]
        for part in parts:
            node = node[part]
        node[last] = value
    return Plan(load_config(content)).augmentation


def gans(made):
    return {cell.gan.id for cell in made.cells if cell.gan}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"compression": [1.0]}, "compression.0 is 1.0; expected a number of at least 0 and below 1"),
        ({"compression": [-0.1]}, "compression.0 is -0.1; expected a number of at least 0 and below 1"),
        ({"compression": [False]}, "compression.0 is false; expected a number"),
        ({"compression": []}, "compression is an empty list; expected"),
        ({"hops": [0]}, "hops.0 is 0; expected a whole number of at least 1"),
        ({"hops": [1, 1]}, "1 stands here twice"),
        ({"devices": []}, "devices is an empty list"),
        ({"devices": [0]}, "devices.0 is 0; expected a whole number of at least 1"),
        ({"devices": [2.5]}, "devices.0 is 2.5; expected a whole number of at least 1"),
        ({"cap": 0}, "cap is 0; expected a whole number of at least 1"),
        ({"cap": 17}, "cap is 17; expected at most samples_per_label (16)"),
        ({"dummies": 10}, "dummies is 10; expected a whole number of at least 0 and at most 9"),
        ({"dummies": -1}, "dummies is -1; expected a whole number of at least 0"),
        ({"deadlines": {"tight": 0}}, "deadlines.tight is 0; expected a number above 0"),
        ({"deadlines": {"tight": 30, "loose": 30}}, "loose is 30; expected more slots than tight (30), or none"),
        ({"compared": {"devices": 11, "hops": 3}}, "compared.devices is 11; expected one of the study's devices"),
        ({"compared": {"devices": 10, "hops": 9}}, "compared.hops is 9; expected one of the study's hops"),
        ({"dataset": "minst"}, "'minst' is not one of datasets; did you mean 'mnist'?"),
        ({"samples_per_label": 3, "cap": 2}, "samples_per_label is 3; expected at least 4"),
        ({"gan__steps": 0}, "gan.steps is 0; expected a whole number of at least 1"),
        ({"gan__batch_size": 1}, "gan.batch_size is 1; expected a whole number of at least 2"),
        ({"gan__segment_steps": 1}, "segment_steps cuts 600 steps into 600 segments; expected at most 200"),
        ({"gan__oversample": -1}, "gan.oversample is -1; expected a whole number of at least 0"),
        ({"classifier__epochs": 0}, "classifier.epochs is 0; expected a whole number of at least 1"),
        ({"test_samples": 3}, "test_samples is 3; expected a whole number of at least 4"),
        ({"seed": []}, "seed is an empty list"),
        ({"deadlines__soft": 3}, "unknown key 'soft'"),
    ],
)  # fmt: skip
def test_a_mistake_is_one_line(change, message):
    with pytest.raises(InputError) as caught:
        plan(**change)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value) and "papers.multfaug.learning" in str(caught.value)


def test_cells_are_the_grid_and_the_comparison():
    made = plan(devices=[4, 10], hops=[1, 2], compared={"devices": 10, "hops": 2}, seed=[0, 1])
    assert len(made.cells) == 2 * (2 * 2 * 2 + 2 * 2)
    assert len(made.compared) == 2 * 2 * 3
    assert {cell.compression for cell in made.cells if cell.devices == 4} == {0.0}


def test_another_deadline_changes_neither_devices_nor_what_arrives_by_the_other():
    before, after = plan(), plan(deadlines={"tight": 40, "loose": 400})
    assert {cell.alone.id for cell in before.cells} == {cell.alone.id for cell in after.cells}
    loose = [{cell.gan.id for cell in made.cells if cell.deadline == "loose"} for made in (before, after)]
    assert loose[0] == loose[1] and gans(before) != gans(after)
    assert {c.alone.devices.id for c in before.cells} == {c.alone.devices.id for c in after.cells}


def test_equal_arrivals_train_one_generator():
    late = [plan(deadlines={"tight": 25, "loose": tau}) for tau in (4000, 8000, None)]
    assert gans(late[0]) == gans(late[1]) == gans(late[2])
    both = plan(deadlines={"tight": 5000, "loose": None}, compression=[0.0])
    pairs = {(cell.devices, cell.hops): cell.gan.id for cell in both.cells if cell.gan}
    assert len(gans(both)) == len(set(pairs.values())) <= len(both.cells) // 2
    # N = 10, seed 0: no route has more than four hops
    assert pairs[10, 4] == pairs[10, 5]


def test_what_trains_a_generator_is_in_its_name_and_nothing_else():
    first = gans(plan())
    assert gans(plan(gan__segment_steps=100)) == first
    assert gans(plan(gan__steps=900)) == first
    assert gans(plan(classifier={"epochs": 3})) == first
    for change in ({"gan__oversample": 3}, {"gan__learning_rate": 3e-3}, {"samples_per_label": 20}):
        assert not gans(plan(**change)) & first


def test_a_folder_elsewhere_is_the_same_data():
    content = copy.deepcopy(BASE)
    ids = []
    for path in ("one", "two"):
        content["datasets"]["mnist"] = {"kind": "mnist", "source": "folder", "path": path}
        ids.append(gans(Plan(load_config(content)).augmentation))
    assert ids[0] == ids[1]


def test_more_steps_go_on_from_the_last_state():
    made = plan(gan__steps=900, gan__segment_steps=300)
    gan = next(iter(gans(made)))
    chain = {step: made.gan_input(SimpleNamespace(gan=gan, step=f"{step:06d}")) for step in (300, 600, 900)}
    assert "previous" not in chain[300]
    assert [Path(chain[step]["previous"]).stem for step in (600, 900)] == ["step-000300", "step-000600"]


def test_a_device_whose_label_did_not_arrive_is_left_as_it_is():
    made = plan(seed=list(range(12)), compression=[0.0])
    without = [cell for cell in made.cells if not cell.target_seeds]
    assert without and all(cell.augmented == cell.alone for cell in without)
    assert all(cell.augmented.gan == cell.gan for cell in made.cells if cell.target_seeds)


def test_nothing_arrives_by_the_first_slot_of_some_layouts():
    made = plan(deadlines={"tight": 1e-9}, devices=[10], compared={"devices": 10, "hops": 3})
    tight = [cell for cell in made.cells if cell.deadline == "tight"]
    assert all(cell.gan is None and cell.seeds == 0 and cell.augmented == cell.alone for cell in tight)


def test_the_papers_own_scale_is_planned_at_once():
    files = [ROOT / "config.yaml", ROOT / "configs/paper.yaml"]
    counts = Plan(read_config(files)).augmentation.counts()
    assert counts["devices"] == 20 and counts["cells"] == 260
    assert counts["steps"] == 10_000 * counts["generators"]


def test_what_a_job_is_told_is_what_was_planned():
    files = [ROOT / "config.yaml", ROOT / "configs/paper.yaml"]
    for made in (plan(), Plan(read_config(files)).augmentation):
        for cell in made.cells[:20]:
            for spec in (cell.alone.devices, cell.alone, cell.augmented, *([cell.gan] if cell.gan else [])):
                assert type(spec).model_validate_json(spec.canonical()).hash == spec.hash


def test_without_the_section_there_is_nothing_to_do():
    content = copy.deepcopy(BASE)
    del content["papers"]["multfaug"]
    made = Plan(load_config(content)).augmentation
    assert made.cells == [] and made.if_learnt(["x"]) == [] and made.counts()["generators"] == 0
