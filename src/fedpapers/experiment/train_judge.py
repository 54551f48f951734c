"""Training of the network in whose features generated digits are compared with real ones."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

from fedpapers.augment.checkpoint import write_judge
from fedpapers.augment.classifier import train_network
from fedpapers.data.devices import read_devices
from fedpapers.data.format import verify_dataset
from fedpapers.experiment.augmentation_spec import ClassifierTraining

_SEED = 0  # one judge for all repetitions


def train_judge(training: ClassifierTraining, dataset_folder: Path, devices_file: Path, output: Path) -> None:
    """Train the judge on the digits that no device has, and write it.

    Raises:
        InputError: A file does not fit.
    """
    torch.set_num_threads(1)
    dataset = verify_dataset(dataset_folder)
    held_out = read_devices(devices_file, len(dataset)).held_out
    images, labels = np.asarray(dataset.images[held_out]), np.asarray(dataset.labels[held_out])
    settings = (training.epochs, training.batch_size, training.learning_rate)
    write_judge(output, train_network(images, labels, *settings, _SEED))
