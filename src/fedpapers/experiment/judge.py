"""Judging generated digits: how they compare with real ones, and how well the seeds are hidden."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from safetensors.numpy import save

from fedpapers.augment.cgan import Generator, generate
from fedpapers.augment.checkpoint import read_generator, read_judge
from fedpapers.augment.classifier import answers, features
from fedpapers.augment.quality import NEIGHBOURS, quality
from fedpapers.augment.seeds import Images, Labels, read_seeds
from fedpapers.data.devices import Devices, read_devices
from fedpapers.data.format import Dataset, verify_dataset
from fedpapers.errors import InputError
from fedpapers.experiment.augmentation_spec import GanSpec
from fedpapers.files import replacing, sealed, sha256, write_json
from fedpapers.randomness import Purpose, generator
from fedpapers.relay.compression import sparsify
from fedpapers.relay.layouts import LABELS
from fedpapers.relay.privacy import LEAST_SAMPLES, CommonMap, own_map_privacy

_MAP_SEED = 0  # one map for all repetitions
_MOST_JUDGED = 200  # real and generated digits of each label
_ON_MAP = 50  # real digits of each label that make the common map
_SHOWN = 8  # generated digits of each label on the contact sheet


def judge_generator(
    spec: GanSpec,
    steps: int,
    *,
    dataset_folder: Path,
    devices_file: Path,
    seeds_file: Path,
    state: Path,
    judge: Path,
    output: Path,
) -> None:
    """Write `quality.json` to `output`, and beside it `generated.safetensors` with some generated digits.

    The report has precision, recall and F1; `recognised`, the share of generated digits to which the judge gives their
    label, overall and by label, and that of real ones; and the sample privacy of the seeds on both maps.

    Raises:
        InputError: A file does not fit.
    """
    torch.set_num_threads(1)
    dataset = verify_dataset(dataset_folder)
    devices = read_devices(devices_file, len(dataset))
    seeds, seed_labels = read_seeds(seeds_file)
    trained, makes = read_judge(judge), read_generator(state, steps, spec.hash)
    real, real_labels = _real(dataset, devices)
    made, made_labels = _made(makes, real_labels, seed_labels, spec.devices.seed)
    right = answers(trained, made) == made_labels
    found = quality(features(trained, real), real_labels, features(trained, made), made_labels)
    by_label = {str(label): float(right[made_labels == label].mean()) for label in np.unique(made_labels).tolist()}
    every = np.repeat(np.arange(LABELS), _SHOWN)
    shown = output.with_name("generated.safetensors")
    with replacing(shown) as path:
        path.write_bytes(save({"images": generate(makes, every, spec.devices.seed + 1), "labels": every}))
    report = {
        "hash": spec.hash,
        "steps": steps,
        **found._asdict(),
        # a label that is not generated is not recognised
        "recognised": sum(by_label.values()) / LABELS,
        "recognised_by_label": by_label,
        "recognised_of_real": float((answers(trained, real) == real_labels).mean()),
        "generated_sha256": sha256(shown),
        **_privacy(seeds, real, real_labels, spec.compression),
    }
    write_json(output, sealed(report))


def _real(dataset: Dataset, devices: Devices) -> tuple[Images, Labels]:
    """As many test digits of each label, at most 200."""
    labels = np.asarray(dataset.labels[devices.test])
    each = min(_MOST_JUDGED, *np.bincount(labels, minlength=LABELS).tolist())
    if each <= NEIGHBOURS:
        raise InputError(
            f"{dataset.about['name']}: {each} test digits of some label; expected at least {NEIGHBOURS + 1} of each"
        )
    chosen = np.concatenate([devices.test[labels == label][:each] for label in range(LABELS)])
    return np.asarray(dataset.images[chosen]), np.asarray(dataset.labels[chosen])


def _made(makes: Generator, real_labels: Labels, seed_labels: Labels, seed: int) -> tuple[Images, Labels]:
    """Generated digits, as many of each label among the seeds as there are real ones."""
    asked = real_labels[np.isin(real_labels, seed_labels)]
    return generate(makes, asked, seed), asked


def _privacy(seeds: Images, real: Images, real_labels: Labels, compression: float) -> dict[str, float | None]:
    """Sample privacy on the map of the seeds themselves and on a common one, None for too few seeds."""
    if len(seeds) < LEAST_SAMPLES:
        return {"own_map_privacy": None, "common_map_privacy": None}
    on_map = np.concatenate([np.flatnonzero(real_labels == label)[:_ON_MAP] for label in range(LABELS)])
    fixed = sparsify(real[on_map], compression, generator(_MAP_SEED, Purpose.COMPRESSION, round=1))
    return {
        "own_map_privacy": own_map_privacy(seeds / 255),
        "common_map_privacy": CommonMap.of(fixed / 255).privacy(seeds / 255),
    }
