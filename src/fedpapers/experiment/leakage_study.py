"""Who leaks how much to whom in DP-OGL, DP-OGL+ and its local form, as tidy tables: bounds only, nothing is trained."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from fedpapers.groups import Groups, from_mapping
from fedpapers.privacy.exact import LinearRun
from fedpapers.privacy.group_mechanisms import ALGORITHMS, Training
from fedpapers.privacy.leakage_report import leakage_report

PAIRS = ("structure", "algorithm", "S", "T", "from", "to", "distance", "bound", "epsilon")
OVER_TIME = ("structure", "sampling_rate", "S", "T", "from", "to", "distance", "bound", "epsilon")

_EVERYBODY = 1.0  # the sampling rate of the exact reference


@dataclass(frozen=True)
class Study:
    """What is asked; the keys of `papers.dpogl.leakage`.

    Attributes:
        structures: Name -> group -> workers.
        epochs: T.
        intervals: S of the pairs' table.
        noise_multiplier: σ of every group.
        sampling_rate: q of every group.
        structure: Name of the structure whose leakage over time is wanted.
        interval: S of leakage over time.
        response: Λ of the linear-quadratic reference.
        delta: δ.
    """

    structures: Mapping[str, Mapping[str, list[str]]]
    epochs: int
    intervals: list[int]
    noise_multiplier: float
    sampling_rate: float
    structure: str
    interval: int
    response: float
    delta: float

    def groups(self, name: str) -> Groups:
        """The groups of a structure."""
        return from_mapping(dict(self.structures[name]))

    def report(self, groups: Groups, training: Training, source: str | None = None) -> dict[str, Any]:
        """Distances and bounds between the workers of a structure."""
        count = len(groups.members)
        noise, rate = [self.noise_multiplier] * count, [self.sampling_rate] * count
        return leakage_report(groups, training, noise, rate, self.delta, source)


def leakage_of_pairs(study: Study) -> Iterator[dict[str, Any]]:
    """One row a structure, algorithm, interval S, ordered pair of workers and bound; columns `PAIRS`.

    The bounds `naive`, `delay`, `cut` and `percolation` are proven, each at most the one before; `paper` is what the
    description of DP-OGL+ implies, unproven. ε is 0 where the distance is infinite.
    """
    for name in study.structures:
        groups = study.groups(name)

        @cache  # runs with the same releases have the same bounds: at S = 1 all three algorithms
        def report(training: Training, groups: Groups = groups) -> dict[str, Any]:
            return study.report(groups, training)

        for interval in study.intervals:
            for algorithm in ALGORITHMS:
                training = Training(study.epochs, interval, algorithm)
                found = report(training if training.unnoised_inside else training.plain())
                bounds = dict(found["bounds"])
                if algorithm == "dp-ogl-plus":
                    bounds.setdefault("paper", bounds["delay"])
                head = {"structure": name, "algorithm": algorithm, "S": interval, "T": study.epochs}
                yield from (head | row for row in _of_pairs(found, bounds))


def leakage_over_time(study: Study) -> Iterator[dict[str, Any]]:
    """One row a sampling rate, number of epochs T, distance and bound of DP-OGL; columns `OVER_TIME`.

    Data leak from the structure's first worker; at each distance the first worker observes. Besides the configured
    rate there is the rate 1, at which the exact reference `exact` exists: see `_exact`.
    """
    groups = study.groups(study.structure)
    source = groups.workers[0]
    for rate in dict.fromkeys((study.sampling_rate, _EVERYBODY)):
        asked = replace(study, sampling_rate=rate)
        for epochs in range(study.epochs + 1):
            training = Training(epochs, study.interval)
            found = asked.report(groups, training, source)
            head = {"structure": study.structure, "sampling_rate": rate, "S": study.interval, "T": epochs}
            observers = first_by_distance(found)
            for row in _of_pairs(found, found["bounds"]):
                if row["to"] in observers:
                    yield head | row
            if rate == _EVERYBODY:
                for observer, distance in observers.items():
                    row = {"from": source, "to": observer, "distance": distance, "bound": "exact"}
                    yield head | row | {"epsilon": _exact(study, groups, training, source, observer)}


def _of_pairs(report: Mapping[str, Any], bounds: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The rows of a report, the diagonal left out."""
    sources = [report["from"]] if "from" in report else report["workers"]
    for i, source in enumerate(sources):
        for j, observer in enumerate(report["workers"]):
            if source != observer:
                pair = {"from": source, "to": observer, "distance": report["distance"][i][j]}
                yield from (pair | {"bound": name, "epsilon": matrix[i][j]} for name, matrix in bounds.items())


def first_by_distance(report: Mapping[str, Any]) -> dict[str, Any]:
    """The first worker at each finite distance from the report's one source, and that distance."""
    first: dict[Any, str] = {}
    for observer, distance in zip(report["workers"], report["distance"][0], strict=True):
        if distance not in (None, "inf"):
            first.setdefault(distance, observer)
    return {first[distance]: distance for distance in sorted(first)}


def _exact(study: Study, groups: Groups, training: Training, source: str, observer: str) -> float:
    """The exact ε of a linear-quadratic run in which everybody takes part and only the source is clipped.

    Two normal laws of the observer's models that differ in their means by μ: the trade-off is that of the Gaussian
    mechanism. The source sends the updates with the largest μ that was found.
    """
    if not training.epochs:
        return 0.0
    response = dict.fromkeys(groups.workers, study.response)
    run = LinearRun(groups, training, response, [study.noise_multiplier] * len(groups.members), source)
    return run.epsilon(observer, study.delta)
