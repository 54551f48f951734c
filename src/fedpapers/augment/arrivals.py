"""Which seeds of one layout reach the server: arithmetic on the layout, before any image is read.

A sample counts with the mean CSR size at its compression rate, as in `fedpapers relay`. So the plan of a workflow knows
what arrives, and cells in which the same seeds arrive share what is trained on them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from fedpapers.relay.channel import Rayleigh
from fedpapers.relay.compression import mean_sample_bits
from fedpapers.relay.layouts import Layouts, draw_layouts
from fedpapers.relay.privacy import label_privacy
from fedpapers.relay.routes import draw_reference_routes, find_routes
from fedpapers.relay.seeds import Seeds
from fedpapers.relay.transmission import Relays


@dataclass(frozen=True)
class Arrivals:
    """What the server has of one layout.

    Attributes:
        seeds: The seeds' numbers (`fedpapers.relay.seeds`), ascending.
        labels: The label of each.
        reference: Index of the reference device.
        target: The reference device's target label.
        label_privacy: Of the reference device.
    """

    seeds: tuple[int, ...]
    labels: tuple[int, ...]
    reference: int
    target: int
    label_privacy: float


def layout_targets(devices: int, seed: int) -> list[int]:
    """The target label of each device of a seed's layout."""
    return [int(target) for target in draw_layouts(1, devices, 0, seed).targets[0]]


def arrivals(
    layout: Layouts, max_hops: int, cap: int, compression: float, deadlines: Sequence[float | None], seed: int
) -> Iterator[Arrivals]:
    """What arrives by each deadline; the layout is the same for every M, ρ and τ, and the channel's draws too.

    Args:
        layout: One layout (L = 1).
        max_hops: M.
        cap: b.
        compression: ρ.
        deadlines: τ in slots; None for none.
        seed: Of the channel and of the draw of the reference device.
    """
    routes, seeds = find_routes(layout.positions, max_hops), Seeds(cap)
    relays = Relays(layout, routes, seeds, mean_sample_bits(compression), Rayleigh(), seed)
    route = int(draw_reference_routes(routes, seed)[0])
    reference = int(routes.devices[route, 0])
    sent = relays.transmit()
    for deadline in deadlines:
        held = relays.collect(sent, deadline)
        arrived = np.sort(held[held >= 0])
        seen = int((held[route] >= 0).any(axis=-1).sum())
        yield Arrivals(
            tuple(arrived.tolist()),
            tuple(seeds.origin(arrived)[1].tolist()),
            reference,
            int(layout.targets[0, reference]),
            float(label_privacy(seen, layout.dummy_counts[0, reference])),
        )
