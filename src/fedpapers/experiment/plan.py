"""The plan of a workflow: which files there are to be, and what makes each of them.

The rules of the workflow hold no code of their own; their input and params functions are the methods of `Plan`.
"""

from __future__ import annotations

import itertools
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from fedpapers.data.folders import files_in
from fedpapers.errors import InputError
from fedpapers.experiment.config import Config, load_config
from fedpapers.experiment.grid import PlannedRun, run_table
from fedpapers.experiment.prepare_data import code_of
from fedpapers.experiment.spec import Run, slug
from fedpapers.files import read_yaml

RESULTS = Path("results")
_MOST_SEGMENTS = 200


class Plan:
    """The runs of a configuration, and the files that belong to each.

    Attributes:
        config: The checked configuration.
        tables: Paper -> its runs; searches of hyper-parameters stand here too.
        runs: Run id -> the run; those that two papers share stand here once.
    """

    def __init__(self, config: Config) -> None:
        self.config = config
        self.tables: dict[str, list[PlannedRun]] = {
            paper: run_table(config, paper) for paper in (*config.papers.with_runs, *config.papers.searches)
        }
        for planned in itertools.chain(*self.tables.values()):
            _check_segments(planned, len(self._ends(planned)))
        self.runs = {planned.id: planned for table in self.tables.values() for planned in table}
        self._datasets = {_dataset_id(planned.run): planned.run for planned in self.runs.values()}
        self._partitions = {_partition_id(planned): planned.run for planned in self.runs.values()}

    @classmethod
    def of(cls, content: Mapping[str, Any], files: Sequence[str | Path]) -> Plan:
        """The plan of a workflow's merged configuration.

        Args:
            content: The merged configuration.
            files: Where it comes from; read once more, as a YAML reader lets a repeated key pass.

        Raises:
            InputError: The configuration cannot be used.
        """
        for file in files:
            read_yaml(Path(file))
        return cls(load_config(content, ", ".join(str(file) for file in files) or "configuration"))

    @classmethod
    def or_exit(cls, content: Mapping[str, Any], files: Sequence[str | Path]) -> Plan:
        """The plan, or one line on standard error and the end of this process."""
        try:
            return cls.of(content, files)
        except InputError as error:
            sys.exit(f"error: {error}")

    # Data

    def dataset(self, wildcards: Any) -> str:
        """The description of a data set, as JSON."""
        run: Run = self._known(self._datasets, wildcards.dataset)
        return run.dataset.model_dump_json(exclude_none=True)

    def dataset_code(self, wildcards: Any) -> str:
        """The fingerprint of the code that prepares a data set."""
        return code_of(self._known(self._datasets, wildcards.dataset).dataset)

    def dataset_input(self, wildcards: Any) -> list[str]:
        """The files from which a data set is made, as far as they are there."""
        dataset = self._known(self._datasets, wildcards.dataset).dataset
        return [] if dataset.path is None else [str(file) for file in files_in(Path(dataset.path), dataset.kind)]

    def partition(self, wildcards: Any) -> str:
        """The recipe of a partition, as JSON."""
        run: Run = self._known(self._partitions, wildcards.partition)
        return run.recipe.canonical()

    def partition_input(self, wildcards: Any) -> str:
        """The data set of a partition."""
        return str(_dataset_about(self._known(self._partitions, wildcards.partition)))

    # Training

    def run(self, wildcards: Any) -> str:
        """The canonical description of a run, as JSON."""
        planned: PlannedRun = self._known(self.runs, wildcards.run)
        return planned.run.canonical()

    def first_round(self, wildcards: Any) -> int:
        """The round from which the segment that ends at round `wildcards.round` starts."""
        return self._segment_start(self._known(self.runs, wildcards.run), int(wildcards.round))

    def training_input(self, wildcards: Any) -> dict[str, str]:
        """What a segment needs: data set, partition, and the state before, if there is one."""
        planned = self._known(self.runs, wildcards.run)
        needed = {"data": str(_dataset_about(planned.run)), "partition": str(_partition_file(planned))}
        first = self._segment_start(planned, int(wildcards.round))
        if not first:
            return needed
        state = state_file(planned.id, first)
        return needed | {"previous": str(state), "record": str(state.with_suffix(".json"))}

    def _segment_start(self, planned: PlannedRun, last: int) -> int:
        """The round of the state from which a segment goes on; states are kept at releases only."""
        every = planned.run.release_every
        length = -(-self.config.training.segment_rounds // every) * every
        return max(0, (last - 1) // length * length)

    # Results

    def final_states(self, wildcards: Any) -> list[str]:
        """The last state of each run of a paper, and its record, which holds the ledger."""
        states = [state_file(planned.id, planned.rounds) for planned in self.tables[wildcards.paper]]
        return [str(file) for state in states for file in (state, state.with_suffix(".json"))]

    def metrics(self, wildcards: Any) -> list[str]:
        """The metrics of each segment of each run of a paper, and the records that they are checked against."""
        table = self.tables[wildcards.paper]
        states = [state_file(planned.id, end) for planned in table for end in self._ends(planned)]
        return [str(state.with_suffix(end)) for state in states for end in (".metrics.csv", ".json")]

    def histograms(self, wildcards: Any) -> list[str]:
        """The histogram of each partition of a paper."""
        files = (_partition_file(planned).with_name("histogram.csv") for planned in self.tables[wildcards.paper])
        return sorted({str(file) for file in files})

    def table(self, wildcards: Any) -> list[dict[str, Any]]:
        """The run table of a paper, for scripts: each run's parameters and where its files are."""
        return [self._row(planned) for planned in self.tables[wildcards.paper]]

    def _row(self, planned: PlannedRun) -> dict[str, Any]:
        return {
            "run": planned.id,
            "grid": planned.grid,
            **planned.parameters.model_dump(mode="json", exclude_none=True),
            "title": planned.run.description.title,
            "states": [str(state_file(planned.id, end)) for end in self._ends(planned)],
            "partition_folder": str(_partition_file(planned).parent),
        }

    def _ends(self, planned: PlannedRun) -> list[int]:
        ends = [planned.rounds]
        while (start := self._segment_start(planned, ends[-1])) > 0:
            ends.append(start)
        return ends[::-1]

    def delta(self, wildcards: Any) -> float:
        """δ of a paper's accounting."""
        return self.config.papers.with_runs[wildcards.paper].delta

    def accountants(self, wildcards: Any) -> list[str]:
        """The accountants of a paper's tables; the first one's ε is on its figures' axes."""
        return list(self.config.papers.with_runs[wildcards.paper].accountants)

    def first_partition(self, wildcards: Any) -> dict[str, str]:
        """The partition of a paper's first run, which stands for all in a picture."""
        file = _partition_file(self.tables[wildcards.paper][0])
        return {"histogram": str(file.with_name("histogram.csv")), "about": str(file.with_name("about.json"))}

    def contact_sheets(self, wildcards: Any) -> list[str]:
        """A picture of each data set of DPFedMTL's runs."""
        datasets = dict.fromkeys(_dataset_id(planned.run) for planned in self.tables.get("dpfedmtl", ()))
        folder = RESULTS / "dpfedmtl" / "figures"
        return [str(folder / f"contact_sheet_{dataset}.{kind}") for dataset in datasets for kind in ("png", "pdf")]

    def verdict_input(self, wildcards: Any) -> dict[str, str]:
        """What verdicts on DP-OGL's claims are decided from, as far as the configuration asks for it."""
        folder = RESULTS / "dpogl"
        runs = {"runs": "runs.csv", "leakage": "leakage_of_runs.csv"}
        study = {"pairs": "leakage_pairs.csv", "over_time": "leakage_over_time.csv"}
        files = runs | self.if_studied(study) | self.if_audited({"audit": "leakage_audit.csv"})
        return {name: str(folder / file) for name, file in files.items()}

    # The study of leakage, which trains nothing

    def leakage_study(self, wildcards: Any) -> dict[str, Any]:
        """The study of leakage of DP-OGL, for scripts: its keys, and δ."""
        paper = self.config.papers.dpogl
        if paper is None or paper.leakage is None:
            raise InputError(f"{self.config.source}: papers.dpogl.leakage is missing; expected the study of leakage")
        return paper.leakage.model_dump(mode="json", exclude={"audit"}) | {
            "structures": self.studied_structures(wildcards),
            "delta": paper.delta,
        }

    def leakage_audit(self, wildcards: Any) -> dict[str, Any]:
        """The audit of the study of leakage, for scripts: its keys, the groups of its structure, and what it shares."""
        study = self.leakage_study(wildcards)
        dpogl = self.config.papers.dpogl
        if dpogl is None or dpogl.leakage is None or dpogl.leakage.audit is None:
            raise InputError(f"{self.config.source}: papers.dpogl.leakage.audit is missing; expected the audit")
        return dpogl.leakage.audit.model_dump(mode="json") | {
            "groups": study["structures"][study["structure"]],
            "delta": study["delta"],
            "response": study["response"],
        }

    def leakage_interval(self, wildcards: Any) -> int | None:
        """S at which the study of leakage compares algorithms, if there is a study."""
        dpogl = self.config.papers.dpogl
        return dpogl.leakage.interval if dpogl and dpogl.leakage else None

    def leakage_shown(self, wildcards: Any) -> dict[str, Any]:
        """What figures and captions of the study of leakage name: its keys without the structures, and δ."""
        study = self.leakage_study(wildcards)
        return {key: value for key, value in study.items() if key != "structures"}

    def studied_structures(self, wildcards: Any) -> dict[str, dict[str, list[str]]]:
        """The groups of each structure of the study of leakage."""
        paper = self.config.papers.dpogl
        study = paper.leakage if paper else None
        built = {name: self.config.structures[name].build() for name in (study.structures if study else ())}
        return {
            name: {group: list(workers) for group, workers in groups.members.items()} for name, groups in built.items()
        }

    def if_studied(self, files: Any) -> Any:
        """`files`, or an empty one of its type when the configuration has no study of leakage."""
        paper = self.config.papers.dpogl
        return files if paper and paper.leakage else type(files)()

    def if_audited(self, files: Any) -> Any:
        """`files`, or an empty one of its type when the configuration has no audit of leakage."""
        paper = self.config.papers.dpogl
        return files if paper and paper.leakage and paper.leakage.audit else type(files)()

    @staticmethod
    def _known(known: Mapping[str, Any], name: str) -> Any:
        if name not in known:
            raise InputError(f"'{name}' is not in the plan of this configuration")
        return known[name]


def _check_segments(planned: PlannedRun, segments: int) -> None:
    """Refuse chains of jobs that are longer than Snakemake follows."""
    if segments > _MOST_SEGMENTS:
        raise InputError(
            f"training.segment_rounds cuts {planned.rounds} rounds of {planned.id} into {segments} segments; expected"
            f" at most {_MOST_SEGMENTS}; raise segment_rounds"
        )


def source_for_jobs() -> None:
    """Have every job of this process find the package where this module lies."""
    here = str(Path(__file__).parents[2])
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [here, os.environ.get("PYTHONPATH")]))


def state_file(run: str, round: int) -> Path:
    """Where the state of a run after a round lies."""
    return RESULTS / "runs" / run / f"round-{round:06d}.safetensors"


def _dataset_id(run: Run) -> str:
    return slug(run.dataset_name, run.dataset.source)


def _dataset_about(run: Run) -> Path:
    return RESULTS / "data" / _dataset_id(run) / "about.json"


def _partition_id(planned: PlannedRun) -> str:
    run, parameters = planned.run, planned.parameters
    names = [_dataset_id(run), parameters.partition, *([parameters.structure] if parameters.structure else [])]
    return f"{slug(*names, f'seed-{run.seed}')}_{run.recipe.hash}"


def _partition_file(planned: PlannedRun) -> Path:
    return RESULTS / "partitions" / _partition_id(planned) / "partition.safetensors"
