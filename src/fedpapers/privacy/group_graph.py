"""How far apart groups are, when one worker's own links do not count.

Two groups are neighbours when a worker OTHER THAN THE SOURCE belongs to both. Workers of equal membership are taken
together as one class: they see the same, and pass on the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import dijkstra

from fedpapers.groups import Groups

Ints = NDArray[np.int64]

FAR = np.iinfo(np.int32).max
"""The distance of what cannot be reached."""


@dataclass(frozen=True, eq=False)
class GroupGraph:
    """Groups and classes of workers with equal membership.

    Attributes:
        groups: M, the number of groups.
        class_of: Each worker's class, shape [N].
        size: Each class's number of workers, shape [C].
        member_class: The class of each membership, in order of classes, shape [memberships].
        member_group: Its group, shape [memberships].
        first: Where each class's memberships start, and their number at the end, shape [C + 1].
    """

    groups: int
    class_of: Ints
    size: Ints
    member_class: Ints
    member_group: Ints
    first: Ints

    @classmethod
    def of(cls, structure: Groups) -> GroupGraph:
        """The graph of a structure; groups and workers keep their places."""
        place = {worker: n for n, worker in enumerate(structure.workers)}
        groups_of: list[list[int]] = [[] for _ in place]
        for m, workers in enumerate(structure.members.values()):
            for worker in workers:
                groups_of[place[worker]].append(m)
        classes: dict[tuple[int, ...], int] = {}
        class_of = np.array([classes.setdefault(tuple(held), len(classes)) for held in groups_of], dtype=np.int64)
        lengths = np.array([len(held) for held in classes], dtype=np.int64)
        return cls(
            groups=len(structure.members),
            class_of=class_of,
            size=np.bincount(class_of, minlength=len(classes)),
            member_class=np.repeat(np.arange(len(classes)), lengths),
            member_group=np.array([m for held in classes for m in held], dtype=np.int64),
            first=np.concatenate([[0], np.cumsum(lengths)]),
        )

    def groups_of(self, of_class: int) -> Ints:
        """The groups of a class, M_n."""
        return self.member_group[self.first[of_class] : self.first[of_class + 1]]

    @cached_property
    def members(self) -> Ints:
        """The number of workers of each group, shape [M]."""
        return np.bincount(self.member_group, self.size[self.member_class], self.groups).astype(np.int64)

    def others(self, source: int) -> Ints:
        """The classes' sizes without one worker of class `source`, shape [C]."""
        left = self.size.copy()
        left[source] -= 1
        return left

    def links_alone(self, source: int) -> bool:
        """Whether taking one worker of this class away can change a distance."""
        return bool(self.size[source] == 1 and len(self.groups_of(source)) > 1)

    def hops(self, origins: Ints, without: int | None) -> Ints:
        """Hop distances from each of `origins` to every group, shape [origins, M]; FAR where there is no path.

        Args:
            origins: Groups.
            without: A class whose only worker's links do not count.
        """
        used = np.ones(len(self.member_class), dtype=bool) if without is None else self.member_class != without
        rows, columns = self.member_group[used], self.groups + self.member_class[used]
        nodes = self.groups + len(self.size)
        links = csr_matrix((np.ones(len(rows)), (rows, columns)), shape=(nodes, nodes))
        steps = dijkstra(links, directed=False, indices=origins, unweighted=True)[:, : self.groups]
        return np.where(np.isinf(steps), FAR, steps / 2).astype(np.int64)

    def hops_within(self, origins: Ints, without: int | None, limit: int) -> Ints:
        """`hops` up to `limit`, FAR beyond, from many origins at once: one bit each, spread along the memberships."""
        reached = np.zeros((self.groups, len(origins)), dtype=bool)
        reached[origins, np.arange(len(origins))] = True
        seen = np.packbits(reached, axis=1)
        distance = np.full((len(origins), self.groups), FAR, dtype=np.int64)
        distance[np.arange(len(origins)), origins] = 0
        for hop in range(1, limit + 1):
            fresh = self._neighbours(seen, without) & ~seen
            if not fresh.any():
                break
            seen |= fresh
            group, origin = np.nonzero(np.unpackbits(fresh, axis=1, count=len(origins)))
            distance[origin, group] = hop
        return distance

    def nearest(self, distance: Ints) -> Ints:
        """From distances to groups, [..., M], those to each class: its nearest group's, [..., C]."""
        return np.minimum.reduceat(distance[..., self.member_group], self.first[:-1], axis=-1)

    def _neighbours(self, seen: NDArray[np.uint8], without: int | None) -> NDArray[np.uint8]:
        """The bits of each group's own and neighbouring groups."""
        by_class = np.bitwise_or.reduceat(seen[self.member_group], self.first[:-1], axis=0)
        if without is not None:
            by_class[without] = 0
        order, start = self._by_group
        return np.bitwise_or.reduceat(by_class[self.member_class[order]], start, axis=0)

    @cached_property
    def _by_group(self) -> tuple[Ints, Ints]:
        """The memberships in order of groups, and where each group's start."""
        order = np.argsort(self.member_group, kind="stable")
        return order, np.searchsorted(self.member_group[order], np.arange(self.groups))
