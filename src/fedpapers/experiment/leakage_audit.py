"""What is known of ε from one worker to others at each distance: upper bounds, lower bounds by audit, a reference."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from fedpapers.federated.audit import Setting, lower_bound_to, views
from fedpapers.privacy.exact import LinearRun
from fedpapers.privacy.leakage_report import leakage_report

COLUMNS = ("algorithm", "S", "T", "from", "to", "distance", "bound", "epsilon")


def audit_rows(
    setting: Setting, observers: Sequence[str], runs: int, seed: int, delta: float, response: float
) -> Iterator[dict[str, Any]]:
    """One row an observer and bound; columns `COLUMNS`.

    Bounds are those of `fedpapers leakage`, from above; `audit`, from below, with a confidence of 95 % for all
    observers together; with q = 1 also `exact`, the linear-quadratic reference.

    Args:
        setting: The run.
        observers: Workers, in the order of the rows.
        runs: Simulated runs with the source, and as many without.
        seed: Of the simulation.
        delta: δ of all ε.
        response: Λ of the reference.
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
    confidence = 1 - 0.05 / len(observers)
    for observer in observers:
        place = structure.workers.index(observer)
        found = {name: matrix[0][place] for name, matrix in report["bounds"].items()}
        found["audit"] = lower_bound_to(setting, observer, absent, present, delta, confidence).epsilon
        if setting.sampling_rate == 1:
            found["exact"] = linear.epsilon(observer, delta)
        head = {"algorithm": training.algorithm, "S": training.interval, "T": training.epochs}
        pair = {"from": source, "to": observer, "distance": report["distance"][0][place]}
        yield from (head | pair | {"bound": name, "epsilon": epsilon} for name, epsilon in found.items())
