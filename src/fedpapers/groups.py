"""Groups of workers that train together, and the structures that the papers and our experiments use.

A structure is static. Groups may overlap: a worker trains in each of its groups (arXiv 2503.04054, Section II).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import count, islice

import numpy as np
from numpy.typing import NDArray

from fedpapers.errors import InputError
from fedpapers.randomness import Purpose, generator

_FIGURE_1B = {"A": (1, 2), "B": (2, 3, 4), "C": (4, 5), "D": (5, 6, 7), "E": (3, 6)}


@dataclass(frozen=True)
class Groups:
    """Named groups of named workers.

    Attributes:
        members: Group name -> its workers N_m, in order.

    Raises:
        InputError: There is no group, or a group is empty or lists a worker twice.
    """

    members: Mapping[str, tuple[str, ...]]

    def __post_init__(self) -> None:
        if not self.members:
            raise InputError("groups: there is no group; expected at least one with one worker")
        for name, workers in self.members.items():
            if not workers:
                raise InputError(f"groups.{name}: the group is empty; expected at least one worker")
            twice = _repeated(workers)
            if twice:
                raise InputError(f"groups.{name}: worker '{twice[0]}' is listed twice")
            if "\0" in "".join([name, *workers]):
                raise InputError(f"groups.{name!r}: a name holds a NUL character; expected text that files can hold")

    @cached_property
    def workers(self) -> tuple[str, ...]:
        """All workers, in order of first appearance; a worker's index is its place here."""
        return tuple(dict.fromkeys(worker for group in self.members.values() for worker in group))

    @property
    def names(self) -> tuple[str, ...]:
        """The groups' names; a group's index is its place here."""
        return tuple(self.members)

    @cached_property
    def membership(self) -> NDArray[np.bool_]:
        """Whether group m (row) has worker n (column), shape [M, N]."""
        index = {worker: n for n, worker in enumerate(self.workers)}
        table = np.zeros((len(self.members), len(self.workers)), dtype=bool)
        for m, workers in enumerate(self.members.values()):
            table[m, [index[worker] for worker in workers]] = True
        return table

    def merged(self) -> Groups:
        """One group of all workers."""
        return Groups({"all": self.workers})

    def separated(self) -> Groups:
        """A group for each worker."""
        return Groups({worker: (worker,) for worker in self.workers})

    def disjoint(self) -> Groups:
        """The same groups without overlaps: each worker stays in the first of its groups.

        A group whose workers all belong to earlier groups is left out.
        """
        taken: set[str] = set()
        members: dict[str, tuple[str, ...]] = {}
        for name, workers in self.members.items():
            first = tuple(worker for worker in workers if worker not in taken)
            taken.update(first)
            if first:
                members[name] = first
        return Groups(members)


def single(workers: int) -> Groups:
    """One group of all workers (Figure 1a with 7)."""
    return Groups({"A": _numbered(range(1, workers + 1))})


def overlapping(copies: int = 1) -> Groups:
    """Five overlapping groups of two or three of seven workers (our reading of Figure 1b).

    Args:
        copies: Each worker of the figure stands for this many, so that groups have 2 or 3 times as many.
    """
    return Groups(
        {
            name: _numbered((w - 1) * copies + c + 1 for w in workers for c in range(copies))
            for name, workers in _FIGURE_1B.items()
        }
    )


def disjoint(groups: int, size: int) -> Groups:
    """Groups of `size` workers without overlaps."""
    return string(groups, size, shared=0)


def string(groups: int, size: int, shared: int) -> Groups:
    """Groups in a row; neighbours share `shared` workers, others none."""
    _check_shared(size, shared, sides=min(2, groups - 1))
    step = size - shared
    return Groups({f"G{m + 1}": _numbered(range(m * step + 1, m * step + size + 1)) for m in range(groups)})


