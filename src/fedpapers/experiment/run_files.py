"""Where the files of data sets, partitions and runs lie, and into which segments training is cut."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TypeVar

from fedpapers.errors import InputError
from fedpapers.experiment.dataset_spec import CelebaData, FemnistData, MnistData
from fedpapers.experiment.described import slug
from fedpapers.experiment.grid import PlannedRun

RESULTS = Path("results")
_MOST_SEGMENTS = 200

T = TypeVar("T")


def known(plan: Mapping[str, T], name: str) -> T:
    """What a plan holds under the name that a file has.

    Raises:
        InputError: It holds nothing of that name.
    """
    if name not in plan:
        raise InputError(f"'{name}' is not in the plan of this configuration")
    return plan[name]


def dataset_id(name: str, spec: MnistData | FemnistData | CelebaData) -> str:
    """Name of a data set's folder."""
    return slug(name, spec.source)


def dataset_about(name: str, spec: MnistData | FemnistData | CelebaData) -> Path:
    """The file that says what a data set is; its arrays lie beside."""
    return RESULTS / "data" / dataset_id(name, spec) / "about.json"


def partition_id(planned: PlannedRun) -> str:
    """Name of the folder of a run's partition."""
    run, parameters = planned.run, planned.parameters
    dataset = dataset_id(run.dataset_name, run.dataset)
    names = [dataset, parameters.partition, *([parameters.structure] if parameters.structure else [])]
    return f"{slug(*names, f'seed-{run.seed}')}_{run.recipe.hash}"


def partition_file(planned: PlannedRun) -> Path:
    """The partition of a run."""
    return RESULTS / "partitions" / partition_id(planned) / "partition.safetensors"


def state_file(run: str, round: int) -> Path:
    """Where the state of a run after a round lies."""
    return RESULTS / "runs" / run / f"round-{round:06d}.safetensors"


def segment_start(planned: PlannedRun, last: int, rounds: int) -> int:
    """The round of the state from which a segment goes on; states are kept at releases only.

    Args:
        planned: The run.
        last: The round at which the segment ends.
        rounds: Of a segment, as the configuration gives them.
    """
    every = planned.run.release_every
    length = -(-rounds // every) * every
    return max(0, (last - 1) // length * length)


def segment_ends(planned: PlannedRun, rounds: int) -> list[int]:
    """The rounds of all states of a run, which is cut into segments of so many rounds.

    Raises:
        InputError: They make a chain of jobs that is longer than Snakemake follows.
    """
    ends = [planned.rounds]
    while (start := segment_start(planned, ends[-1], rounds)) > 0:
        ends.append(start)
    if len(ends) > _MOST_SEGMENTS:
        raise InputError(
            f"training.segment_rounds cuts {planned.rounds} rounds of {planned.id} into {len(ends)} segments; expected"
            f" at most {_MOST_SEGMENTS}; raise segment_rounds"
        )
    return ends[::-1]
