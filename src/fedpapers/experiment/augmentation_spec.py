"""What each result of MultFAug's learning depends on; from it the hash and the name of its folder follow."""

from __future__ import annotations

import hashlib
from typing import Annotated, Any

from pydantic import Field

from fedpapers.experiment.dataset_spec import MnistData
from fedpapers.experiment.described import Count, Described, Positive, Seed, slug
from fedpapers.files import canonical_json

Label = Annotated[int, Field(ge=0, le=9, strict=True)]


class ClassifierTraining(Described):
    """How a device trains its network; how the judge of generated digits is trained too."""

    epochs: Count = Field(10, description="Passes over the device's samples.")
    batch_size: Count = Field(64, description="Samples of a step.")
    learning_rate: Positive = Field(1e-3, description="Of Adam.")


class _Hashed(Described):
    def canonical(self) -> str:
        """The one text of this description; a data folder's path is no part of it."""
        return canonical_json(_without_paths(self.model_dump(mode="json", exclude_none=True)))

    @property
    def hash(self) -> str:
        """Eight hexadecimal digits of the hash of the canonical text."""
        return hashlib.sha256(self.canonical().encode()).hexdigest()[:8]


class DevicesRecipe(_Hashed):
    """All that the devices' samples depend on."""

    dataset_name: str
    dataset: MnistData
    targets: list[Label]
    samples_per_label: int
    judge_samples: int
    test_samples: int | None = None  # None: the test part of the data set
    seed: Seed

    @property
    def id(self) -> str:
        """Name of its folder."""
        return f"{slug(self.dataset_name, f'n-{len(self.targets)}', f'seed-{self.seed}')}_{self.hash}"


class GanSpec(_Hashed):
    """All that a generator depends on but the number of steps: equal seeds in equal places train one."""

    devices: DevicesRecipe
    seeds: list[int]
    cap: int
    compression: float
    oversample: int
    batch_size: int
    learning_rate: float

    @property
    def id(self) -> str:
        """Name of its folder."""
        devices = self.devices
        parts = (f"n-{len(devices.targets)}", f"{len(self.seeds)}-seeds", f"rho-{self.compression:g}")
        return f"{slug(*parts, f'seed-{devices.seed}')}_{self.hash}"


class ClassifierSpec(_Hashed):
    """All that a device's network depends on."""

    devices: DevicesRecipe
    device: int
    training: ClassifierTraining
    gan: GanSpec | None = None
    steps: int | None = None

    @property
    def id(self) -> str:
        """Name of its file."""
        state = "augmented" if self.gan else "alone"
        parts = (f"n-{len(self.devices.targets)}", f"device-{self.device}", state, f"seed-{self.devices.seed}")
        return f"{slug(*parts)}_{self.hash}"


def _without_paths(content: dict[str, Any]) -> dict[str, Any]:
    """The description with no `path` at any depth."""
    return {
        key: _without_paths(value) if isinstance(value, dict) else value
        for key, value in content.items()
        if key != "path"
    }
