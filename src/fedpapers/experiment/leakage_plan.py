"""The plan of DP-OGL's study of leakage, which trains nothing."""

from __future__ import annotations

from typing import Any

from fedpapers.errors import InputError
from fedpapers.experiment.config import Config
from fedpapers.experiment.dpogl_config import LeakageAudit, LeakageStudy
from fedpapers.experiment.run_files import RESULTS


class LeakagePlan:
    """What `papers.dpogl.leakage` asks for."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._section: LeakageStudy | None = config.papers.dpogl.leakage if config.papers.dpogl else None

    # Parameters of the rules

    def study(self, wildcards: Any) -> dict[str, Any]:
        """The study, for scripts: its keys, the groups of its structures, and δ."""
        return self._study.model_dump(mode="json", exclude={"audit"}) | {
            "structures": self.structures(wildcards),
            "delta": self._delta,
        }

    def audit(self, wildcards: Any) -> dict[str, Any]:
        """The audit, for scripts: its keys, the groups of its structure, and what it shares with the study."""
        return self._audit.model_dump(mode="json") | {
            "groups": self.structures(wildcards)[self._study.structure],
            "delta": self._delta,
            "response": self._study.response,
        }

    def interval(self, wildcards: Any) -> int | None:
        """S at which the study compares algorithms, if there is a study."""
        return self._section.interval if self._section else None

    def shown(self, wildcards: Any) -> dict[str, Any]:
        """What figures and captions of the study name: its keys without the structures, and δ."""
        return {key: value for key, value in self.study(wildcards).items() if key != "structures"}

    def structures(self, wildcards: Any) -> dict[str, dict[str, list[str]]]:
        """The groups of each structure of the study."""
        names = self._section.structures if self._section else ()
        built = {name: self._config.structures[name].build() for name in names}
        return {
            name: {group: list(workers) for group, workers in groups.members.items()} for name, groups in built.items()
        }

    # Input

    def if_studied(self, files: Any) -> Any:
        """`files`, or an empty one of its type when the configuration has no study of leakage."""
        return files if self._section else type(files)()

    def if_audited(self, files: Any) -> Any:
        """`files`, or an empty one of its type when the configuration has no audit of leakage."""
        return files if self._section and self._section.audit else type(files)()

    def verdict_input(self, wildcards: Any) -> dict[str, str]:
        """What verdicts on DP-OGL's claims are decided from, as far as the configuration asks for it."""
        folder = RESULTS / "dpogl"
        runs = {"runs": "runs.csv", "leakage": "leakage_of_runs.csv"}
        study = {"pairs": "leakage_pairs.csv", "over_time": "leakage_over_time.csv"}
        files = runs | self.if_studied(study) | self.if_audited({"audit": "leakage_audit.csv"})
        return {name: str(folder / file) for name, file in files.items()}

    # What there is

    @property
    def _study(self) -> LeakageStudy:
        if self._section is None:
            raise InputError(f"{self._config.source}: papers.dpogl.leakage is missing; expected the study of leakage")
        return self._section

    @property
    def _audit(self) -> LeakageAudit:
        if self._study.audit is None:
            raise InputError(f"{self._config.source}: papers.dpogl.leakage.audit is missing; expected the audit")
        return self._study.audit

    @property
    def _delta(self) -> float:
        assert self._config.papers.dpogl is not None
        return self._config.papers.dpogl.delta
