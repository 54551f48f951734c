"""From the grids of a configuration to the table of runs."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Set
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from fedpapers.errors import InputError, nearest
from fedpapers.experiment.config import Config
from fedpapers.experiment.described import slug
from fedpapers.experiment.partition_spec import PartitionSpec
from fedpapers.experiment.run_config import Paper, RunGrid, RunParameters
from fedpapers.experiment.spec import Run, applicable
from fedpapers.federated.algorithms import Grouping

_MOST_RUNS = 10_000  # of a paper: planned in seconds, and few enough that eight digits of a hash tell them apart
_BY_STRUCTURE = {"overlapping", "disjoint"}  # groupings that without a structure would be one group
_EITHER = {"sampling_rate": "cohort_size", "cohort_size": "sampling_rate"}  # two ways to say the same


@dataclass(frozen=True)
class PlannedRun:
    """A row of the run table.

    Attributes:
        id: Name of the run's folder: what a reader wants to know, and eight digits of its hash.
        grid: Name of the grid that it comes from.
        parameters: As the configuration writes it.
        run: Its canonical description.
    """

    id: str
    grid: str
    parameters: RunParameters
    run: Run

    @property
    def rounds(self) -> int:
        """T: rounds of training."""
        return self.parameters.rounds

    @property
    def grouping(self) -> Grouping:
        """How the clients are grouped: as its parameters say, else in the first way of its algorithm."""
        return self.run.grouping or self.run.description.groupings[0]


@dataclass(frozen=True)
class _Place:
    """Where a grid stands, for messages."""

    paper: str
    grid: str
    own: Set[str]

    def __str__(self) -> str:
        return f"{self.paper}.runs.{self.grid}"

    def of(self, key: str) -> str:
        """Where the value of a key stands: in the grid itself or in what the paper's grids have in common."""
        return f"{self}.{key}" if key in self.own else f"{self.paper}.common.{key}"


def run_table(config: Config, paper_name: str) -> list[PlannedRun]:
    """The runs of one paper, or of its search of hyper-parameters, in the order of the configuration.

    Raises:
        InputError: A run lacks a value, has one that does not apply, or stands in the table twice.
    """
    paper = (config.papers.with_runs | config.papers.searches)[paper_name]
    table: dict[str, PlannedRun] = {}
    for name, grid in paper.runs.items():
        where = _Place(f"{config.source}: papers.{paper_name}", name, grid.axes().keys())
        _check_number(paper, grid, len(table), where)
        for planned in _expand(config, paper, grid, where):
            if planned.run.hash in table:
                other = table[planned.run.hash].grid
                if table[planned.run.hash].run != planned.run:
                    raise InputError(f"{where}: {planned.id} has by chance the hash of another run; change a value")
                raise InputError(
                    f"{where}: the run {planned.id} stands twice in the table"
                    f" ({'a value is repeated' if other == name else f'also in runs.{other}'}); expected each run once"
                )
            table[planned.run.hash] = planned
    return list(table.values())


def _check_number(paper: Paper, grid: RunGrid, before: int, where: _Place) -> None:
    """Refuse grids of more runs than anybody trains, before they are made."""
    axes = paper.common.axes() | grid.axes()
    runs = before + sum(
        math.prod(len(values) for key, values in axes.items() if key != "algorithm" and applicable(name).get(key, True))
        for name in axes.get("algorithm", [])
        if name is not None
    )
    if runs > _MOST_RUNS:
        raise InputError(f"{where}: with its {runs:,} runs; expected at most {_MOST_RUNS:,} of a paper; shorten a list")


def _expand(config: Config, paper: Paper, grid: RunGrid, where: _Place) -> Iterator[PlannedRun]:
    given = paper.common.axes() | grid.axes()
    for algorithm in given.get("algorithm", [None]):
        if algorithm is None:
            raise InputError(f"{where}: algorithm is missing; expected it here or in common")
        axes = _axes_of(algorithm, given, where)
        for values in itertools.product(*axes.values()):
            parameters = _parameters(dict(zip(axes, values, strict=True)), where)
            run = _resolve(config, parameters, where)
            yield PlannedRun(_identity(parameters, run), where.grid, parameters, run)


def _axes_of(algorithm: str, given: dict[str, list[Any]], where: _Place) -> dict[str, list[Any]]:
    """The values of each key that an algorithm has.

    A value that does not apply is left out; one that the grid itself gives for none of its algorithms is a mistake.
    """
    axes = {"algorithm": [algorithm]}
    has = applicable(algorithm)
    others = [applicable(other) for other in given["algorithm"]]
    for key, field in RunParameters.model_fields.items():
        values = given.get(key, [None])
        if not has.get(key, True):
            if key in where.own and values != [None] and not any(other[key] for other in others):
                raise InputError(
                    f"{where}: {key} does not apply to {algorithm};"
                    f" expected it in common or in a grid without {algorithm}"
                )
        elif key in _EITHER and given.get(_EITHER[key], [None]) != [None]:
            if values != [None]:
                raise InputError(f"{where}: both {key} and {_EITHER[key]} are given; expected one of them")
        elif None in values and (key in has or field.is_required()):
            raise InputError(f"{where}: {key} is missing; {algorithm} needs it, here or in common")
        else:
            axes.setdefault(key, values)
    return axes


