"""What each run leaks inside and outside of a worker's groups."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedpapers.experiment.spec import Run
from fedpapers.experiment.store import read_record_of_run
from fedpapers.federated.algorithms import Algorithm
from fedpapers.groups import Groups
from fedpapers.privacy.group_mechanisms import Training
from fedpapers.privacy.leakage_report import leakage_report
from fedpapers.privacy.ledger import Ledger

COLUMNS = (
    "run", "delta", "in_group_max", "in_group_mean", "out_of_group_max", "out_of_group_mean",
    "claimed_out_of_group_max",
)  # fmt: skip


def account_leakage(table: Iterable[Mapping[str, Any]], delta: float) -> list[dict[str, Any]]:
    """One row a run: the best proven ε between pairs of workers, inside and outside of the structure's groups.

    A pair is in-group if the two share a group of the structure, whoever trains with whom: so that one group of all
    is compared, against the same strangers, with groups that keep them apart. `claimed_out_of_group_max` is what the
    description of DP-OGL+ implies, unproven; no value for the other algorithms.

    The bound is `percolation`; where groups take over their members' start models (`mixing: model`) it is `naive`, the
    composition over all groups of a worker, as a neighbour's model then crosses unclipped.

    Args:
        table: The run table of the workflow; of each run the last state's record is read.
        delta: δ.
    """
    return [
        {"run": row["run"], "delta": delta} | _of_run(read_record_of_run(Path(row["states"][-1])), delta)
        for row in table
    ]


def _of_run(record: Mapping[str, Any], delta: float) -> dict[str, float | None]:
    run = Run.model_validate(record["run"])
    members = tuple((name, tuple(workers)) for name, workers in record["groups"].items())
    training = Training(record["last"], run.interval or 1, mechanism_of(run.description))
    bound = "naive" if run.mixing == "model" else "percolation"
    proven, claimed = _matrices(members, training, run.noise_multiplier or 0.0, _rate(record), delta, bound)
    if run.noise == "client":  # the bounds count on secret cohorts
        proven = np.where(proven > 0, math.inf, proven)
    inside = _share_a_group(run.structure.build() if run.structure else Groups(dict(members)))
    others = ~np.eye(len(inside), dtype=bool)
    return {
        "in_group_max": _max(proven[inside & others]),
        "in_group_mean": _mean(proven[inside & others]),
        "out_of_group_max": _max(proven[~inside]),
        "out_of_group_mean": _mean(proven[~inside]),
        "claimed_out_of_group_max": None if claimed is None else _max(claimed[~inside]),
    }


def mechanism_of(algorithm: Algorithm) -> str:
    """The name by which the bounds know what an algorithm releases, and who sees what of it before."""
    if algorithm.releases == "round":
        return "dp-ogl"
    return "dp-ogl-plus" if algorithm.exchanges else "dp-ogl-local"


def _rate(record: Mapping[str, Any]) -> float:
    """The sampling rate of all groups, as the ledger has it; of a run without a release it does not matter."""
    mechanisms = [mechanism for _, mechanism in Ledger.of(record["ledger"]).releases]
    return mechanisms[0].sampling_rate if mechanisms else 1.0


@cache
def _matrices(
    members: tuple[tuple[str, tuple[str, ...]], ...],
    training: Training,
    noise: float,
    rate: float,
    delta: float,
    bound: str,
) -> tuple[NDArray[np.float64], NDArray[np.float64] | None]:
    """Proven and claimed ε [N, N] of a structure; runs that differ in their seed share them."""
    structure = Groups(dict(members))
    groups = len(structure.names)
    report = leakage_report(structure, training, [noise] * groups, [rate] * groups, delta)
    paper = report["bounds"].get("paper")
    return _numbers(report["bounds"][bound]), None if paper is None else _numbers(paper)


def _numbers(matrix: Sequence[Sequence[float | str | None]]) -> NDArray[np.float64]:
    return np.array([[0.0 if value is None else float(value) for value in row] for row in matrix])


def _share_a_group(structure: Groups) -> NDArray[np.bool_]:
    member = structure.membership.astype(int)
    return np.asarray(member.T @ member > 0)


def _max(values: NDArray[np.float64]) -> float | None:
    return float(values.max()) if len(values) else None


def _mean(values: NDArray[np.float64]) -> float | None:
    return float(values.mean()) if len(values) else None
