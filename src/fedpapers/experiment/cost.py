"""What a configuration's runs are expected to cost: a short timing of each kind of run here, times its rounds.

The timing needs no data set: it trains the run's own model, cohort and local steps on noise of the same shape. Times
are the processor's, so that other work on the machine hardly changes them.
"""

from __future__ import annotations

import csv
import json
import math
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from fedpapers.data.format import write_dataset
from fedpapers.data.partition import Partition
from fedpapers.experiment.grid import PlannedRun
from fedpapers.experiment.plan import Plan
from fedpapers.experiment.spec import Run
from fedpapers.experiment.train import Segment, train_segment
from fedpapers.randomness import Purpose, generator

_SHAPES = {"celeba": ((84, 84, 3), 2), "femnist": ((28, 28), 62)}  # of an image, and how many classes
_DIGITS = ((28, 28), 10)
_SAMPLES = 60  # of a client, where nothing says how many
_ALONE = 4  # clients of Local that are timed
_RELEASES = 6  # that are timed
_MOST_STEPS = 50  # of a client between two releases, and epochs of an evaluation; the time of more is in proportion
_MOST_PIXELS = 2**28  # of all images that are made up for a timing
_IRRELEVANT = {"seed", "learning_rate", "clipping_norm", "evaluate_every"}


class Clients(NamedTuple):
    """How many there are, and how many samples each has on average."""

    number: int
    samples: int


_REAL = {"celeba": Clients(9343, 21), "femnist": Clients(178, 225)}  # LEAF's data as DPFedMTL takes them


@dataclass(frozen=True)
class Timing:
    """Seconds on one thread.

    Attributes:
        round: Of a round.
        evaluation: Of an evaluation of all clients.
    """

    round: float
    evaluation: float

    def seconds(self, planned: PlannedRun) -> float:
        """Of a whole run."""
        evaluations = 1 + planned.rounds // planned.run.evaluate_every
        return planned.rounds * self.round + evaluations * self.evaluation


def cost_report(
    plan: Plan, compared: Mapping[str, float], measure: Callable[[Run, Clients], Timing] | None = None
) -> dict[str, Any]:
    """What `fedpapers config cost --json` prints.

    Args:
        plan: The plan of a configuration.
        compared: Data set -> σ at which DPFedMTL's methods are compared in its table 2.
        measure: How a kind of run is timed; `timing` if None.

    Returns:
        `tables`: runs and core-hours of each paper's tables; runs that two tables share count in both, and once in
        `all runs`. `kinds`: rounds and evaluations per second of each kind of run, and what its runs cost together.
    """
    timings: dict[str, Timing] = {}
    tables, kinds = [], []
    for paper, table in plan.tables.items():
        seconds = {}
        for planned in table:
            clients = _clients(plan, planned)
            key = _kind(planned.run, clients)
            if key not in timings:
                timings[key] = (measure or timing)(planned.run, clients)
            seconds[planned.id] = timings[key].seconds(planned)
            kinds.append((paper, planned, clients, timings[key]))
        for name, own in _tables(paper, table, compared):
            hours = sum(seconds[planned.id] for planned in own) / 3600
            tables.append({"paper": paper, "table": name, "runs": len(own), "core_hours": hours})
    return {"tables": tables, "kinds": _by_kind(kinds)}


def format_cost(report: Mapping[str, Any]) -> str:
    """The text of a `cost_report`, without a line break at its end."""
    lines = [f"{'paper':10} {'table':24} {'runs':>5} {'core-hours':>11}"]
    lines += [f"{t['paper']:10} {t['table']:24} {t['runs']:5} {t['core_hours']:11.3g}" for t in report["tables"]]
    lines += [
        "",
        f"{'data set':12} {'algorithm':12} {'clients':>7} {'rounds/s':>9} {'s/evaluation':>12} {'core-hours':>11}",
    ]
    lines += [
        f"{k['dataset']:12} {k['algorithm']:12} {k['clients']:7} {k['rounds_per_second']:9.3g}"
        f" {k['seconds_per_evaluation']:12.3g} {k['core_hours']:11.3g}"
        for k in report["kinds"]
    ]
    lines.append("processor time of this machine, one thread; all runs from their start, without that of the jobs")
    lines.append("clients: counted where partitions are prepared, else as configured, else those of the papers' data")
    return "\n".join(lines)


