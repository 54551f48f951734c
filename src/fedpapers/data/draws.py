"""What partitions are made with: arrays of indices, and draws that have an address each."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedpapers.errors import InputError
from fedpapers.randomness import Purpose, generator

Indices = NDArray[np.int64]
Samples = tuple[Indices, ...]
"""For each client the indices of its samples."""


class Step(IntEnum):
    """What a draw of a partition is for. The numbers are part of every result: append, never renumber."""

    DEAL = 0
    CLASSES = 1
    POOLS = 2
    SPLIT = 3
    SAMPLE = 4


def step_generator(step: Step, seed: int, client: int = 0) -> np.random.Generator:
    """The generator of one step of a partition, or of one client's part of it."""
    # A partition has no rounds: their place in the address keeps its steps apart.
    return generator(seed, Purpose.PARTITION, round=int(step), client=client)


def check_at_least(scheme: str, least: int, **values: int) -> None:
    """Refuse the first of the named numbers that is below `least`."""
    for name, value in values.items():
        if value < least:
            raise InputError(f"partition {scheme}: {name} is {value}; expected at least {least}")


def ascending(parts: Sequence[Indices]) -> Indices:
    """All indices of all parts, sorted."""
    return np.sort(joined(parts))


def joined(parts: Sequence[Indices]) -> Indices:
    """All indices of all parts, one part after the other."""
    return np.concatenate([np.empty(0, dtype=np.int64), *parts])


def indices_by_label(labels: NDArray[np.integer[Any]]) -> list[Indices]:
    """The indices of each label that occurs, labels ascending."""
    _, counts = np.unique(labels, return_counts=True)
    return np.split(np.argsort(labels, kind="stable"), np.cumsum(counts)[:-1])
