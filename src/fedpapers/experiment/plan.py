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
from fedpapers.errors import InputError, printable
from fedpapers.experiment.augmentation_plan import AugmentationPlan
from fedpapers.experiment.config import Config, load_config
from fedpapers.experiment.dataset_spec import CelebaData, FemnistData, MnistData
from fedpapers.experiment.grid import PlannedRun, run_table
from fedpapers.experiment.leakage_plan import LeakagePlan
from fedpapers.experiment.partition_spec import PartitionRecipe
from fedpapers.experiment.prepare_data import code_of
from fedpapers.experiment.relay_plan import RelayPlan
from fedpapers.experiment.run_files import (
    RESULTS,
    dataset_about,
    dataset_id,
    known,
    partition_file,
    partition_id,
    segment_ends,
    segment_start,
    state_file,
)
from fedpapers.experiment.spec import Run
from fedpapers.files import read_yaml

_REPLACES = "FEDPAPERS_REPLACE_WORKFLOW_CONFIG"  # for jobs: whether the command line's configuration takes all places


class Plan:
    """The runs of a configuration, and the files that belong to each.

    Attributes:
        config: The checked configuration.
        tables: Paper -> its runs; searches of hyper-parameters stand here too.
        runs: Run id -> the run; those that two papers share stand here once.
        leakage: DP-OGL's study of leakage.
        relay: The study of MultFAug's radio.
        augmentation: The study of MultFAug's learning.
    """

    def __init__(self, config: Config) -> None:
        self.config = config
        self.tables: dict[str, list[PlannedRun]] = {
            paper: run_table(config, paper) for paper in (*config.papers.with_runs, *config.papers.searches)
        }
        for planned in itertools.chain(*self.tables.values()):
            self._ends(planned)  # refuses too many of them
        self.runs = {planned.id: planned for table in self.tables.values() for planned in table}
        self.leakage = LeakagePlan(config)
        self.relay = RelayPlan(config)
        self.augmentation = AugmentationPlan(config)
        self._datasets = {dataset_id(name, spec): spec for name, spec in config.datasets.items()}
        self._partitions = {partition_id(planned): planned.run for planned in self.runs.values()}

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
        spec: MnistData | FemnistData | CelebaData = known(self._datasets, wildcards.dataset)
        return spec.model_dump_json(exclude_none=True)

    def dataset_code(self, wildcards: Any) -> str:
        """The fingerprint of the code that prepares a data set."""
        return code_of(known(self._datasets, wildcards.dataset))

    def dataset_input(self, wildcards: Any) -> list[str]:
        """The files from which a data set is made, as far as they are there.

        Where there are none, but the data set was prepared before, this ends the process with one line: Snakemake would
        delete the prepared one before the job that finds nothing, and an exception here would come with a traceback.
        """
        dataset = known(self._datasets, wildcards.dataset)
        if dataset.path is None:
            return []
        files = [str(file) for file in files_in(Path(dataset.path), dataset.kind)]
        prepared = RESULTS / "data" / wildcards.dataset
        if not files and (prepared / "about.json").exists():
            name = next(name for name, spec in self.config.datasets.items() if spec is dataset)
            sys.exit(f"error: {_without_files(name, dataset)}; {prepared}, prepared before, is left as it is")
        return files

    def folders_without_files(self) -> list[str]:
        """A line for each data set whose folder is not there, or holds nothing that it could be made from."""
        return [
            _without_files(name, dataset)
            for name, dataset in self.config.datasets.items()
            if dataset.path is not None and not files_in(Path(dataset.path), dataset.kind)
        ]

    def partition(self, wildcards: Any) -> str:
        """The recipe of a partition, as JSON."""
        run: Run = known(self._partitions, wildcards.partition)
        return run.recipe.canonical()

    def recipe_of(self, partition: str) -> PartitionRecipe:
        """The recipe of the partition in a folder of this name."""
        return known(self._partitions, partition).recipe

    def partition_input(self, wildcards: Any) -> str:
        """The data set of a partition."""
        return str(_about(known(self._partitions, wildcards.partition)))

    # Training

    def run(self, wildcards: Any) -> str:
        """The canonical description of a run, as JSON."""
        planned: PlannedRun = known(self.runs, wildcards.run)
        return planned.run.canonical()

    def first_round(self, wildcards: Any) -> int:
        """The round from which the segment that ends at round `wildcards.round` starts."""
        return self._start(known(self.runs, wildcards.run), int(wildcards.round))

    def training_input(self, wildcards: Any) -> dict[str, str]:
        """What a segment needs: data set, partition, and the state before, if there is one."""
        planned = known(self.runs, wildcards.run)
        needed = {"data": str(_about(planned.run)), "partition": str(partition_file(planned))}
        first = self._start(planned, int(wildcards.round))
        if not first:
            return needed
        state = state_file(planned.id, first)
        return needed | {"previous": str(state), "record": str(state.with_suffix(".json"))}

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
        files = (partition_file(planned).with_name("histogram.csv") for planned in self.tables[wildcards.paper])
        return sorted({str(file) for file in files})

    def table(self, wildcards: Any) -> list[dict[str, Any]]:
        """The run table of a paper, for scripts: each run's parameters and where its files are."""
        return [self._row(planned) for planned in self.tables[wildcards.paper]]

    def _row(self, planned: PlannedRun) -> dict[str, Any]:
        return {
            "run": planned.id,
            "grid": planned.grid,
            **planned.parameters.model_dump(mode="json", exclude_none=True),
            "grouping": planned.grouping,
            "title": planned.run.description.title,
            "states": [str(state_file(planned.id, end)) for end in self._ends(planned)],
            "partition_folder": str(partition_file(planned).parent),
        }

    def _start(self, planned: PlannedRun, last: int) -> int:
        return segment_start(planned, last, self.config.training.segment_rounds)

    def _ends(self, planned: PlannedRun) -> list[int]:
        return segment_ends(planned, self.config.training.segment_rounds)

    def delta(self, wildcards: Any) -> float:
        """δ of a paper's accounting."""
        return self.config.papers.with_runs[wildcards.paper].delta

    def accountants(self, wildcards: Any) -> list[str]:
        """The accountants of a paper's tables; the first one's ε is on its figures' axes."""
        return list(self.config.papers.with_runs[wildcards.paper].accountants)

    def partitions(self, wildcards: Any) -> list[dict[str, str | None]]:
        """Each data set of a paper, the folder of its first run's partition, and its title or None, for scripts."""
        first: dict[str, PlannedRun] = {}
        for planned in self.tables[wildcards.paper]:
            first.setdefault(planned.parameters.dataset, planned)
        return [
            {"dataset": name, "folder": self.partition_folder(planned), "title": self.config.datasets[name].title}
            for name, planned in first.items()
        ]

    @staticmethod
    def partition_folder(planned: PlannedRun) -> str:
        """Where the partition of a run lies."""
        return str(partition_file(planned).parent)

    def partition_tables(self, wildcards: Any) -> list[str]:
        """The files that say what the clients of these partitions hold."""
        folders = [Path(str(one["folder"])) for one in self.partitions(wildcards)]
        return [str(folder / file) for folder in folders for file in ("histogram.csv", "about.json")]

    def noise_settings(self, wildcards: Any) -> list[dict[str, Any]]:
        """Where a paper's runs use which noise, each once: data set, sampling rate or cohort size, rounds, σ."""
        keys = ("dataset", "sampling_rate", "cohort_size", "rounds", "noise_multiplier")
        all_given = [
            {key: value for key in keys if (value := getattr(planned.parameters, key, None)) is not None}
            for planned in self.tables[wildcards.paper]
        ]
        return [one for k, one in enumerate(all_given) if "noise_multiplier" in one and one not in all_given[:k]]

    def first_partition(self, wildcards: Any) -> dict[str, str]:
        """The partition of a paper's first run, which stands for all in a picture."""
        file = partition_file(self.tables[wildcards.paper][0])
        return {"histogram": str(file.with_name("histogram.csv")), "about": str(file.with_name("about.json"))}

    def title_of_first(self, wildcards: Any) -> str | None:
        """The title of the data of a paper's first run; None where they are called by their format."""
        return self.config.datasets[self.tables[wildcards.paper][0].parameters.dataset].title

    def title(self, wildcards: Any) -> str | None:
        """The title of a data set; None where it is called by its format."""
        return known(self._datasets, wildcards.dataset).title

    def contact_sheets(self, wildcards: Any) -> list[str]:
        """A picture of each data set of DPFedMTL's runs."""
        datasets = dict.fromkeys(
            dataset_id(planned.run.dataset_name, planned.run.dataset) for planned in self.tables.get("dpfedmtl", ())
        )
        folder = RESULTS / "dpfedmtl" / "figures"
        return [str(folder / f"contact_sheet_{dataset}.{kind}") for dataset in datasets for kind in ("png", "pdf")]


