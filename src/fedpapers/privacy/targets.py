"""TARGETS.yaml: the largest ε that each worker accepts towards each other.

default: 8          # pairs that are not named below; without it they have no target
pairs:
  Ada:              # whose data
    Ben: 2          # who looks
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from fedpapers.errors import InputError, nearest
from fedpapers.files import read_yaml
from fedpapers.groups import Groups
from fedpapers.privacy.quadrature import Array

_KEYS = ("default", "pairs")
_MOST_PAIRS = 4_000_000  # minutes
_LARGEST = 1e300  # YAML's whole numbers have no end, floats have
_FORM = "expected 'default: ε' or 'pairs: {from: {to: ε}}'"


def targets_by_group(structure: Groups, in_group: float | None, out_of_group: float | None) -> Array:
    """One target for pairs that share a group, and one for all others; None for no target.

    Returns:
        ε by source (row) and observer (column), shape [N, N]; inf where there is no target.

    Raises:
        InputError: A target is not a number of at least 0, or there are too many pairs.
    """
    _check_pairs(structure)
    together = structure.membership.T.astype(int) @ structure.membership > 0
    inside, outside = _value("in-group", in_group), _value("out-of-group", out_of_group)
    return _without_diagonal(np.where(together, inside, outside))


def read_targets(path: Path, structure: Groups) -> Array:
    """The targets of a file, as `targets_by_group` gives them.

    Raises:
        InputError: The file cannot be read or has another form; one line names file, pair and value.
    """
    content = read_yaml(path)
    if not isinstance(content, dict) or not content:
        raise InputError(f"{path}: {_FORM}")
    _check_names(f"{path}", "key", content, _KEYS)
    _check_pairs(structure)
    table = np.full((len(structure.workers),) * 2, _value(f"{path}: default", content.get("default")))
    place = {worker: n for n, worker in enumerate(structure.workers)}
    for source, row in _mapping(f"{path}: pairs", content.get("pairs", {})).items():
        _check_names(f"{path}: pairs", "worker", [source], structure.workers)
        for observer, epsilon in _mapping(f"{path}: pairs.{source}", row).items():
            where = f"{path}: pairs.{source}"
            _check_names(where, "worker", [observer], structure.workers)
            if source == observer:
                raise InputError(f"{where}.{observer}: a worker's data are no secret to itself; expected two workers")
            table[place[source], place[observer]] = _value(f"{where}.{observer}", epsilon)
    return _without_diagonal(table)


def _check_pairs(structure: Groups) -> None:
    workers = len(structure.workers)
    if workers**2 > _MOST_PAIRS:
        most = math.isqrt(_MOST_PAIRS)
        raise InputError(f"plan: {workers:,} workers; expected at most {most:,}; let one stand for each kind of worker")


def _value(where: str, epsilon: Any) -> float:
    if epsilon is None:
        return np.inf
    if isinstance(epsilon, bool) or not isinstance(epsilon, int | float) or not 0 <= epsilon < _LARGEST:
        raise InputError(f"{where}: {epsilon!r}; expected ε ≥ 0, a finite number")
    return float(epsilon)


def _mapping(where: str, value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise InputError(f"{where}: {value!r}; {_FORM}")
    return {str(key): inner for key, inner in value.items()}


def _check_names(where: str, what: str, names: Iterable[object], known: tuple[str, ...]) -> None:
    for name in names:
        if name not in known:
            raise InputError(f"{where}: unknown {what} '{name}'; {nearest(str(name), known)}")


def _without_diagonal(table: Array) -> Array:
    np.fill_diagonal(table, np.inf)
    return table