def ring(groups: int, size: int, shared: int) -> Groups:
    """A string whose ends share workers too; at least three groups."""
    if groups < 3:
        raise InputError(f"structure ring: groups is {groups}; expected at least 3")
    _check_shared(size, shared, sides=2)
    step = size - shared
    total = groups * step
    return Groups({f"G{m + 1}": _numbered((m * step + i) % total + 1 for i in range(size)) for m in range(groups)})


def star(groups: int, size: int, shared: int) -> Groups:
    """A first group in the middle; each other group shares `shared` of its workers, others none."""
    _check_shared(size, shared, sides=groups - 1)
    members = {"G1": _numbered(range(1, size + 1))}
    fresh = size + 1
    for leaf in range(groups - 1):
        common = range(leaf * shared + 1, (leaf + 1) * shared + 1)
        own = range(fresh, fresh + size - shared)
        fresh += size - shared
        members[f"G{leaf + 2}"] = _numbered([*common, *own])
    return Groups(members)


def grid(rows: int, columns: int, size: int, shared: int) -> Groups:
    """Groups on a rectangle; horizontal and vertical neighbours share `shared` workers."""
    _check_shared(size, shared, sides=min(2, rows - 1) + min(2, columns - 1))
    cells = [(r, c) for r in range(rows) for c in range(columns)]
    members: dict[tuple[int, int], list[int]] = {cell: [] for cell in cells}
    fresh = count(1)
    for r, c in cells:
        for neighbour in ((r, c + 1), (r + 1, c)):
            if neighbour in members:
                common = list(islice(fresh, shared))
                members[r, c].extend(common)
                members[neighbour].extend(common)
    for cell in cells:
        members[cell].extend(islice(fresh, size - len(members[cell])))
    return Groups({f"G{r + 1}.{c + 1}": _numbered(members[r, c]) for r, c in cells})


def random(groups: int, size: int, workers: int, seed: int = 0) -> Groups:
    """Groups of `size` of `workers` workers, drawn at random such that nobody is left out.

    The workers in random order are dealt to the groups in turn; the rest of each group is drawn from the others.
    """
    if groups * size < workers:
        raise InputError(
            f"structure random: {groups} groups of {size} have no place for {workers} workers; "
            f"expected groups · size ≥ workers"
        )
    if size > workers:
        raise InputError(f"structure random: a group of {size} of {workers} workers; expected size ≤ workers")
    draw = generator(seed, Purpose.STRUCTURE)
    order = draw.permutation(workers)
    members = {}
    for m in range(groups):
        dealt = order[m::groups]
        others = draw.permutation(np.setdiff1d(order, dealt))[: size - len(dealt)]
        members[f"G{m + 1}"] = _numbered(int(w) + 1 for w in [*dealt, *others])
    return Groups(members)


def from_mapping(groups: Mapping[str, Sequence[str | int]]) -> Groups:
    """The user's own groups: name -> list of workers; names of both may be any scalars.

    Raises:
        InputError: Two groups have the same name once both are text, as 1 and "1", or as in `Groups`.
    """
    twice = _repeated(str(name) for name in groups)
    if twice:
        raise InputError(f"groups: there are two groups '{twice[0]}'; expected different names")
    return Groups({str(name): tuple(str(worker) for worker in workers) for name, workers in groups.items()})


def _repeated(names: Iterable[str]) -> list[str]:
    """The names that occur more than once, sorted; linear in their number."""
    return sorted(name for name, times in Counter(names).items() if times > 1)


def _numbered(workers: Iterable[int]) -> tuple[str, ...]:
    return tuple(str(worker) for worker in workers)


def _check_shared(size: int, shared: int, sides: int) -> None:
    if not 0 <= shared * sides <= size or (shared == size and size > 0):
        raise InputError(
            f"structure: a group of {size} workers cannot share {shared} with each of up to {sides} neighbours; "
            f"expected shared · {sides} ≤ size, and shared < size"
        )
