"""The cut and the percolation bound with layers of equal distance from the source, for graphs of any size.

Layer k holds the groups k hops from the source's. The cuts are the sets of all layers below k, k ≥ 1; percolation joins
whole layers. Both are valid but coarser than `every_cut`. Statements: docs/leakage-proofs.md, Theorems 2 and 3.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from fedpapers.privacy.divergence import ORDERS, chance_of, composed
from fedpapers.privacy.group_graph import GroupGraph, Ints
from fedpapers.privacy.group_mechanisms import EpochMechanisms
from fedpapers.privacy.quadrature import Array

_WIDEST_LAYER = 400  # groups; those of wider layers are taken to be as near the observer as the layer allows
_AT_ONCE = 64  # groups from which distances are measured together

ToClasses = Callable[[Ints], Ints]
"""Groups -> their hop distances to every class, shape [groups, C], FAR where too far to matter."""


@dataclass(frozen=True, eq=False)
class Layers:
    """What one worker's data meets on its way, layer by layer.

    Attributes:
        graph: The structure.
        source: The worker's class.
        distance: Hops from each of the source's groups to every group without the source's own links, shape
            [source's groups, M]; FAR where there is no path.
        to_classes: Distances from other groups, likewise without these links.
        mechanisms: What the groups release.
    """

    graph: GroupGraph
    source: int
    distance: Ints
    to_classes: ToClasses
    mechanisms: EpochMechanisms

    @cached_property
    def layer(self) -> Ints:
        """Each group's layer, shape [M]; FAR if nothing reaches it."""
        return np.asarray(self.distance.min(axis=0))

    @cached_property
    def class_layer(self) -> Ints:
        """The layer of each class's nearest group, shape [C]."""
        return self.graph.nearest(self.layer)

    @cached_property
    def deepest(self) -> int:
        """The last layer from which something can reach an observer in time."""
        return int(self.layer[self.layer < self.mechanisms.intervals].max(initial=0))

    @cached_property
    def relays(self) -> Ints:
        """The workers of each group who also belong to a group one layer nearer the source, shape [M]."""
        graph = self.graph
        crossing = self.class_layer[graph.member_class] == self.layer[graph.member_group] - 1
        sizes = graph.others(self.source)[graph.member_class] * crossing
        return np.bincount(graph.member_group, sizes, graph.groups).astype(np.int64)

    @cached_property
    def each(self) -> list[_Layer]:
        """Layers 1, 2, … from which something can reach an observer in time."""
        return [_Layer.of(self, np.flatnonzero(self.layer == k)) for k in range(1, self.deepest + 1)]

    def cut(self, delay: Array) -> Array:
        """Theorem 2, the smallest over the layer cuts and `delay`, shape [C, orders]."""
        best = delay.copy()
        for k, layer in enumerate(self.each, start=1):
            if self._may_beat_delay(layer):
                behind = self._behind(k)
                counts = self._crossings(k, layer)[:, behind]
                best[behind] = np.minimum(best[behind], composed(counts.T, layer.relayed))
        return best

    def percolation(self, cut: Array) -> Array:
        """Theorem 3, the smallest over the layer cuts and `cut`, shape [C, orders]."""
        best = cut.copy()
        behind = self._behind(0)
        if not len(behind):
            return best
        in_time = self.graph.nearest(self.distance)[:, behind] < self.mechanisms.intervals
        patterns, pattern = np.unique(in_time, axis=1, return_inverse=True)
        own = np.array([self.mechanisms.own(int(m)) for m in self.graph.groups_of(self.source)])
        moments = self._merged(np.zeros(patterns.shape[1], dtype=np.int64), composed(patterns.T.astype(np.int64), own))
        best[behind] = np.minimum(best[behind], moments[pattern, self.class_layer[behind]])

        bases = [k for k, layer in enumerate(self.each, start=1) if self._may_beat_delay(layer)]
        if bases:
            payments = np.array([composed(layer.number, layer.relayed) for layer in (self.each[k - 1] for k in bases)])
            moments = self._merged(np.array(bases), payments)
            for k, of_cut in zip(bases, moments, strict=True):
                behind = self._behind(k)
                best[behind] = np.minimum(best[behind], of_cut[self.class_layer[behind]])
        return best

    def _behind(self, cut: int) -> Ints:
        """The classes that the cut of all layers below `cut` may protect: none of their groups is in it.

        Where in-group models are un-noised the cut may not touch these groups either.
        """
        nearest = max(cut, 1) if self.mechanisms.noised_inside else cut + 1
        return np.flatnonzero((self.class_layer >= nearest) & (self.class_layer < self.mechanisms.intervals))

    def _may_beat_delay(self, layer: _Layer) -> bool:
        """Whether a crossing can cost less than an interval of the source's own releases at some order."""
        own = sum(self.mechanisms.own(int(m)) for m in self.graph.groups_of(self.source))
        return bool((layer.relayed.min(axis=0) < self.mechanisms.length(0) * own).any())

    def _crossings(self, cut: int, layer: _Layer) -> Ints:
        """How many tainted releases of each kind reach each class, shape [kinds, C]."""
        in_time = self.mechanisms.intervals - cut
        if len(layer.groups) > _WIDEST_LAYER:
            nearest = np.minimum(self.class_layer - cut, in_time)
            return np.outer(layer.number, np.maximum(in_time - nearest, 0))
        counts = np.zeros((len(layer.number), len(self.graph.size)), dtype=np.int64)
        for start in range(0, len(layer.groups), _AT_ONCE):
            part = slice(start, start + _AT_ONCE)
            distance = np.minimum(self.to_classes(layer.groups[part]), in_time)
            np.add.at(counts, layer.kind[part], np.maximum(in_time - distance, 0))
        return counts

    def _merged(self, bases: Ints, payments: Array) -> Array:
        """Percolation with whole layers joining, as divergences, shape [chains, layers from 0, orders].

        Args:
            bases: Each chain's cut: 0 pays the source's own releases, k ≥ 1 the crossings into layer k.
            payments: For each chain per release or crossing, shape [chains, orders].
        """
        above = np.arange(self.deepest + 1) > bases[:, None]
        stay, go = _log_coins(self, above, observed=False)
        seen_stay, seen_go = (stay, go) if self.mechanisms.noised_inside else _log_coins(self, above, observed=True)
        pay = payments * (ORDERS - 1)
        chain = np.arange(len(bases))
        value = np.zeros((*above.shape, len(ORDERS)))
        value[chain, bases] += pay * (bases == 0)[:, None] * self.mechanisms.length(0)
        seen = value.copy()  # the same where the observer is in the layer and sees un-noised models
        for interval in range(1, self.mechanisms.intervals):
            seen[:, 1:] = _tossed(seen_stay, seen[:, 1:], seen_go, value[:, :-1])
            value[:, 1:] = _tossed(stay, value[:, 1:], go, value[:, :-1])
            releases = np.where(bases == 0, self.mechanisms.length(interval), interval >= bases)
            value[chain, bases] += np.where(releases[:, None] > 0, releases[:, None] * pay, 0)
        moments = value if self.mechanisms.noised_inside else seen
        return np.asarray(moments / (ORDERS - 1))


@dataclass(frozen=True, eq=False)
class _Layer:
    """The groups of one layer; those that release through the same mechanism are of one kind.

    Attributes:
        groups: Shape [groups].
        kind: Each group's kind, shape [groups].
        example: A group of each kind, shape [kinds].
        number: The groups of each kind, shape [kinds].
        relayed: The divergence of a release that tainted relays may move, shape [kinds, orders].
    """

    groups: Ints
    kind: Ints
    example: Ints
    number: Ints
    relayed: Array

    @classmethod
    def of(cls, layers: Layers, groups: Ints) -> _Layer:
        """The layer with these groups."""
        table = np.stack([layers.relays[groups], layers.mechanisms.kind[groups]], axis=1)
        _, first, kind, number = np.unique(table, axis=0, return_index=True, return_inverse=True, return_counts=True)
        example = groups[first]
        relayed = np.array([layers.mechanisms.relayed(int(m), int(layers.relays[m])) for m in example])
        return cls(groups, kind, example, number, relayed)


def _tossed(log_stay: Array, here: Array, log_go: Array, below: Array) -> Array:
    """The log moment of a layer that passes on to the one below or not."""
    return np.asarray(np.logaddexp(chance_of(log_stay, here), chance_of(log_go, below)))


def _log_coins(layers: Layers, above: NDArray[np.bool_], observed: bool) -> tuple[Array, Array]:
    """The log probabilities that a layer does not, and does, pass on anything: [chains, layers from 1, orders].

    Layers at or below a chain's base stay where they are.
    """
    log_stay = np.zeros((layers.deepest, len(ORDERS)))
    with np.errstate(divide="ignore"):
        for k, layer in enumerate(layers.each):
            for group, number in zip(layer.example, layer.number, strict=True):
                share = layers.mechanisms.share_passed(int(group), int(layers.relays[group]), observed)
                log_stay[k] += number * np.log1p(-share)
        log_go = np.log(-np.expm1(log_stay))
    moves = above[:, 1:, None]
    return np.where(moves, log_stay, 0.0), np.where(moves, log_go, -np.inf)
