"""The cut and the percolation bound by enumeration, where at most `MOST_GROUPS` groups can carry a source's data.

Sets of groups are bit masks over the groups that the source's data can reach. Statements: docs/leakage-proofs.md,
Theorems 2 and 3.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from fedpapers.privacy.divergence import ORDERS, chance_of, composed
from fedpapers.privacy.group_graph import FAR, GroupGraph, Ints
from fedpapers.privacy.group_mechanisms import EpochMechanisms
from fedpapers.privacy.quadrature import Array

MOST_GROUPS = 13
"""Up to here every set of groups is tried as a cut; larger graphs use layers."""

_PEELED_CUTS = 256  # percolation is computed for all cuts up to this many, else for the best ones of the cut bound

Masks = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Reach:
    """The groups that a source's data can reach, and who links them.

    Attributes:
        groups: Their places in the structure; bit i stands for groups[i].
        own: Mask of the source's groups, M_n.
        links: (mask of a class's groups, number of its workers other than the source).
        mechanisms: What the groups release.
    """

    groups: Ints
    own: int
    links: tuple[tuple[int, int], ...]
    mechanisms: EpochMechanisms

    @classmethod
    def of(cls, graph: GroupGraph, source: int, groups: Ints, mechanisms: EpochMechanisms) -> Reach:
        """The reach of one worker of class `source`, given the groups it can reach."""
        reach = cls(groups, 0, (), mechanisms)
        touching = np.unique(graph.member_class[np.isin(graph.member_group, groups)])
        others = graph.others(source)
        links = [(reach.mask(graph.groups_of(int(c))), int(others[c])) for c in touching if others[c] > 0]
        return cls(groups, reach.mask(graph.groups_of(source)), tuple(links), mechanisms)

    def mask(self, groups: Ints) -> int:
        """The mask of groups, all of which are reached."""
        return sum(1 << int(i) for i in np.searchsorted(self.groups, groups))

    @cached_property
    def neighbours(self) -> list[int]:
        """Each group's neighbours and itself, as masks."""
        return [_union(mask for mask, _ in self.links if mask >> i & 1) | 1 << i for i in range(len(self.groups))]

    def crossing(self, place: int, relays: int) -> Array:
        """One release of a group at an inter-group epoch at which `relays` members start from tainted models."""
        group = int(self.groups[place])
        if self.own >> place & 1:
            return self.mechanisms.own_with_relays(group, relays)
        return self.mechanisms.relayed(group, relays)

    @cached_property
    def cuts(self) -> Masks:
        """The sets of groups each of whose connected parts holds a group of the source, the empty set included.

        A part that holds none only adds relays to pay for: the set without it has smaller or equal bounds.
        """
        every = np.arange(1 << len(self.groups))
        rooted = every & self.own
        for _ in self.groups:
            for i, near in enumerate(self.neighbours):
                rooted |= np.where(rooted >> i & 1, near, 0) & every
        return np.asarray(every[rooted == every])

    @cached_property
    def relays(self) -> Ints:
        """r_f(X): the workers of group f (column) with a group in cut X (row)."""
        table = np.zeros((len(self.cuts), len(self.groups)), dtype=np.int64)
        for mask, size in self.links:
            hit = np.where(self.cuts & mask, size, 0)
            for i in _bits(mask):
                table[:, i] += hit
        return table

    @cached_property
    def outside(self) -> NDArray[np.bool_]:
        """Whether group f (column) is outside cut X (row)."""
        return np.asarray((self.cuts[:, None] >> np.arange(len(self.groups)) & 1) == 0)

    @cached_property
    def first_tainted(self) -> Ints:
        """i0(X): the first inter-group epoch, counted from 0, at which a cut's models may depend on the source.

        1, or 1 + the hops inside X from the source's groups to a group that touches the outside, if X holds all of
        the source's groups; FAR if it then touches no other group.
        """
        holds_own = (self.cuts & self.own) == self.own
        first = np.where(holds_own, FAR, 1)
        seen = np.where(holds_own, self.own, 0)
        for hop in range(len(self.groups)):
            grown = seen.copy()
            for i, near in enumerate(self.neighbours):
                grown |= np.where(seen >> i & 1, near, 0)
            touches = (first == FAR) & ((grown & ~self.cuts) != 0)
            first[touches] = 1 + hop
            seen = np.where(holds_own, grown & self.cuts, 0)
        return first


def bounds(reach: Reach, observers: Sequence[tuple[int, Ints]]) -> tuple[Array, Array]:
    """The cut and the percolation bounds (Theorems 2 and 3), each of shape [observers, orders].

    Args:
        reach: The source's reach.
        observers: For each the mask of its groups, not empty, none the source's if in-group models are un-noised; and
            the hops from each reached group to the nearest of them, FAR if none.
    """
    admissible = [_admissible(reach, mask) for mask, _ in observers]
    by_cut = [_by_cut(reach, rows, distance) for rows, (_, distance) in zip(admissible, observers, strict=True)]
    cut = np.array([values.min(axis=0) for values in by_cut])
    percolation = cut.copy()
    for row in _worth_peeling(admissible, by_cut):
        concerned = np.array([row in rows for rows in admissible])
        masks = [mask for (mask, _), meant in zip(observers, concerned, strict=True) if meant]
        percolation[concerned] = np.minimum(percolation[concerned], _Chain(reach, row, masks).bounds())
    return cut, percolation


def _worth_peeling(admissible: list[Ints], by_cut: list[Array]) -> list[int]:
    """All cuts, or those that are some observer's best at some order if there are too many."""
    best = [
        rows if len(rows) <= _PEELED_CUTS else rows[np.unique(values.argmin(axis=0))]
        for rows, values in zip(admissible, by_cut, strict=True)
    ]
    return sorted({int(row) for rows in best for row in rows})


def _admissible(reach: Reach, observer: int) -> Ints:
    """The places of the cuts without a group of the observer.

    Where in-group models are un-noised, relays from a cut may not be in a group of the observer, who would see them
    plainly, nor of the source, for which no bound on their joint effect is known.
    """
    allowed = (reach.cuts & observer) == 0
    if not reach.mechanisms.noised_inside:
        guarded = np.array([(reach.own | observer) >> i & 1 for i in range(len(reach.groups))], dtype=bool)
        allowed &= ~((reach.relays > 0) & reach.outside & guarded).any(axis=1)
    return np.flatnonzero(allowed)


def _by_cut(reach: Reach, rows: Ints, distance: Ints) -> Array:
    """Theorem 2 for the cuts at `rows`, shape [rows, orders]."""
    total = np.zeros((len(rows), len(ORDERS)))
    for i, group in enumerate(reach.groups):
        if distance[i] == FAR:
            continue
        relays = reach.relays[rows, i]
        crossings = np.maximum(reach.mechanisms.intervals - distance[i] - reach.first_tainted[rows], 0)
        crossings = np.where(reach.outside[rows, i] & (relays > 0), crossings, 0)
        own = reach.own >> i & 1
        if own:
            plain = np.where(reach.outside[rows, i], reach.mechanisms.releases(distance[i]) - crossings, 0)
            total += composed(plain[:, None], reach.mechanisms.own(int(group))[None])
        for r in np.unique(relays[crossings > 0]):
            total += composed(np.where(relays == r, crossings, 0)[:, None], reach.crossing(i, int(r))[None])
    return total


class _Chain:
    """Where peeling the observers' views backwards in time may lead, for one cut.

    A state is a set R of groups whose models are taken as revealed. From one inter-group epoch to the one before, the
    neighbours of a group of R join R: surely if the group is the source's or has relays from the cut, else by a coin.
    Where the observer sees un-noised models, its own groups' coins are others, and the state names them.
    """

    def __init__(self, reach: Reach, row: int, observers: Sequence[int]) -> None:
        self._reach, self._cut, self._relays = reach, int(reach.cuts[row]), reach.relays[row]
        self._tainted_from = int(reach.first_tainted[row])
        self._closures: dict[int, int] = {}
        plain = reach.mechanisms.noised_inside
        self._starts = [(self._closed(mask), 0 if plain else mask) for mask in observers]
        self._states = list(dict.fromkeys(self._starts))
        self._walk()

    def bounds(self) -> Array:
        """Theorem 3: log E exp((α - 1)·paid)/(α - 1) for each observer, shape [observers, orders]."""
        mechanisms = self._reach.mechanisms
        own = np.array([self._own(revealed) for revealed, _ in self._states]) * (ORDERS - 1)
        crossing = np.array([self._crossing(revealed) for revealed, _ in self._states]) * (ORDERS - 1)
        first = np.searchsorted(self._origin, np.arange(len(self._states)))
        value = mechanisms.length(0) * own
        for interval in range(1, mechanisms.intervals):
            steps = chance_of(self._log_chance, value[self._target])
            value = _log_sum(steps, first, self._origin) + mechanisms.length(interval) * own
            if interval >= self._tainted_from:
                value += crossing
        place = {state: i for i, state in enumerate(self._states)}
        return np.asarray(value[[place[state] for state in self._starts]] / (ORDERS - 1))

    def _walk(self) -> None:
        """Find all states and the steps between them, in order of the state that they leave."""
        place = {state: i for i, state in enumerate(self._states)}
        steps: list[tuple[int, int, float | Array]] = []
        for origin, (revealed, observer) in enumerate(self._states):  # grows while it is read
            for target, chance in self._steps(revealed, observer).items():
                if (target, observer) not in place:
                    place[target, observer] = len(self._states)
                    self._states.append((target, observer))
                steps.append((origin, place[target, observer], chance))
        self._origin = np.array([origin for origin, _, _ in steps])
        self._target = np.array([target for _, target, _ in steps])
        with np.errstate(divide="ignore"):
            self._log_chance = np.log([np.broadcast_to(chance, ORDERS.shape) for _, _, chance in steps])

    def _steps(self, revealed: int, observer: int) -> dict[int, float | Array]:
        """The next sets with their probabilities."""
        sure = revealed
        chances: dict[int, float | Array] = {}
        coins = []
        for i in _bits(revealed):
            near = self._reach.neighbours[i]
            if self._reach.own >> i & 1 or near & self._cut:
                sure |= near & ~self._cut
            elif near & ~revealed:
                coins.append((near, self._share_passed(i, revealed, observer)))
        chances[sure] = 1.0
        for near, share in coins:
            chances = _summed(
                (joined | grown, chance * part)
                for joined, chance in chances.items()
                for grown, part in ((0, 1 - share), (near, share))
            )
        return _summed((self._closed(joined), chance) for joined, chance in chances.items())

    def _share_passed(self, place: int, revealed: int, observer: int) -> float | Array:
        """The coin of a revealed group: how much of what is not revealed passes its next release."""
        relays = sum(size for mask, size in self._reach.links if mask >> place & 1 and mask & ~revealed)
        observed = bool(observer >> place & 1)
        return self._reach.mechanisms.share_passed(int(self._reach.groups[place]), relays, observed)

    def _closed(self, revealed: int) -> int:
        """`revealed` and what it separates from the source, which is free: the source acts on it through R only."""
        if revealed not in self._closures:
            tainted, grown = self._reach.own & ~revealed, 0
            while grown != tainted:
                grown = tainted
                tainted = _union(self._reach.neighbours[i] for i in _bits(grown)) & ~revealed
            everything = (1 << len(self._reach.groups)) - 1
            self._closures[revealed] = revealed | everything & ~tainted & ~self._cut
        return self._closures[revealed]

    def _own(self, revealed: int) -> Array:
        """The divergence per release of the source's groups in R."""
        groups = self._reach.groups[_bits(revealed & self._reach.own)]
        own = [np.zeros_like(ORDERS), *(self._reach.mechanisms.own(int(group)) for group in groups)]
        return np.asarray(np.sum(own, axis=0))

    def _crossing(self, revealed: int) -> Array:
        """What releases at an inter-group epoch at which the cut is tainted cost beyond that."""
        total = np.zeros_like(ORDERS)
        for i in _bits(revealed):
            if self._relays[i] > 0:
                total += self._reach.crossing(i, int(self._relays[i]))
                if self._reach.own >> i & 1:
                    own = self._reach.mechanisms.own(int(self._reach.groups[i]))
                    total -= np.where(np.isinf(own), 0.0, own)
        return total


def _log_sum(terms: Array, first: Ints, origin: Ints) -> Array:
    """Log Σ exp over the terms of each origin, shape [origins, orders]; `first` is where each one's terms begin."""
    top = np.maximum.reduceat(terms, first)
    with np.errstate(invalid="ignore"):
        shares = np.exp(terms - top[origin])
    shares[np.isnan(shares)] = 1.0
    return np.asarray(top + np.log(np.add.reduceat(shares, first)))


def _summed(chances: Iterable[tuple[int, float | Array]]) -> dict[int, float | Array]:
    """The probability of each set."""
    total: dict[int, float | Array] = {}
    for mask, chance in chances:
        total[mask] = total.get(mask, 0.0) + chance
    return total


def _bits(mask: int) -> list[int]:
    """The places of a mask's ones."""
    return [i for i in range(mask.bit_length()) if mask >> i & 1]


def _union(masks: Iterable[int]) -> int:
    total = 0
    for mask in masks:
        total |= mask
    return total
