"""The routes over which the devices' samples reach the server."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fedpapers.randomness import Purpose, generator
from fedpapers.relay.layouts import FloatArray, IntArray

SHORTEST_M = 1.0
"""Shorter distances count as this many metres, because the path loss has no value at 0 (ours)."""


@dataclass(frozen=True, eq=False)
class Routes:
    """All routes of L layouts: T routes in the order of the layouts, and in each in the order of their start.

    A route has up to m devices; its first device is the farthest one, its last one sends to the server.

    Attributes:
        layout: Index of the layout, shape [T].
        devices: Indices of the devices in the order of the hops, shape [T, m]; -1 after the last.
        distances: Length in metres of the hop that starts at each device, shape [T, m]; NaN after the last.
    """

    layout: IntArray
    devices: IntArray
    distances: FloatArray

    @property
    def lengths(self) -> IntArray:
        """The number of each route's devices, which is that of its hops, shape [T]."""
        return np.asarray((self.devices >= 0).sum(axis=1))

    @property
    def starts(self) -> IntArray:
        """The index of each layout's first route, shape [L]."""
        return np.flatnonzero(np.diff(self.layout, prepend=-1))

    @property
    def per_layout(self) -> IntArray:
        """r: the number of routes of each layout, shape [L]."""
        return np.bincount(self.layout)

    @property
    def sharing(self) -> IntArray:
        """r: the number of routes with which each route shares the band, itself included, shape [T]."""
        return np.asarray(self.per_layout[self.layout])


def find_routes(positions: FloatArray, max_hops: int) -> Routes:
    """Chain devices to routes of at most M hops: from the farthest free device on, each time to the nearest.

    The paper has routes of nearest neighbours with up to M hops. Ours: a route starts at the free device that is
    farthest from the server; the next device is the nearest free one that is strictly closer to the server than the
    current; the server is no candidate before the route has M devices or no such device is left; ties go to the lowest
    index. Hence each device is on exactly one route.

    Args:
        positions: Coordinates in km, shape [L, N, 2].
        max_hops: M, at least 1.
    """
    layouts, devices = positions.shape[:2]
    rows = np.arange(layouts)
    to_server = np.hypot(positions[..., 0], positions[..., 1])
    free = np.ones((layouts, devices), dtype=bool)
    route, place = np.empty((2, layouts, devices), dtype=np.int64)
    current, number, length = np.zeros((3, layouts), dtype=np.int64)
    closer_than = np.full(layouts, -np.inf)  # nothing is closer, so that the first device starts a route
    number -= 1
    for _ in range(devices):
        here = positions[rows, current][:, None]
        step = np.hypot(positions[..., 0] - here[..., 0], positions[..., 1] - here[..., 1])
        reachable = free & (to_server < closer_than[:, None]) & (length < max_hops)[:, None]
        goes_on = reachable.any(axis=1)
        next_one = np.where(reachable, step, np.inf).argmin(axis=1)
        farthest = np.where(free, to_server, -np.inf).argmax(axis=1)
        current = np.where(goes_on, next_one, farthest)
        number = number + ~goes_on
        length = np.where(goes_on, length + 1, 1)
        route[rows, current], place[rows, current] = number, length - 1
        closer_than = to_server[rows, current]
        free[rows, current] = False
    return _assemble(positions, route, place)


def draw_reference_routes(routes: Routes, seed: int) -> IntArray:
    """For each layout the index of a uniformly drawn route; its first device is the reference device, shape [L]."""
    counts = routes.per_layout
    return routes.starts + (generator(seed, Purpose.REFERENCE).random(len(counts)) * counts).astype(np.int64)


def _assemble(positions: FloatArray, route: IntArray, place: IntArray) -> Routes:
    """Routes as rows, from each device's route number and place in it, both of shape [L, N]."""
    counts = route.max(axis=1) + 1
    layout = np.repeat(np.arange(len(counts)), counts)
    first = np.cumsum(counts) - counts
    devices = np.full((len(layout), place.max() + 1), -1, dtype=np.int64)
    devices[first[:, None] + route, place] = np.arange(route.shape[1])
    return Routes(layout, devices, _hop_lengths(positions, layout, devices))


def _hop_lengths(positions: FloatArray, layout: IntArray, devices: IntArray) -> FloatArray:
    on: NDArray[np.bool_] = devices >= 0
    here = np.where(on[..., None], positions[layout[:, None], devices], 0.0)  # the server stands at the origin
    there = np.concatenate([here[:, 1:], np.zeros_like(here[:, :1])], axis=1)
    lengths = np.hypot(here[..., 0] - there[..., 0], here[..., 1] - there[..., 1]) * 1000
    return np.where(on, np.maximum(lengths, SHORTEST_M), np.nan)
