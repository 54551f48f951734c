"""The plan of MultFAug's learning: its cells, the files of each, and what makes them.

results/multfaug/devices/{devices}/         who has which samples
results/multfaug/seeds/{gan}/               the images that a generator is trained on
results/multfaug/gans/{gan}/step-….*        its states
results/multfaug/classifiers/{classifier}.json
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from fedpapers.errors import InputError
from fedpapers.experiment.augmentation_config import Cell, Learning
from fedpapers.experiment.augmentation_spec import ClassifierSpec, DevicesRecipe, GanSpec
from fedpapers.experiment.config import Config
from fedpapers.experiment.run_files import RESULTS, dataset_about, known
from fedpapers.relay.layouts import LABELS, draw_layouts

FOLDER = RESULTS / "multfaug"

_S_PER_GAN_IMAGE = 6e-4
_S_PER_IMAGE, _S_PER_TEST_IMAGE = 1e-3, 4e-4
_S_PER_JOB = 2.5
_GB_PER_STATE = 0.029
_TEST_PART = 1000  # of each label, in MNIST


class AugmentationPlan:
    """The cells of `papers.multfaug.learning`, each what it shares with others included.

    Attributes:
        learning: The section; None where there is none.
    """

    def __init__(self, config: Config) -> None:
        self._config = config
        self.learning: Learning | None = config.papers.multfaug.learning if config.papers.multfaug else None

    @cached_property
    def cells(self) -> list[Cell]:
        """All cells: accuracy over hops at the first ρ, and all ρ where compression rates are compared."""
        return list(self._cells()) if self.learning else []

    @cached_property
    def compared(self) -> list[Cell]:
        """The cells in which compression rates are compared and something arrived."""
        if not self.learning:
            return []
        setting = (self.learning.compared.devices, self.learning.compared.hops)
        return [cell for cell in self.cells if (cell.devices, cell.hops) == setting and cell.gan]

    # Input and parameters of the rules

    def devices(self, wildcards: Any) -> str:
        """The recipe of some devices, as JSON."""
        return known(self._recipes, wildcards.devices).canonical()

    def dataset_about(self, wildcards: Any) -> str:
        """The data set of the study."""
        return str(self._about)

    def title(self, wildcards: Any) -> str | None:
        """The title of the study's data set; None where it is called by its format."""
        return self._config.datasets[self._study.dataset].title

    def seeds_input(self, wildcards: Any) -> dict[str, str]:
        """What the images of some seeds are made from."""
        return self._from_devices(known(self._gans, wildcards.gan).devices)

    def gan(self, wildcards: Any) -> str:
        """What a generator depends on, as JSON."""
        return known(self._gans, wildcards.gan).canonical()

    def first_step(self, wildcards: Any) -> int:
        """The step from which the segment that ends at `wildcards.step` starts."""
        return self._segment_start(int(wildcards.step))

    def gan_input(self, wildcards: Any) -> dict[str, str]:
        """What a segment of training needs: the seeds, and the state before, if there is one."""
        needed = {"seeds": str(FOLDER / "seeds" / wildcards.gan / "seeds.safetensors")}
        first = self._segment_start(int(wildcards.step))
        if not first:
            return needed
        state = gan_state(wildcards.gan, first)
        return needed | {"previous": str(state), "record": str(state.with_suffix(".json"))}

    def classifier(self, wildcards: Any) -> str:
        """What a device's network depends on, as JSON."""
        return known(self._classifiers, wildcards.classifier).canonical()

    def classifier_input(self, wildcards: Any) -> dict[str, str]:
        """What a device's network is trained from."""
        spec = known(self._classifiers, wildcards.classifier)
        return self._from_devices(spec.devices) | self._generator_of(spec.gan)

    def generator_option(self, wildcards: Any) -> str:
        """The option that names the generator of a device's network; none for a device alone."""
        spec = known(self._classifiers, wildcards.classifier)
        return f"--generator {self._generator_of(spec.gan)['generator']}" if spec.gan else ""

    def steps(self, wildcards: Any) -> int:
        """Steps of a generator's training."""
        return self._study.gan.steps

    def judge_input(self, wildcards: Any) -> dict[str, str]:
        """What the judge is trained from: any devices, as the digits that none has are the same for all."""
        return self._from_devices(self._first_devices)

    def judge_training(self, wildcards: Any) -> str:
        """How the judge is trained, as JSON."""
        return self._study.classifier.model_dump_json()

    def judged_input(self, wildcards: Any) -> dict[str, str]:
        """What a generator is judged from."""
        spec = known(self._gans, wildcards.gan)
        seeds = FOLDER / "seeds" / wildcards.gan / "seeds.safetensors"
        needed = {"seeds": str(seeds), "judge": str(FOLDER / "judge.safetensors")}
        return self._from_devices(spec.devices) | needed | self._generator_of(spec)

    # Results

    def cell_input(self, wildcards: Any) -> list[str]:
        """The networks of all cells, before and after augmentation."""
        return sorted(str(FOLDER / "classifiers" / f"{name}.json") for name in self._classifiers)

    def quality_input(self, wildcards: Any) -> list[str]:
        """The judgement of each generator of the comparison of compression rates."""
        return sorted({str(FOLDER / "gans" / cell.gan.id / "quality.json") for cell in self.compared if cell.gan})

    def cell_rows(self, wildcards: Any) -> list[dict[str, Any]]:
        """The cells, for scripts: their settings, what arrived, and which files hold the rest."""
        return [self._row(cell) for cell in self.cells]

    def compared_rows(self, wildcards: Any) -> list[dict[str, Any]]:
        """The cells of the comparison of compression rates, for scripts."""
        return [self._row(cell) for cell in self.compared]

    def sheet_input(self, wildcards: Any) -> dict[str, list[str]]:
        """The seeds and the generated digits of one repetition, loose deadline, by ascending ρ."""
        gans = [row["gan"] for row in self.sheet_rows(wildcards)]
        return {
            "seeds": [str(FOLDER / "seeds" / gan / "seeds.safetensors") for gan in gans],
            "generated": [str(FOLDER / "gans" / gan / "generated.safetensors") for gan in gans],
        }

    def sheet_rows(self, wildcards: Any) -> list[dict[str, Any]]:
        """The cells that the contact sheet shows."""
        shown = [cell for cell in self.compared if cell.deadline == "loose" and cell.seed == self._study.seed[0]]
        return [self._row(cell) for cell in sorted(shown, key=lambda cell: cell.compression)]

    def if_learnt(self, files: Any) -> Any:
        """`files`, or none when the configuration has no study of learning."""
        return files if self.learning else []

    @property
    def scale(self) -> str:
        """Named in captions."""
        return self._config.scale

    def first_devices(self, wildcards: Any) -> dict[str, str]:
        """The devices that stand for all in a picture."""
        folder = FOLDER / "devices" / self._first_devices.id
        return {"histogram": str(folder / "histogram.csv"), "about": str(folder / "about.json")}

    def counts(self) -> dict[str, int]:
        """How much there is to do; all 0 without a study."""
        study = self.learning
        states = math.ceil(study.gan.steps / study.gan.segment_steps) if study else 0
        return {
            "cells": len(self.cells),
            "devices": len(self._recipes),
            "generators": len(self._gans),
            "steps": study.gan.steps * len(self._gans) if study else 0,
            "states": states * len(self._gans),
            "networks": len(self._classifiers),
        }

    def cost(self) -> dict[str, float]:
        """Rough hours of one CPU core and gigabytes of states, from what was measured on one core of 2026."""
        if self.learning is None:
            return {"cpu_hours": 0.0, "gigabytes": 0.0}
        counts, training = self.counts(), self.learning.classifier
        trained = counts["networks"] * training.epochs * LABELS * self.learning.samples_per_label
        tested = counts["networks"] * (LABELS * (self.learning.test_samples or _TEST_PART))
        images = self.learning.gan.batch_size * counts["steps"]
        jobs = 2 * counts["generators"] + counts["networks"]
        seconds = images * _S_PER_GAN_IMAGE + trained * _S_PER_IMAGE + tested * _S_PER_TEST_IMAGE + jobs * _S_PER_JOB
        return {"cpu_hours": round(seconds / 3600, 2), "gigabytes": round(counts["states"] * _GB_PER_STATE, 2)}

    # What there is

    @property
    def _study(self) -> Learning:
        if self.learning is None:
            raise InputError(f"{self._config.source}: papers.multfaug.learning is missing; expected what is trained")
        return self.learning

    @property
    def _about(self) -> Path:
        name = self._study.dataset
        return dataset_about(name, self._config.datasets[name])

    @cached_property
    def _gans(self) -> dict[str, GanSpec]:
        """Those that a device or the comparison asks for."""
        used = [cell.augmented.gan for cell in self.cells] + [cell.gan for cell in self.compared]
        return {gan.id: gan for gan in used if gan}

    @cached_property
    def _classifiers(self) -> dict[str, ClassifierSpec]:
        return {spec.id: spec for cell in self.cells for spec in (cell.alone, cell.augmented)}

    @cached_property
    def _recipes(self) -> dict[str, DevicesRecipe]:
        return {cell.alone.devices.id: cell.alone.devices for cell in self.cells}

    @property
    def _first_devices(self) -> DevicesRecipe:
        _ = self._study
        return self.cells[0].alone.devices

    def _cells(self) -> Iterator[Cell]:
        from fedpapers.augment.arrivals import arrivals, layout_targets

        study, taus = self._study, self._study.taus()
        for devices in study.devices:
            for seed in study.seed:
                layout = draw_layouts(1, devices, study.dummies, seed)
                recipe = self._recipe(layout_targets(devices, seed), seed)
                for hops in study.hops:
                    compared = (devices, hops) == (study.compared.devices, study.compared.hops)
                    for compression in study.compression if compared else study.compression[:1]:
                        found = arrivals(layout, hops, study.cap, compression, list(taus.values()), seed)
                        for name, arrived in zip(taus, found, strict=True):
                            setting = {"devices": devices, "hops": hops, "compression": compression, "seed": seed}
                            yield self._cell(setting | {"deadline": name, "tau": taus[name]}, recipe, arrived)

    def _cell(self, setting: Mapping[str, Any], recipe: DevicesRecipe, arrived: Any) -> Cell:
        study = self._study
        target_seeds = arrived.labels.count(arrived.target)
        gan = GanSpec(
            devices=recipe,
            seeds=list(arrived.seeds),
            cap=study.cap,
            compression=setting["compression"],
            **study.gan.model_dump(include={"oversample", "batch_size", "learning_rate"}),
        )
        alone = ClassifierSpec(devices=recipe, device=arrived.reference, training=study.classifier)
        # A device asks for its label only if the server has seen it.
        augmented = alone.model_copy(update={"gan": gan, "steps": study.gan.steps}) if target_seeds else alone
        return Cell(
            **setting,
            reference=arrived.reference,
            target=arrived.target,
            seeds=len(arrived.seeds),
            labels=len(set(arrived.labels)),
            target_seeds=target_seeds,
            label_privacy=arrived.label_privacy,
            alone=alone,
            augmented=augmented,
            gan=gan if arrived.seeds else None,
        )

    def _recipe(self, targets: list[int], seed: int) -> DevicesRecipe:
        study = self._study
        return DevicesRecipe(
            dataset_name=study.dataset,
            dataset=self._config.datasets[study.dataset],
            targets=targets,
            samples_per_label=study.samples_per_label,
            judge_samples=study.judge_samples,
            test_samples=study.test_samples,
            seed=seed,
        )

    def _row(self, cell: Cell) -> dict[str, Any]:
        content = cell.model_dump(mode="json", exclude={"alone", "augmented", "gan"})
        gan = cell.gan.id if cell.gan else None
        return content | {"alone": cell.alone.id, "augmented": cell.augmented.id, "gan": gan}

    def _from_devices(self, recipe: DevicesRecipe) -> dict[str, str]:
        devices = FOLDER / "devices" / recipe.id / "devices.safetensors"
        return {"data": str(self._about), "devices": str(devices)}

    def _generator_of(self, gan: GanSpec | None) -> dict[str, str]:
        if gan is None:
            return {}
        state = gan_state(gan.id, self._study.gan.steps)
        return {"generator": str(state), "record": str(state.with_suffix(".json"))}

    def _segment_start(self, last: int) -> int:
        length = self._study.gan.segment_steps
        return (last - 1) // length * length


def gan_state(gan: str, step: int) -> Path:
    """Where the state of a generator and its discriminator after a step lies."""
    return FOLDER / "gans" / gan / f"step-{step:06d}.safetensors"