def timing(run: Run, clients: Clients) -> Timing:
    """Processor seconds of a round and of an evaluation, measured on this machine with one thread.

    Without a structure the cohort has its expected size, rounded, in every round; Local is timed on a few of its
    clients, and evaluation on those that were made.
    """
    number = clients.number
    local_steps = min(run.local_steps, _MOST_STEPS)
    interval = run.interval and min(run.interval, max(1, _MOST_STEPS // local_steps))
    epochs = run.personalise_epochs and min(run.personalise_epochs, _MOST_STEPS)
    changes: dict[str, Any] = {"local_steps": local_steps, "interval": interval, "personalise_epochs": epochs}
    if run.structure is None:
        rate = run.sampling_rate or 1.0
        cohort = max(1, round(getattr(run, "cohort_size", None) or rate * clients.number))
        number = min(clients.number, cohort if run.description.samples else _ALONE)
        changes |= {"sampling_rate": 1.0, "cohort_size": None}
    samples = min(clients.samples, max(2, _MOST_PIXELS // (number * math.prod(_shape(run)[0]))))
    copy = run.model_copy(update={key: value for key, value in changes.items() if key in type(run).model_fields})
    ends: list[float] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        every = _RELEASES * copy.release_every
        copy = copy.model_copy(update={"evaluate_every": every})
        dataset, partition = _made_up(copy, Clients(number, samples), folder)
        segment = Segment(copy, folder / "run", 0, every, dataset, partition, threads=1, device="cpu")
        train_segment(segment, lambda *_: ends.append(time.process_time()))
    *plain, evaluated = np.diff(ends)  # the first release has the start in it, the last one the evaluation
    release = float(np.median(plain))
    alone = clients.number / number if not run.description.samples else 1.0
    evaluation = max(0.0, float(evaluated) - release) * clients.number / number * clients.samples / samples
    evaluation *= (run.personalise_epochs or 1) / (epochs or 1)
    return Timing(release / copy.release_every * alone * run.local_steps / local_steps, evaluation)


def _shape(run: Run) -> tuple[tuple[int, ...], int]:
    """The shape of an image, and how many classes there are."""
    return _SHAPES.get(run.dataset.kind, _DIGITS)


def _made_up(run: Run, clients: Clients, folder: Path) -> tuple[Path, Path]:
    """Noise of the right shape, in the form in which training reads data: folder of the data set, partition's file."""
    shape, classes = _shape(run)
    draw = generator(0, Purpose.DATA)
    each = max(2, clients.samples)
    images = draw.integers(0, 256, size=(clients.number * each, *shape), dtype=np.uint8)
    labels = draw.integers(0, classes, size=len(images))
    names = [str(k) for k in range(classes)]
    write_dataset(
        folder / "data", images, labels, name="noise", source="embedded", generated=True, licence="none",
        classes=names, origin=[],
    )  # fmt: skip
    own = np.arange(len(images)).reshape(clients.number, each)
    tested = max(1, each // 10)
    workers = run.structure.build().workers if run.structure else tuple(str(k) for k in range(clients.number))
    partition = Partition(workers, tuple(own[:, tested:]), tuple(own[:, :tested]))
    partition.write(folder / "partition", run.recipe.noted(), labels)
    return folder / "data", folder / "partition" / "partition.safetensors"


def _clients(plan: Plan, planned: PlannedRun) -> Clients:
    """Of a run: as prepared, else as configured, else as in the real data set of that name."""
    run = planned.run
    histogram = Path(plan.partition_folder(planned)) / "histogram.csv"
    if histogram.is_file():
        with histogram.open(newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        count = len({row["client"] for row in rows})
        return Clients(count, round(sum(int(row["samples"]) for row in rows) / count))
    workers = len(run.structure.build().workers) if run.structure else getattr(run.partition, "clients", None)
    if workers:
        return Clients(workers, getattr(run.partition, "samples_per_worker", _SAMPLES))
    real = _REAL[run.dataset.kind]  # by writer, which MNIST does not know
    if run.dataset.most_clients:
        return Clients(run.dataset.most_clients, round(real.samples * getattr(run.dataset, "scale", 1)))
    return real


def _kind(run: Run, clients: Clients) -> str:
    """What decides how long a round takes, as text."""
    content = run.model_dump(mode="json", exclude_none=True, exclude=_IRRELEVANT)
    content["noise_multiplier"] = bool(run.noise_multiplier)
    return json.dumps([content, clients], sort_keys=True)


def _tables(
    paper: str, table: list[PlannedRun], compared: Mapping[str, float]
) -> Iterator[tuple[str, list[PlannedRun]]]:
    """The tables of a paper, and the runs that each needs."""
    if paper == "dpfedmtl":
        yield "table 2, figure 4", [planned for planned in table if _is_compared(planned.run, compared)]
        yield "table 3", [planned for planned in table if planned.run.algorithm != "local"]
    yield "all runs", table


def _is_compared(run: Run, compared: Mapping[str, float]) -> bool:
    sigma = compared.get(run.dataset.kind)
    return run.noise_multiplier is None or sigma in (None, run.noise_multiplier)


def _by_kind(runs: list[tuple[str, PlannedRun, Clients, Timing]]) -> list[dict[str, Any]]:
    """One row a paper, data set and algorithm; its slowest timing, where its runs differ."""
    rows: dict[tuple[str, str, str], dict[str, Any]] = {}
    for paper, planned, clients, measured in runs:
        key = (paper, planned.run.dataset_name, planned.run.algorithm)
        row = rows.setdefault(
            key,
            dict(zip(("paper", "dataset", "algorithm"), key, strict=True))
            | {"clients": clients.number, "runs": 0, "rounds_per_second": math.inf, "seconds_per_evaluation": 0.0,
               "core_hours": 0.0},
        )  # fmt: skip
        row["runs"] += 1
        row["rounds_per_second"] = min(row["rounds_per_second"], 1 / measured.round)
        row["seconds_per_evaluation"] = max(row["seconds_per_evaluation"], measured.evaluation)
        row["core_hours"] += measured.seconds(planned) / 3600
    return list(rows.values())