def _parameters(chosen: dict[str, Any], where: _Place) -> RunParameters:
    try:
        return RunParameters(**chosen)
    except ValidationError as error:
        raise InputError(f"{where}: {error.errors()[0]['msg'].removeprefix('Value error, ')}") from None


def _resolve(config: Config, parameters: RunParameters, where: _Place) -> Run:
    """The canonical run: names replaced by what they stand for."""
    structure = parameters.structure
    partition = _named(config.partitions, "partition", parameters.partition, where)
    run = Run(
        **parameters.model_dump(exclude={"dataset", "partition", "structure", "rounds"}),
        dataset_name=parameters.dataset,
        dataset=_named(config.datasets, "dataset", parameters.dataset, where).model_dump(),
        partition=partition,
        structure=None if structure is None else _named(config.structures, "structure", structure, where),
    )
    if parameters.rounds % parameters.evaluate_every:
        raise InputError(
            f"{where.of('rounds')} is {parameters.rounds}; expected a multiple of evaluate_every"
            f" ({parameters.evaluate_every})"
        )
    if parameters.evaluate_every % run.release_every:
        raise InputError(
            f"{where.of('evaluate_every')} is {parameters.evaluate_every}; expected a multiple of interval"
            f" ({run.interval}): {run.algorithm} has a model to evaluate at the end of each interval only"
        )
    _check_clients(run, where)
    _check_data(run, where)
    _check_private_layers(run, where)
    return run


def _check_clients(run: Run, where: _Place) -> None:
    """The number of clients must come from one place: the structure, the partition, or the data set's writers."""
    scheme = run.partition.scheme
    given = getattr(run.partition, "clients", None)
    if run.structure is None:
        if _BY_STRUCTURE & set(run.description.groupings) or scheme == "groups":
            needs = f"the partition scheme {scheme}" if scheme == "groups" else run.algorithm
            raise InputError(f"{where}: structure is missing; {needs} needs one of structures")
        if scheme in ("shards", "dirichlet") and given is None:
            raise InputError(f"{where}: the partition has no clients; expected clients there, or a structure")
    elif given is not None:
        raise InputError(f"{where}: both the partition and the structure say how many clients; expected one of them")
    elif scheme == "writer":
        raise InputError(f"{where}: structure does not go with the partition scheme writer; expected none")


def _check_data(run: Run, where: _Place) -> None:
    """What can be known of the data before they are prepared must fit the run."""
    data, partition, name = run.dataset, run.partition, run.dataset_name
    if data.faces != run.model.startswith("celeba"):
        shape, fitting = ("84 × 84 × 3", "celeba-cnn or celeba-cnn-small") if data.faces else ("28 × 28", "another")
        raise InputError(
            f"{where.of('model')} is {run.model!r}, but the images of {name} are {shape}; expected {fitting}"
        )
    if partition.scheme == "writer" and not data.writers_known:
        raise InputError(
            f"{where.of('partition')} is by writer, but {name} does not say who wrote what; expected another scheme"
        )
    if partition.scheme == "groups" and partition.classes_per_group > data.classes:
        raise InputError(
            f"{where.of('partition')} has classes_per_group {partition.classes_per_group};"
            f" expected at most {data.classes}, the classes of {name}"
        )
    by_writer = data.most_clients if partition.scheme == "writer" else None
    clients = len(run.structure.build().workers) if run.structure else getattr(partition, "clients", by_writer)
    if clients and run.cohort_size is not None and run.cohort_size > clients:
        raise InputError(f"{where.of('cohort_size')} is {run.cohort_size:g}; expected at most the {clients:,} clients")
    samples, needed = getattr(data, "samples", None), (clients or 0) * _least_samples(partition)
    if samples is not None and needed > samples:
        raise InputError(
            f"{where.of('partition')} needs {needed:,} samples for {clients:,} clients;"
            f" expected at most the {samples:,} of {name}"
        )


def _least_samples(partition: PartitionSpec) -> int:
    """The fewest samples that each client has."""
    if partition.scheme == "groups":
        return partition.samples_per_worker
    return max(2, partition.shards_per_client) if partition.scheme == "shards" else partition.minimum


def _check_private_layers(run: Run, where: _Place) -> None:
    """Private layers other than the last must be layers of the model, and leave something to share."""
    if run.private_layers in (None, "last"):
        return
    from fedpapers.models import Layout, build  # PyTorch takes two seconds

    try:
        Layout.of(build(run.model, run.dataset.classes), run.private_names)
    except InputError as error:
        raise InputError(f"{where.of('private_layers')} is {run.private_layers!r}: {error}") from None


def _named(known: dict[str, Any], kind: str, name: str, where: _Place) -> Any:
    if name not in known:
        raise InputError(f"{where.of(kind)} is {name!r}; expected one of {kind}s; {nearest(name, known)}")
    return known[name]


def _identity(parameters: RunParameters, run: Run) -> str:
    where = [parameters.structure] if parameters.structure else [parameters.dataset, parameters.partition]
    parts = [run.algorithm, *where]
    if run.grouping == "disjoint":
        parts.append("disjoint")
    if run.interval is not None and run.interval > 1:
        parts.append(f"S-{run.interval}")
    if run.noise_multiplier is not None:
        parts.append(f"noise-{run.noise_multiplier:g}")
    return f"{slug(*parts, f'seed-{run.seed}')}_{run.hash}"
