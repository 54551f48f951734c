"""MultFAug's learning in the configuration, and the cells of its study."""

from __future__ import annotations

import math
from typing import Annotated

from pydantic import Field, model_validator

from fedpapers.experiment.augmentation_spec import ClassifierSpec, ClassifierTraining, GanSpec
from fedpapers.experiment.dataset_spec import MnistData
from fedpapers.experiment.described import Axis, Count, Described, NotBool, Positive, Seed
from fedpapers.relay.layouts import MOST_DEVICES
from fedpapers.relay.seeds import TARGET_SAMPLES

_MOST_SEGMENTS = 200
_MOST_CELLS = 5_000  # each draws a layout

Compression = Annotated[float, Field(ge=0, lt=1), NotBool]


class CollectionDeadlines(Described):
    """When the server stops to collect seeds, in slots."""

    tight: Positive = Field(description="A deadline by which not everything arrives.")
    loose: Positive | None = Field(None, description="A later one; left out: none, so that everything arrives.")

    @model_validator(mode="after")
    def _loose_is_later(self) -> CollectionDeadlines:
        if self.loose is not None and self.loose <= self.tight:
            raise ValueError(f"loose is {self.loose:g}; expected more slots than tight ({self.tight:g}), or none")
        return self


class Compared(Described):
    """Of which setting compression rates are compared (Figures 4 and 5)."""

    devices: Count = Field(description="One of the study's numbers of devices.")
    hops: Count = Field(description="One of the study's numbers of hops.")


class GanTraining(Described):
    """How the server trains the generator."""

    steps: Annotated[int, Field(ge=1, le=999_999, strict=True)] = Field(
        description="Steps of training; more of them go on from where it ended."
    )
    batch_size: Annotated[int, Field(ge=2, strict=True)] = Field(32, description="Images of a step.")
    learning_rate: Positive = Field(2e-4, description="Of Adam, for generator and discriminator.")
    oversample: int = Field(
        20, ge=0, le=1000, strict=True, description="Copies of each seed under small random affine maps; 0 for none."
    )
    segment_steps: Count = Field(
        description="Steps between two states that are kept, from which training resumes; changes no result."
    )

    @model_validator(mode="after")
    def _segments_are_few(self) -> GanTraining:
        segments = math.ceil(self.steps / self.segment_steps)
        if segments > _MOST_SEGMENTS:
            raise ValueError(
                f"segment_steps cuts {self.steps} steps into {segments} segments; expected at most {_MOST_SEGMENTS}"
            )
        return self


class Learning(Described):
    """Seeds that arrive, the generator that is trained on them, and what it does for a device."""

    dataset: str = Field(description="Name of a data set of `datasets`.")
    devices: Axis[Count] = Field(description="N: numbers of devices; each makes a curve.")
    hops: Axis[Count] = Field(description="M: most hops of a route; each makes a point.")
    deadlines: CollectionDeadlines = Field(description="τ: when the server stops to collect.")
    compression: Axis[Compression] = Field(
        description="ρ: shares of the pixels that are set to 0; the first one is that of accuracy over hops."
    )
    compared: Compared = Field(description="Of which setting compression rates are compared.")
    dummies: int = Field(1, ge=0, le=9, strict=True, description="l: dummy labels of each device.")
    cap: Count = Field(4, description="b: most samples of one label on a route.")
    samples_per_label: Count = Field(
        description="Samples of each label but the target that a device has; of that it has 4."
    )
    judge_samples: Annotated[int, Field(ge=4, strict=True)] = Field(
        description="Samples of each label that no device has, for the network that judges generated digits."
    )
    test_samples: Annotated[int, Field(ge=4, strict=True)] | None = Field(
        None, description="Samples of each label for testing; left out: the data set's own test part (t10k)."
    )
    gan: GanTraining = Field(description="Training of the generator.")
    classifier: ClassifierTraining = Field(ClassifierTraining(), description="How a device trains.")
    seed: Axis[Seed] = Field(description="Each draws a layout, its channel, the devices' samples and all of training.")

    @model_validator(mode="after")
    def _values_fit(self) -> Learning:
        if self.cap > self.samples_per_label:
            raise ValueError(f"cap is {self.cap}; expected at most samples_per_label ({self.samples_per_label})")
        if self.samples_per_label < TARGET_SAMPLES:
            raise ValueError(f"samples_per_label is {self.samples_per_label}; expected at least {TARGET_SAMPLES}")
        if max(self.devices) > MOST_DEVICES:
            raise ValueError(f"devices: {max(self.devices):,}; expected at most {MOST_DEVICES:,}")
        compared = len(self.compression) - 1
        if (cells := 2 * len(self.seed) * (len(self.devices) * len(self.hops) + compared)) > _MOST_CELLS:
            raise ValueError(f"its lists make {cells:,} cells; expected at most {_MOST_CELLS:,}; shorten one")
        for name in ("devices", "hops"):
            value, known = getattr(self.compared, name), getattr(self, name)
            if value not in known:
                raise ValueError(f"compared.{name} is {value}; expected one of the study's {name}, {known}")
        return self

    def check_supply(self, data: MnistData) -> None:
        """Refuse more samples of a label than the data are known to have.

        Raises:
            ValueError: There are too few, or no test part where there should be one.
        """
        if self.test_samples is None and data.source == "embedded":
            raise ValueError("test_samples is missing; source embedded has no test part of its own")
        there = data.of_rarest_label(test_part=self.test_samples is not None)
        needed = (self.test_samples or 0) + self.judge_samples + self.samples_per_label
        if there is not None and needed > there:
            raise ValueError(
                f"samples_per_label, test_samples and judge_samples are {needed:,} together; expected at most"
                f" {there:,}, the samples of the rarest label of source {data.source}"
            )

    def taus(self) -> dict[str, float | None]:
        """Name -> slots of each deadline."""
        return {"tight": self.deadlines.tight, "loose": self.deadlines.loose}


class Cell(Described):
    """One setting of the study, and what it came to before anything is trained.

    Attributes:
        devices: N.
        hops: M.
        compression: ρ.
        deadline: `tight` or `loose`.
        tau: The deadline in slots; None for none.
        seed: The repetition.
        reference: Index of the reference device.
        target: Its target label.
        seeds: Seeds that arrived.
        labels: Distinct labels among them.
        target_seeds: Seeds of the reference's target label.
        label_privacy: Of the reference device.
        alone: The reference device's network before augmentation.
        augmented: And after; equal to `alone` where no seed of its target label arrived.
        gan: What was trained on the seeds; None where none arrived.
    """

    devices: int
    hops: int
    compression: float
    deadline: str
    tau: float | None
    seed: int
    reference: int
    target: int
    seeds: int
    labels: int
    target_seeds: int
    label_privacy: float
    alone: ClassifierSpec
    augmented: ClassifierSpec
    gan: GanSpec | None
