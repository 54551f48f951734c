"""Dealing the samples of a data set to the devices of MultFAug."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from fedpapers.data.devices import Devices, Indices, deal_devices
from fedpapers.data.format import Dataset, verify_dataset
from fedpapers.errors import InputError
from fedpapers.experiment.augmentation_spec import DevicesRecipe
from fedpapers.relay.seeds import TARGET_SAMPLES


def prepare_devices(recipe: DevicesRecipe, dataset_folder: Path, folder: Path) -> None:
    """Make a folder of devices: `devices.safetensors`, `histogram.csv`, `about.json`.

    Raises:
        InputError: The data set has too few samples, or no test part where there should be one.
    """
    dataset = verify_dataset(dataset_folder)
    made = make_devices(recipe, dataset)
    made.write(folder, dataset.labels, dataset.about["name"], dataset.about["classes"])


def make_devices(recipe: DevicesRecipe, dataset: Dataset) -> Devices:
    """The devices that a recipe describes."""
    test = _test_part(dataset) if recipe.test_samples is None else recipe.test_samples
    many, judged = recipe.samples_per_label, recipe.judge_samples
    return deal_devices(np.asarray(dataset.labels), recipe.targets, TARGET_SAMPLES, many, test, judged, recipe.seed)


def _test_part(dataset: Dataset) -> Indices:
    """The samples of the data set's own test part, which are its last ones."""
    parts = [entry for entry in dataset.about["origin"] if entry.get("split") == "t10k" and "labels" in entry["file"]]
    if not parts or parts[0]["samples"] == len(dataset):
        raise InputError(
            f"{dataset.about['name']}: no training and test part of its own; expected both, or test_samples in the"
            " configuration"
        )
    return np.arange(len(dataset) - parts[0]["samples"], len(dataset))