def hand_on(workflow: Any) -> None:
    """Have each job's process find the package where this module lies, and read the configuration as this one does.

    Snakemake tells a cluster's jobs which files are merged, but not whether they replace the Snakefile's own.

    Args:
        workflow: What Snakemake gives a Snakefile.
    """
    here = str(Path(__file__).parents[2])
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [here, os.environ.get("PYTHONPATH")]))
    settings = workflow.config_settings
    if workflow.is_main_process:
        os.environ[_REPLACES] = "yes" if settings.replace_workflow_config else ""
    else:
        settings.replace_workflow_config = bool(os.environ.get(_REPLACES))


def configured_by(workflow: Any) -> list[str]:
    """The files of a workflow's configuration, in the order in which they are merged, a later one before.

    Where the command line's are merged over the Snakefile's own and do not begin with it, this says so in a line on
    standard error: whoever has a whole configuration in a file of his own gets two experiments else, and wonders.

    Args:
        workflow: What Snakemake gives a Snakefile.
    """
    given = [_from_here(file) for file in workflow.overwrite_configfiles]
    own = [str(file) for file in workflow.configfiles[len(given) :]]
    settings = workflow.config_settings
    if settings.overwrite_config and settings.replace_workflow_config:
        return given
    if not given or not own or Path(given[0]).resolve() == Path(own[0]).resolve():
        return given or own
    if workflow.is_main_process:
        names = " and ".join(given)
        verb = "is" if len(given) == 1 else "are"
        line = f"note: {names} {verb} merged over {own[0]}; --replace-workflow-config takes {names} alone"
        print(printable(line), file=sys.stderr)
    return own + given


def _from_here(file: Path) -> str:
    """A file, which Snakemake has made absolute, relative where it lies below here."""
    return str(file.relative_to(Path.cwd()) if file.is_relative_to(Path.cwd()) else file)


def _without_files(name: str, dataset: MnistData | FemnistData | CelebaData) -> str:
    found = f"no files of kind {dataset.kind}" if Path(dataset.path or "").is_dir() else "no such folder"
    place = f"datasets.{name}.path is '{dataset.path}'"
    return f"{place}: {found}; expected the folder of its files; correct the path, or put them there"


def _about(run: Run) -> Path:
    return dataset_about(run.dataset_name, run.dataset)
