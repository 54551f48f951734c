"""The plan of the study of MultFAug's radio, which trains nothing."""

from __future__ import annotations

from typing import Any

from fedpapers.errors import InputError
from fedpapers.experiment.config import Config
from fedpapers.experiment.multfaug_config import LayoutStudy
from fedpapers.experiment.run_files import RESULTS, dataset_id


class RelayPlan:
    """What `papers.multfaug.layouts` asks for."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._section: LayoutStudy | None = config.papers.multfaug.layouts if config.papers.multfaug else None

    def if_laid_out(self, files: Any) -> Any:
        """`files`, or none when the configuration has no study of layouts."""
        return files if self._section else []

    def latency_study(self, wildcards: Any) -> dict[str, Any]:
        """What the study of latency depends on, for scripts."""
        return self._keys("layouts", "devices", "max_hops", "compression_rates", "dummies", "usual_hops", "seed")

    def arrival_study(self, wildcards: Any) -> dict[str, Any]:
        """What the study of arrivals depends on, for scripts."""
        return self._keys("layouts", "devices", "max_hops", "deadlines", "seed")

    def sample_study(self, wildcards: Any) -> dict[str, Any]:
        """What the study of sample privacy depends on, for scripts."""
        return self._keys("privacy_layouts", "devices", "usual_hops", "compression_rates", "deadlines", "seed")

    def payload_study(self, wildcards: Any) -> dict[str, Any]:
        """What the sizes of samples depend on, for scripts."""
        return self._keys("compression_rates", "seed")

    def mapped_layout(self, wildcards: Any) -> dict[str, Any]:
        """Which layout is drawn as a map, for scripts."""
        return self._keys("devices", "usual_hops", "seed")

    def travelling_data(self, wildcards: Any) -> dict[str, str]:
        """The data set whose samples travel."""
        study = self._section
        folder = RESULTS / "data" / (dataset_id(study.dataset, self._config.datasets[study.dataset]) if study else "")
        return {name: str(folder / file) for name, file in (("about", "about.json"), ("images", "images.npy"))}

    def _keys(self, *keys: str) -> dict[str, Any]:
        study, source = self._section, self._config.source
        if study is None:
            raise InputError(f"{source}: papers.multfaug.layouts is missing; expected the study of layouts")
        return study.model_dump(mode="json", include=set(keys))
