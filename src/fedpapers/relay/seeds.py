"""The seed samples of the devices, and how a relay merges its own with those that it received (Algorithm 1).

A seed sample is a number: which device it is from, its label, and which of the device's seeds of that label it is. What
a route carries is an array "held" of such numbers, shape [A, 10, w]: A routes, labels, and w places for each label; -1
marks an empty place, and the places of a label are in no order.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fedpapers.relay.layouts import LABELS, FloatArray, IntArray, Layouts

TARGET_SAMPLES = 4
OTHER_SAMPLES = 200
"""A device has 4 samples of its target label and 200 of each other one (the paper)."""


@dataclass(frozen=True)
class Seeds:
    """The seeds that devices choose once, at random from their local data, and send.

    Attributes:
        cap: b ≥ 1: no more samples of one label travel on a route.
    """

    cap: int

    @property
    def per_label(self) -> int:
        """The numbers reserved for a device's seeds of one label: min(b, 200), of which a target label uses 4."""
        return min(self.cap, OTHER_SAMPLES)

    def places(self, max_hops: int) -> int:
        """w: the most samples of one label that a route of `max_hops` devices can hold."""
        return min(self.cap, self.per_label * max_hops)

    def nothing(self, routes: int, max_hops: int) -> IntArray:
        """What routes hold before their first device, shape [routes, 10, w]."""
        return np.full((routes, LABELS, self.places(max_hops)), -1, dtype=np.int64)

    def number(self, devices: IntArray, labels: IntArray) -> IntArray:
        """The numbers of the devices' seeds of the given labels, shape [A, per_label]."""
        first = (devices * LABELS + labels) * self.per_label
        return np.asarray(first[:, None] + np.arange(self.per_label))

    def origin(self, seeds: IntArray) -> tuple[IntArray, IntArray, IntArray]:
        """Device, label and place among the device's seeds of that label, of numbers of any shape."""
        rest, place = np.divmod(seeds, self.per_label)
        device, label = np.divmod(rest, LABELS)
        return device, label, place

    def keys(self, routes: int, labels: int, max_hops: int, draw: np.random.Generator) -> FloatArray:
        """The random numbers that `merge` wants for `labels` labels of a device."""
        return draw.random((routes, labels, self.places(max_hops) + self.per_label))

    def merge(
        self, held: IntArray, devices: IntArray, targets: IntArray, dummies: IntArray, keys: FloatArray
    ) -> IntArray:
        """What a device sends: the received samples and its own, at most b of a label (Algorithm 1).

        A device whose target label is not among the received ones adds its dummy labels: each is pooled with the
        received samples of that label, and min(b, pool) uniformly drawn ones are kept; a label that has b samples is
        left as it is. In any case it pools and draws so for its target label. The paper: the rule, and that samples
        of the target label are replaced at random; ours: how many, by the uniform draw from the pool.

        Args:
            held: What was received, shape [A, 10, w].
            devices: The device of each route, shape [A].
            targets: Its target label, shape [A].
            dummies: Its dummy labels, shape [A, l], -1 for none.
            keys: Uniform random numbers of `keys`, for 1 + l labels.
        """
        merged = held.copy()
        counts = (held >= 0).sum(axis=-1)
        everyone = np.arange(len(held))
        self._pool(merged, everyone, devices, targets, keys[:, 0], TARGET_SAMPLES)
        adds_dummies = counts[everyone, targets] == 0
        for column in range(dummies.shape[1]):
            labels = dummies[:, column]
            # A label of -1 counts that of 9, which does not matter.
            rows = np.flatnonzero(adds_dummies & (labels >= 0) & (counts[everyone, labels] < self.cap))
            self._pool(merged, rows, devices[rows], labels[rows], keys[rows, 1 + column], OTHER_SAMPLES)
        return merged

    def _pool(
        self, held: IntArray, rows: IntArray, devices: IntArray, labels: IntArray, keys: FloatArray, local: int
    ) -> None:
        """Replace the samples of one label in each of `rows` by min(b, pool) ones from the pool with the device's."""
        own = self.number(devices, labels)
        own[:, local:] = -1
        pool = np.concatenate([held[rows, labels], own], axis=1)
        order = np.argsort(np.where(pool >= 0, keys, np.inf), axis=1)[:, : held.shape[-1]]
        held[rows, labels] = np.take_along_axis(pool, order, axis=1)


def draw_seed_bits(layouts: Layouts, seeds: Seeds, bits: list[IntArray], draw: np.random.Generator) -> IntArray:
    """Sizes for all seeds of all devices, drawn from the sizes of a data set's samples.

    Args:
        layouts: L layouts of N devices.
        seeds: How many numbers a device has for each label.
        bits: For each label the sizes of its samples.
        draw: Of the samples, with replacement.

    Returns:
        Shape [L, N, 10, per_label].
    """
    shape = (*layouts.targets.shape, seeds.per_label)
    return np.stack([sizes[draw.integers(len(sizes), size=shape)] for sizes in bits], axis=2)


def labels_held(held: IntArray) -> NDArray[np.bool_]:
    """Which labels have at least one sample, shape [A, 10]."""
    return np.asarray((held >= 0).any(axis=-1))
