"""The answer of `fedpapers leakage`, as JSON and as text."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from itertools import groupby
from typing import Any

import numpy as np

from fedpapers.errors import InputError, nearest
from fedpapers.groups import Groups
from fedpapers.privacy.group_graph import FAR, Ints
from fedpapers.privacy.group_mechanisms import Training
from fedpapers.privacy.leakage import Leakage, Source
from fedpapers.privacy.quadrature import Array

UNIT = "worker"
RELATION = "add-or-remove-one"
ADVERSARY = "one honest-but-curious worker who sees all models of its groups, the last ones included"

_ABOUT_PAPER = (
    "paper: what follows if an interval's sum has the sensitivity √S·c that the description of DP-OGL+ implies.",
    "A counterexample for S = 2 shows that it has not (docs/leakage-proofs.md): for comparison only.",
)
_MOST_SHOWN = 12  # workers up to which the text shows every pair
_MOST_NAMED = 30  # workers up to which an error names them all
_MOST_PAIRS = 25_000_000  # a full report of more needs more memory than a workstation has


def leakage_report(
    structure: Groups,
    training: Training,
    noise: Sequence[float],
    rate: Sequence[float],
    delta: float,
    source: str | None = None,
) -> dict[str, Any]:
    """Who leaks how much to whom, ready for JSON.

    Args:
        structure: Who is in which group.
        training: The run.
        noise: Each group's noise multiplier σ_m ≥ 0, in the order of the groups.
        rate: Each group's sampling rate in (0, 1].
        delta: The δ at which ε is stated, in (0, 1).
        source: A worker, to have its row alone.

    Returns:
        `workers`, `groups`, `distance`, `bounds` (a matrix for each) and `epsilon`, the best proven bound. Rows are the
        workers whose data leak, columns the observers; the diagonal is None and infinity is "inf". `paper` among the
        bounds is the claim for DP-OGL+, which is not proven.

    Raises:
        InputError: A value is out of range, the source is not a worker, or there are too many pairs for a full report.
    """
    leakage = Leakage(structure, noise, rate, training, delta)
    rows = _rows(structure.workers, source)
    class_of = leakage.graph.class_of
    by_class = {of_class: _of_class(leakage, of_class) for of_class in np.unique(class_of[rows]).tolist()}
    matrices = {
        name: [_row(by_class[class_of[n]][name], class_of, n) for n in rows] for name in next(iter(by_class.values()))
    }
    return {
        "workers": list(structure.workers),
        "groups": {name: list(members) for name, members in structure.members.items()},
        **({} if source is None else {"from": source}),
        "unit": UNIT,
        "relation": RELATION,
        "adversary": ADVERSARY,
        "delta": delta,
        "algorithm": training.algorithm,
        "epochs": training.epochs,
        "interval": training.interval,
        "coefficient": training.coefficient,
        "distance": matrices.pop("distance"),
        "bounds": matrices,
        "epsilon": matrices["percolation"],
    }


def heading(report: dict[str, Any]) -> list[str]:
    """The first lines of every text about overlapping groups: the setting, and what the guarantee is about."""
    return [
        f"{report['algorithm']}, T = {report['epochs']} epochs, models cross groups every S = {report['interval']}, "
        f"δ = {report['delta']:g}",
        f"unit: one {report['unit']} with all its data; neighbouring relation: {report['relation']}",
        f"adversary: {report['adversary']}",
        "",
    ]


def format_leakage(report: dict[str, Any]) -> str:
    """A report for people, without a line break at its end."""
    lines = [
        *heading(report),
        "Largest ε at each distance, by bound (hops between groups without the source's own links):",
        *_by_distance(report),
    ]
    if len(report["workers"]) <= _MOST_SHOWN:
        lines += ["", "ε (percolation) from the worker of the row to the observer of the column:", *_pairs(report)]
    if "paper" in report["bounds"]:
        lines += ["", *_ABOUT_PAPER]
    if report["coefficient"] == "alpha":
        lines += ["", "percolation: with the numeric coefficient, which is not proven above order 2."]
    if any("inf" in row for row in report["epsilon"]):
        lines += ["", "inf: not private."]
    return "\n".join(lines)


def _rows(workers: Sequence[str], source: str | None) -> list[int]:
    """The places of the sources."""
    if source is None:
        if len(workers) ** 2 > _MOST_PAIRS:
            raise InputError(f"{len(workers)} workers are too many for a report of all pairs; use --from WORKER")
        return list(range(len(workers)))
    if source not in workers:
        hint = nearest(source, workers if len(workers) <= _MOST_NAMED else workers[:_MOST_NAMED])
        raise InputError(f"--from '{source}': there is no such worker; {hint}")
    return [workers.index(source)]


def _of_class(leakage: Leakage, of_class: int) -> dict[str, Array | Ints]:
    source = Source(leakage, of_class)
    return {"distance": source.distance, **source.bounds()}


def _row(values: Array | Ints, class_of: Ints, source: int) -> list[Any]:
    """Values by class as a row of JSON over the workers: None for the source itself, "inf" for infinity."""
    row: list[Any] = values[class_of].tolist()
    if values.max() in (np.inf, FAR):
        row = ["inf" if value in (np.inf, FAR) else value for value in row]
    row[source] = None
    return row


def _by_distance(report: dict[str, Any]) -> list[str]:
    """A table with one line a distance; neighbouring distances with equal values share a line."""
    largest: dict[tuple[Any, str], float] = defaultdict(float)
    pairs: dict[Any, int] = defaultdict(int)
    for i, row in enumerate(report["distance"]):
        for j, distance in enumerate(row):
            if distance is not None:
                pairs[distance] += 1
                for name, matrix in report["bounds"].items():
                    largest[distance, name] = max(largest[distance, name], float(matrix[i][j]))
    names = list(report["bounds"])
    table = [["distance", "pairs", *names]]
    alike = groupby(sorted(pairs, key=float), key=lambda d: (d == "inf", *(largest[d, name] for name in names)))
    for (_, *values), distances in alike:
        first, *more = distances
        shown = f"{first}–{more[-1]}" if more else str(first)
        table.append([shown, str(sum(pairs[d] for d in (first, *more))), *(f"{value:.4g}" for value in values)])
    return _aligned(table)


def _pairs(report: dict[str, Any]) -> list[str]:
    """A table with a row a source and a column an observer."""
    sources = [report["from"]] if "from" in report else report["workers"]
    table = [["", *report["workers"]]]
    for source, row in zip(sources, report["epsilon"], strict=True):
        table.append([source, *("–" if value is None else f"{float(value):.4g}" for value in row)])
    return _aligned(table)


def _aligned(table: list[list[str]]) -> list[str]:
    widths = [max(len(row[i]) for row in table) for i in range(len(table[0]))]
    return ["  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in table]
