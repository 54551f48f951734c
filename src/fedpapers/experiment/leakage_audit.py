"""What is known of ε from one worker to others at each distance: upper bounds, lower bounds by audit, a reference."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from fedpapers.experiment.leakage_study import first_by_distance
from fedpapers.federated.audit import Setting, lower_bound_to, views
from fedpapers.groups import from_mapping
from fedpapers.privacy.exact import LinearRun
from fedpapers.privacy.group_mechanisms import ALGORITHMS, Training
from fedpapers.privacy.leakage_report import leakage_report

COLUMNS = ("algorithm", "S", "T", "from", "to", "distance", "bound", "epsilon")

_ERROR = 0.05  # chance that any of the audits is wrong


def audit_leakage(
    groups: Mapping[str, list[str]],
    epochs: int,
    interval: int,
    noise_multiplier: float,
    runs: int,
    seed: int,
    delta: float,
    response: float,
) -> Iterator[dict[str, Any]]:
    """The rows of every algorithm, from a structure's first worker to the first observer at each distance, with q = 1.

    The audits together hold with a confidence of 95 %.

    Args:
        groups: Group -> its workers.
        epochs: T.
        interval: S.
        noise_multiplier: σ of every group.
        runs: Simulated runs with the source, and as many without.
        seed: Of the simulation.
        delta: δ of all ε.
        response: Λ of the exact reference.
    """
    structure = from_mapping(dict(groups))
    source, each = structure.workers[0], len(structure.names)
    training = Training(epochs, interval)
    report = leakage_report(structure, training, [noise_multiplier] * each, [1.0] * each, delta, source)
    observers = list(first_by_distance(report))
    confidence = 1 - _ERROR / (len(observers) * len(ALGORITHMS))
    for algorithm in ALGORITHMS:
        setting = Setting(structure, Training(epochs, interval, algorithm), noise_multiplier, 1.0, source)
        yield from audit_rows(setting, observers, runs, seed, delta, response, confidence)


def audit_rows(
    setting: Setting,
    observers: Sequence[str],
    runs: int,
    seed: int,
    delta: float,
    response: float,
    confidence: float,
) -> Iterator[dict[str, Any]]:
    """One row an observer and bound; columns `COLUMNS`.

    Bounds are those of `fedpapers leakage`, from above; `audit`, from below; with q = 1 also `exact`, the
    linear-quadratic reference.

    Args:
        setting: The run.
        observers: Workers, in the order of the rows.
        runs: Simulated runs with the source, and as many without.
        seed: Of the simulation.
        delta: δ of all ε.
        response: Λ of the reference.
        confidence: Of each single audit.
    """
    structure, training, source = setting.structure, setting.training, setting.source
    each = len(structure.names)
    noise, rate = [setting.noise_multiplier] * each, [setting.sampling_rate] * each
    report = leakage_report(structure, training, noise, rate, delta, source)
    absent, present = (views(setting, there, runs, seed) for there in (False, True))
    linear = LinearRun(
        structure,
        training if training.unnoised_inside else training.plain(),
        dict.fromkeys(structure.workers, response),
        noise,
        source,
    )
    for observer in observers:
        place = structure.workers.index(observer)
        found = {name: matrix[0][place] for name, matrix in report["bounds"].items()}
        found["audit"] = lower_bound_to(setting, observer, absent, present, delta, confidence).epsilon
        if setting.sampling_rate == 1:
            found["exact"] = linear.epsilon(observer, delta)
        head = {"algorithm": training.algorithm, "S": training.interval, "T": training.epochs}
        pair = {"from": source, "to": observer, "distance": report["distance"][0][place]}
        yield from (head | pair | {"bound": name, "epsilon": epsilon} for name, epsilon in found.items())
