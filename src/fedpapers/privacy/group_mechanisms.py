"""What each algorithm releases in a group, and how many of these releases an observer can learn from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from fedpapers.errors import InputError, nearest
from fedpapers.privacy import divergence
from fedpapers.privacy.group_graph import Ints
from fedpapers.privacy.quadrature import Array

ALGORITHMS = ("dp-ogl", "dp-ogl-plus", "dp-ogl-local")
COEFFICIENTS = ("tv", "alpha")
MOST_EPOCHS = 100_000


@dataclass(frozen=True)
class Training:
    """How long and how a structure is trained, as far as leakage depends on it.

    Attributes:
        epochs: T ≥ 0; the observer also sees the models after the last one.
        interval: S ≥ 1; models cross groups at epochs 1, S + 1, 2S + 1, …
        algorithm: `dp-ogl`: clip and noise each epoch. `dp-ogl-plus`: once an interval, in-group models un-noised in
            between. `dp-ogl-local`: once an interval, after local training only.
        coefficient: Of the percolation bound: `tv` (proven) or `alpha` (numeric above order 2).

    Raises:
        InputError: A value is out of range.
    """

    epochs: int
    interval: int
    algorithm: str = "dp-ogl"
    coefficient: str = "tv"

    def __post_init__(self) -> None:
        if self.epochs < 0:
            raise InputError(f"epochs: {self.epochs}; expected T ≥ 0")
        if self.epochs > MOST_EPOCHS:
            raise InputError(f"epochs: {self.epochs:,}; expected at most T = {MOST_EPOCHS:,}")
        if self.interval < 1:
            raise InputError(f"interval: {self.interval}; expected S ≥ 1 epochs")
        if self.algorithm not in ALGORITHMS:
            raise InputError(f"algorithm: unknown '{self.algorithm}'; {nearest(self.algorithm, ALGORITHMS)}")
        if self.coefficient not in COEFFICIENTS:
            raise InputError(f"coefficient: unknown '{self.coefficient}'; {nearest(self.coefficient, COEFFICIENTS)}")

    @property
    def intervals(self) -> int:
        """K = ⌈T/S⌉, the number of inter-group epochs."""
        return -(-self.epochs // self.interval)

    @property
    def unnoised_inside(self) -> bool:
        """Whether group members see a model before it is noised: DP-OGL+ once an interval has a second epoch."""
        return self.algorithm == "dp-ogl-plus" and min(self.epochs, self.interval) > 1

    def plain(self) -> Training:
        """The DP-OGL run with the same releases, for all but `unnoised_inside` ones."""
        if self.algorithm == "dp-ogl-local":
            return replace(self, epochs=self.intervals, interval=1, algorithm="dp-ogl")
        return replace(self, algorithm="dp-ogl")


class EpochMechanisms:
    """DP-OGL: every epoch each group releases a clipped, noised sum over a fresh cohort."""

    noised_inside = True
    """Whether group members, too, see noised models only."""

    def __init__(self, training: Training, members: Ints, noise: Sequence[float], rate: Sequence[float]) -> None:
        self.training = training
        self.intervals = training.intervals
        self._members, self._noise, self._rate = members, noise, rate
        self.kind = np.unique(np.stack([members, noise, rate]), axis=1, return_inverse=True)[1]
        """Groups with the same members, noise and rate have the same number here."""

    def releases(self, distance: Ints) -> Ints:
        """How many releases of a group `distance` hops away reach the observer, elementwise."""
        intervals = self.intervals - np.minimum(distance, self.intervals)
        return np.where(distance == 0, self.training.epochs, self.training.interval * intervals)

    def length(self, interval: int) -> int:
        """The releases of one interval, counted from 0."""
        return min(self.training.interval, self.training.epochs - interval * self.training.interval)

    def own(self, group: int) -> Array:
        """One release of a group of the source, over the orders."""
        return divergence.sgm(self._rate[group], self._noise[group])

    def own_with_relays(self, group: int, relays: int) -> Array:
        """The same at an inter-group epoch at which `relays` members may start from tainted models."""
        return divergence.own_with_relays(relays, self._rate[group], self._noise[group])

    def relayed(self, group: int, relays: int) -> Array:
        """One release at an inter-group epoch of a group without the source."""
        return divergence.relayed(relays, self._rate[group], self._noise[group])

    def share_passed(self, group: int, relays: int, observed: bool) -> float | Array:
        """The contraction coefficient of such a release; `observed`: the observer is a member."""
        if self.training.coefficient == "alpha":
            return divergence.numeric_contraction(relays, self._rate[group], self._noise[group])
        return divergence.contraction(relays, self._rate[group], self._noise[group])


class IntervalMechanisms(EpochMechanisms):
    """DP-OGL+ with S ≥ 2: one clipped, noised sum an interval, and un-noised models inside the group until then.

    The members react to each other within an interval, so the sum moves by more than one worker's clipping norm.
    """

    noised_inside = False

    def releases(self, distance: Ints) -> Ints:
        """How many intervals of a group `distance` hops away reach the observer; a member sees all."""
        return self.intervals - np.minimum(distance, self.intervals)

    def length(self, interval: int) -> int:
        """One release an interval."""
        return 1

    def own(self, group: int) -> Array:
        """One interval's release of a group of the source."""
        return divergence.plus_own(int(self._members[group]) - 1, self._rate[group], self._noise[group])

    def relayed(self, group: int, relays: int) -> Array:
        """One interval's release of a group without the source, in which `relays` start from tainted models."""
        others = int(self._members[group]) - relays
        return divergence.plus_relayed(relays, others, self._rate[group], self._noise[group])

    def share_passed(self, group: int, relays: int, observed: bool) -> float | Array:
        """The contraction coefficient; an observer inside sees relays un-noised."""
        if observed:
            return divergence.unnoised_contraction(relays, self._rate[group])
        members = int(self._members[group])
        by_distance = divergence.contraction(relays, self._rate[group], self._noise[group], members - relays)
        if self.training.coefficient == "alpha":
            everybody = divergence.numeric_contraction(members, self._rate[group], self._noise[group])
            return np.minimum(everybody, by_distance)
        return by_distance


def mechanisms(training: Training, members: Ints, noise: Sequence[float], rate: Sequence[float]) -> EpochMechanisms:
    """The mechanisms that a run releases through.

    Args:
        training: The run.
        members: Each group's number of workers.
        noise: Each group's noise multiplier.
        rate: Each group's sampling rate.
    """
    if training.unnoised_inside:
        return IntervalMechanisms(training, members, noise, rate)
    return EpochMechanisms(training.plain(), members, noise, rate)
