"""Training of a device's network, alone or with generated samples of its target label."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from fedpapers.augment.cgan import generate
from fedpapers.augment.checkpoint import read_generator
from fedpapers.augment.classifier import answers, train_network
from fedpapers.augment.seeds import Images, Labels
from fedpapers.data.devices import Devices, read_devices
from fedpapers.data.format import Dataset, verify_dataset
from fedpapers.experiment.augmentation_spec import ClassifierSpec
from fedpapers.experiment.environment import environment
from fedpapers.experiment.fingerprint import fingerprint
from fedpapers.files import sealed, write_json


def train_classifier(
    spec: ClassifierSpec, dataset_folder: Path, devices_file: Path, generator: Path | None, output: Path, threads: int
) -> None:
    """Train a device's network, test it, and write how well it does: accuracy over all labels and of each.

    Args:
        spec: What is trained.
        dataset_folder: Folder of the prepared data set.
        devices_file: File of the devices.
        generator: The generator's state; None for a device alone.
        output: JSON file to write.
        threads: Threads of PyTorch.

    Raises:
        InputError: A file does not fit.
    """
    started = time.monotonic()
    torch.set_num_threads(threads)
    dataset = verify_dataset(dataset_folder)
    devices = read_devices(devices_file, len(dataset))
    images, labels = training_samples(spec, dataset, devices, generator)
    settings, seed = spec.training, spec.devices.seed
    trained = train_network(
        images, labels, settings.epochs, settings.batch_size, settings.learning_rate, seed, spec.device
    )
    tested = np.asarray(dataset.labels[devices.test])
    right = answers(trained, dataset.images[devices.test]) == tested
    target = int(devices.targets[spec.device])
    result = {
        "target": target,
        "samples": len(labels),
        "generated": len(labels) - len(devices.of(spec.device)),
        "tested": len(tested),
        "accuracy": float(right.mean()),
        "target_accuracy": float(right[tested == target].mean()),
        "by_label": _by_label(right, tested),
    }
    seconds = {"seconds": round(time.monotonic() - started, 3)}
    made = environment(torch.device("cpu"), fingerprint(__name__)) | seconds
    write_json(output, sealed({"hash": spec.hash, **result, "made": made}))


def training_samples(
    spec: ClassifierSpec, dataset: Dataset, devices: Devices, generator: Path | None
) -> tuple[Images, Labels]:
    """A device's own samples, and generated ones that fill its target label up to the size of the others."""
    own = devices.of(spec.device)
    images, labels = np.asarray(dataset.images[own]), np.asarray(dataset.labels[own])
    if spec.gan is None or spec.steps is None or generator is None:
        return images, labels
    target = int(devices.targets[spec.device])
    missing = spec.devices.samples_per_label - len(devices.of_label(spec.device, target))
    added = np.full(missing, target, dtype=np.int64)
    makes = read_generator(generator, spec.steps, spec.gan.hash)
    return np.concatenate([images, generate(makes, added, spec.devices.seed)]), np.concatenate([labels, added])


def _by_label(right: NDArray[np.bool_], labels: Labels) -> dict[str, float]:
    return {str(label): float(right[labels == label].mean()) for label in np.unique(labels).tolist()}
