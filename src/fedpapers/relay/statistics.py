"""Latency, arrivals and label privacy, a value for each layout, and means over layouts with their errors.

What concerns the reference device, the first of a uniformly drawn route, is averaged over the layout's routes: this has
the mean of the draw and a smaller error. Values of the same layouts may be paired, for M or ρ against another.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fedpapers.relay.layouts import FloatArray
from fedpapers.relay.privacy import label_privacy
from fedpapers.relay.routes import Routes
from fedpapers.relay.seeds import labels_held
from fedpapers.relay.transmission import Relays, Transmission


class Estimate(NamedTuple):
    """A mean over layouts, and its standard error."""

    mean: float
    standard_error: float


def estimate(values: FloatArray) -> Estimate:
    """The mean of independent values, shape [L], L ≥ 2."""
    return Estimate(float(values.mean()), float(values.std(ddof=1) / np.sqrt(len(values))))


def expected_latency(relays: Relays, sent: Transmission) -> dict[str, FloatArray]:
    """Means over the channel, for each layout; it does not matter which channel was drawn.

    Returns:
        Arrays of shape [L]: `reference` and `system`, latency in seconds of a route, mean and largest over the routes;
        `reference_alone`, that of a route which shares the band with no other; `samples`, what a route brings to the
        server; `hops` and `outages`, hops and lost slots of a route; `routes`.
    """
    routes = relays.routes
    slots = sent.expected.sum(axis=1)
    return {
        "reference": relays.slot * _mean(routes, slots),
        "system": relays.slot * _largest(routes, slots),
        "reference_alone": relays.slot * _mean(routes, _slots_alone(relays, sent)),
        "samples": _mean(routes, sent.samples.max(axis=1)),
        "hops": _mean(routes, routes.lengths),
        "routes": routes.per_layout.astype(np.float64),
        "outages": _mean(routes, slots - sent.required.sum(axis=1)),
    }


def arrivals(relays: Relays, sent: Transmission, deadline: float | None) -> dict[str, FloatArray]:
    """What the server has by a deadline, for each layout.

    Args:
        relays: The layouts.
        sent: Their transmission.
        deadline: τ in slots; None for none.

    Returns:
        Arrays of shape [L]: `seeds`, all samples; `labels`, distinct ones among them; `coverage`, the share of the
        references whose target label is among them; `own_seeds`, the samples of that label; `label_privacy`, and
        `label_privacy_without_floor`, of the reference.
    """
    routes, layouts = relays.routes, relays.layouts
    held = relays.collect(sent, deadline)
    at_server = np.add.reduceat((held >= 0).sum(axis=2), routes.starts, axis=0)
    reference = routes.devices[:, 0]
    own = at_server[routes.layout, layouts.targets[routes.layout, reference]]
    labels = labels_held(held).sum(axis=1)
    dummies = layouts.dummy_counts[routes.layout, reference]
    return {
        "seeds": at_server.sum(axis=1).astype(np.float64),
        "labels": (at_server > 0).sum(axis=1).astype(np.float64),
        "coverage": _mean(routes, own > 0),
        "own_seeds": _mean(routes, own),
        "label_privacy": _mean(routes, label_privacy(labels, dummies)),
        "label_privacy_without_floor": _mean(routes, label_privacy(labels, 0)),
    }


def _slots_alone(relays: Relays, sent: Transmission) -> FloatArray:
    """Expected slots of each route, shape [T], were it alone: a slot then carries the bits of all its turns."""
    hops = relays.links()
    required = np.maximum(np.ceil(sent.bits / (hops.slot_bits * relays.routes.sharing[:, None])), 1)
    return np.asarray(np.nansum(required / hops.success_probability, axis=1))


def _mean(routes: Routes, values: np.ndarray[tuple[int], np.dtype[np.generic]]) -> FloatArray:
    return np.bincount(routes.layout, weights=values) / routes.per_layout


def _largest(routes: Routes, values: FloatArray) -> FloatArray:
    return np.asarray(np.maximum.reduceat(values, routes.starts))
