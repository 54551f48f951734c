"""Making the images of the seeds that arrived at the server."""

from __future__ import annotations

from pathlib import Path

from fedpapers.augment.seeds import compress_seeds, write_seeds
from fedpapers.data.devices import read_devices
from fedpapers.data.format import verify_dataset
from fedpapers.experiment.augmentation_spec import GanSpec


def make_seeds(spec: GanSpec, dataset_folder: Path, devices_file: Path, folder: Path) -> None:
    """Make a folder of seeds: `seeds.safetensors`, `about.json`.

    Raises:
        InputError: The data set or the devices cannot be used.
    """
    dataset = verify_dataset(dataset_folder)
    devices = read_devices(devices_file, len(dataset))
    seed = spec.devices.seed
    images, labels = compress_seeds(dataset.images, devices, spec.seeds, spec.cap, spec.compression, seed)
    write_seeds(folder, images, labels, spec.compression, {"data": dataset.about["name"], "generated": False})
