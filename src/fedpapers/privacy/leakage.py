"""Who leaks how much to whom in overlapping groups: DP-OGL, DP-OGL+ and its repair (arXiv 2503.04054).

Unit: one worker's whole data set; neighbouring: with or without it. Adversary: one honest-but-curious worker who sees
all models of its groups, the ones after the last epoch included. Statements and proofs: docs/leakage-proofs.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fedpapers.errors import InputError
from fedpapers.groups import Groups
from fedpapers.privacy import every_cut
from fedpapers.privacy.divergence import composed, epsilon, sgm
from fedpapers.privacy.every_cut import Reach
from fedpapers.privacy.group_graph import FAR, GroupGraph, Ints
from fedpapers.privacy.group_mechanisms import EpochMechanisms, Training, mechanisms
from fedpapers.privacy.layered_cuts import Layers
from fedpapers.privacy.quadrature import Array

SMALLEST_NOISE, LARGEST_NOISE, SMALLEST_RATE = 1e-4, 1e9, 1e-9
"""Between these the quadratures are trusted."""

_SMALL_STRUCTURE = 60  # classes of workers up to which every cut of up to `every_cut.MOST_GROUPS` groups is tried
_MOST_GROUPS_OF_LARGE = 8  # the same in larger structures, where there are many pairs
_MOST_DISTANCES = 20_000_000  # (group, class) pairs whose distances are kept


@dataclass(frozen=True, eq=False)
class Leakage:
    """The bounds between all pairs of workers of one structure and run.

    Attributes:
        structure: Who is in which group.
        noise: Each group's noise multiplier σ_m ≥ 0.
        rate: Each group's sampling rate π_m in (0, 1].
        training: The run.
        delta: The δ at which ε is stated, in (0, 1).
    """

    structure: Groups
    noise: Sequence[float]
    rate: Sequence[float]
    training: Training
    delta: float

    def __post_init__(self) -> None:
        if not 0 < self.delta < 1:
            raise InputError(f"delta: {self.delta:g}; expected a probability between 0 and 1, both excluded")
        for name, noise, rate in zip(self.structure.names, self.noise, self.rate, strict=True):
            if noise and not SMALLEST_NOISE <= noise <= LARGEST_NOISE:
                least, most = f"{SMALLEST_NOISE:g}", f"{LARGEST_NOISE:g}"
                raise InputError(
                    f"group '{name}': noise multiplier {noise:g}; expected σ = 0 (no noise), or {least} ≤ σ ≤ {most}"
                )
            if not SMALLEST_RATE <= rate <= 1:
                raise InputError(
                    f"group '{name}': sampling rate {rate:g}; expected 0 < q ≤ 1, at least {SMALLEST_RATE:g}"
                )

    @cached_property
    def graph(self) -> GroupGraph:
        """The structure's groups and classes of workers."""
        return GroupGraph.of(self.structure)

    @cached_property
    def mechanisms(self) -> EpochMechanisms:
        """What the groups release."""
        return mechanisms(self.training, self.graph.members, self.noise, self.rate)

    @cached_property
    def all_distances(self) -> Ints | None:
        """Hops from every group to every class with all links, shape [M, C], if there is room to keep them."""
        if self.graph.groups * len(self.graph.size) > _MOST_DISTANCES:
            return None
        every = np.arange(self.graph.groups)
        return self.graph.nearest(self.graph.hops_within(every, None, self.mechanisms.intervals - 1))


class Source:
    """What one worker leaks to one other worker of each class; arrays are over the observers' classes, [C].

    Attributes:
        distance: The fewest hops from a group of the source to one of the observer, without the source's own links;
            FAR if there is no path.
    """

    def __init__(self, whole: Leakage, of_class: int) -> None:
        self._whole, self._graph, self._mechanisms = whole, whole.graph, whole.mechanisms
        self._class = of_class
        self._groups = self._graph.groups_of(of_class)
        self._alone = of_class if self._graph.links_alone(of_class) else None
        self._hops = self._graph.hops(self._groups, self._alone)
        self._own_distance = self._graph.nearest(self._hops)
        self._own = np.array([self._mechanisms.own(int(m)) for m in self._groups])
        self.distance: Ints = self._own_distance.min(axis=0)

    def bounds(self) -> dict[str, Array]:
        """ε at δ by the name of the bound, each of shape [C]."""
        return {name: epsilon(rdp, self._whole.delta) for name, rdp in self.divergences().items()}

    def divergences(self) -> dict[str, Array]:
        """Rényi divergences by the name of the bound, shape [C, orders] each.

        `naive`, `delay`, `cut` and `percolation` are proven, each at most the one before; `paper`, for DP-OGL+ alone,
        is the claim.
        """
        delay = composed(self._mechanisms.releases(self._own_distance).T, self._own)
        cut, percolation = self._cut_and_percolation(delay)
        found = {"naive": self._naive(), "delay": delay, "cut": cut, "percolation": percolation}
        if self._whole.training.algorithm == "dp-ogl-plus":
            found["paper"] = self._paper(delay)
        sees_unnoised = (self.distance == 0) & (not self._mechanisms.noised_inside)
        return {name: np.where(sees_unnoised[:, None], np.inf, rdp) for name, rdp in found.items()}

    def _naive(self) -> Array:
        """Theorem 0: every release of the source's groups reaches everybody; the same for all, shape [1, orders]."""
        return composed(self._mechanisms.releases(np.zeros((1, len(self._groups)), dtype=np.int64)), self._own)

    def _paper(self, delay: Array) -> Array:
        """The claim for DP-OGL+ that an interval's sum has the sensitivity √S·c: not a bound for S ≥ 2."""
        if self._mechanisms.noised_inside:
            return delay
        claimed = np.array([sgm(self._whole.rate[m], self._whole.noise[m]) for m in self._groups])
        return composed(self._mechanisms.releases(self._own_distance).T, claimed)

    def _cut_and_percolation(self, delay: Array) -> tuple[Array, Array]:
        reached = np.flatnonzero(self._hops.min(axis=0) < FAR)
        small = len(self._graph.size) <= _SMALL_STRUCTURE
        if len(reached) <= (every_cut.MOST_GROUPS if small else _MOST_GROUPS_OF_LARGE):
            return self._by_every_cut(delay, reached)
        layers = Layers(self._graph, self._class, self._hops, self._to_classes, self._mechanisms)
        cut = layers.cut(delay)
        return cut, layers.percolation(cut)

    def _by_every_cut(self, delay: Array, reached: Ints) -> tuple[Array, Array]:
        cut, percolation = delay.copy(), delay.copy()
        nearest_allowed = 0 if self._mechanisms.noised_inside else 1
        in_time = (self.distance >= nearest_allowed) & (self.distance < self._mechanisms.intervals)
        concerned = np.flatnonzero(in_time)
        if len(concerned):
            reach = Reach.of(self._graph, self._class, reached, self._mechanisms)
            distance = self._to_classes(reached)
            observers = [(reach.mask(self._graph.groups_of(int(c))), distance[:, c]) for c in concerned]
            cut[concerned], percolation[concerned] = every_cut.bounds(reach, observers)
        return cut, percolation

    def _to_classes(self, groups: Ints) -> Ints:
        """Hops from groups to classes, shape [groups, C]; FAR where they are too many to matter."""
        if self._alone is None and self._whole.all_distances is not None:
            return np.asarray(self._whole.all_distances[groups])
        hops = self._graph.hops_within(groups, self._alone, self._mechanisms.intervals - 1)
        return self._graph.nearest(hops)
