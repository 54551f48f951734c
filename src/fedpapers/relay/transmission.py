"""Sending the seeds over the routes: how many slots each hop takes, and what arrives by a deadline."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fedpapers.errors import InputError
from fedpapers.randomness import Purpose, generator
from fedpapers.relay.channel import SLOT_S, Fading, Links, links
from fedpapers.relay.layouts import LABELS, FloatArray, IntArray, Layouts
from fedpapers.relay.routes import Routes
from fedpapers.relay.seeds import Seeds

SDI_BITS = LABELS
TAG_BITS = 4
"""Each transmission begins with which labels are in it, and each sample carries its label (ours)."""

_MOST_SLOTS = 10**8
_NEVER = 1e15  # slots; a later deadline is as good as none


@dataclass(frozen=True, eq=False)
class Transmission:
    """Every route without a deadline; arrays of shape [T, m] are 0 after a route's last hop.

    Attributes:
        samples: Samples that each hop carries.
        bits: D, with labels and header.
        required: K, the successful slots that a hop needs.
        expected: K / p, the mean number of slots under Rayleigh fading.
        slots: F, the slots until the K-th success; infinite where there is none, and after such a hop.
        held: What reaches the server, shape [T, 10, w] (`fedpapers.relay.seeds`).
    """

    samples: IntArray
    bits: FloatArray
    required: IntArray
    expected: FloatArray
    slots: FloatArray
    held: IntArray


@dataclass(frozen=True, eq=False)
class Relays:
    """All that decides how the seeds of L layouts travel.

    Attributes:
        layouts: Devices and labels.
        routes: The routes of these layouts.
        seeds: With the cap b.
        sample_bits: Size of each seed without its label, broadcast to shape [L, N, 10, `seeds.per_label`].
        fading: The channel.
        seed: Of the channel, of the samples that a relay keeps, and of the order in which it sends them.
        slot: T_c in seconds.
    """

    layouts: Layouts
    routes: Routes
    seeds: Seeds
    sample_bits: FloatArray | IntArray | float
    fading: Fading
    seed: int
    slot: float = SLOT_S

    def links(self) -> Links:
        """The hops, shape [T, m]; NaN after a route's last."""
        return links(self.routes.distances, self.routes.sharing[:, None], self.slot)

    def transmit(self) -> Transmission:
        """Send everything, however long it takes.

        Raises:
            InputError: A hop needs more than 10⁸ successful slots.
        """
        shape = self.routes.devices.shape
        hops, held = self.links(), self._nothing()
        samples, required = np.zeros((2, *shape), dtype=np.int64)
        bits, expected, slots = np.zeros((3, *shape))
        for hop in range(shape[1]):
            on = self._on(hop)
            held[on] = self._merge(held[on], on, hop)
            samples[on, hop] = (held[on] >= 0).sum(axis=(1, 2))
            bits[on, hop] = SDI_BITS + self._costs(held[on], on).sum(axis=(1, 2))
            required[on, hop] = self._required(bits[on, hop], hops.at(on, hop), on, hop)
            expected[on, hop] = required[on, hop] / hops.success_probability[on, hop]
            draw = generator(self.seed, Purpose.CHANNEL, round=hop)
            slots[on, hop] = self.fading.slots(required[on, hop], hops.at(on, hop), slots[on].sum(axis=1), draw)
        return Transmission(samples, bits, required, expected, slots, held)

    def collect(self, sent: Transmission, deadline: float | None) -> IntArray:
        """What the server has by a deadline, shape [T, 10, w].

        Hop h of m must end by slot ⌊τ h / m⌋ of the route's clock; slots that it leaves pass on. Of an unfinished hop
        the first samples that fit arrive, the rest is lost, and the next device merges its own with them (ours; the
        paper: a device "partially or fully fails to send").

        Args:
            sent: The transmission without a deadline, of the same object; a route on which nothing has been lost so
                far has the same slots here.
            deadline: τ in slots, at least 0; None for none.
        """
        if deadline is None:
            return sent.held
        hops, held, lengths = self.links(), self._nothing(), self.routes.lengths
        clock = np.zeros(len(held), dtype=np.int64)
        intact = np.ones(len(held), dtype=bool)
        for hop in range(sent.slots.shape[1]):
            on = self._on(hop)
            draw = generator(self.seed, Purpose.CHANNEL, round=hop, group=1)
            held[on] = self._merge(held[on], on, hop)
            required, slots = sent.required[on, hop], sent.slots[on, hop]
            again = np.flatnonzero(~intact[on])
            late = on[again]
            bits = SDI_BITS + self._costs(held[late], late).sum(axis=(1, 2))
            required[again] = self._required(bits, hops.at(late, hop), late, hop)
            slots[again] = self.fading.slots(required[again], hops.at(late, hop), clock[late], draw)
            available = np.floor(min(deadline, _NEVER) * (hop + 1) / lengths[on]).astype(np.int64) - clock[on]
            cut = np.flatnonzero(slots > available)
            part = on[cut]
            successes = self.fading.successes(
                required[cut], slots[cut], available[cut], hops.at(part, hop), clock[part], draw
            )
            held[part] = self._first(held[part], part, hop, successes * hops.slot_bits[part, hop])
            intact[part] = False
            clock[on] += np.minimum(slots, available).astype(np.int64)
        return held

    def _nothing(self) -> IntArray:
        return self.seeds.nothing(*self.routes.devices.shape)

    def _on(self, hop: int) -> IntArray:
        """The routes that have this hop."""
        return np.flatnonzero(self.routes.devices[:, hop] >= 0)

    def _merge(self, held: IntArray, on: IntArray, hop: int) -> IntArray:
        layout, device = self.routes.layout[on], self.routes.devices[on, hop]
        dummies = self.layouts.dummies[layout, device]
        draw = generator(self.seed, Purpose.SEEDS, round=hop)
        keys = self.seeds.keys(len(on), 1 + dummies.shape[1], self.routes.devices.shape[1], draw)
        return self.seeds.merge(held, device, self.layouts.targets[layout, device], dummies, keys)

    def _costs(self, held: IntArray, on: IntArray) -> FloatArray:
        """Bits of each held sample with its label, of the shape of `held`; 0 at empty places."""
        bits: FloatArray | IntArray
        if np.ndim(self.sample_bits) == 0:
            bits = np.asarray(self.sample_bits)
        else:
            device, label, place = self.seeds.origin(held)
            bits = np.asarray(self.sample_bits)[self.routes.layout[on][:, None, None], device, label, place]
        return np.where(held >= 0, bits + TAG_BITS, 0.0)

    def _required(self, bits: FloatArray, hops: Links, on: IntArray, hop: int) -> IntArray:
        with np.errstate(all="ignore"):
            required = np.maximum(np.ceil(bits / hops.slot_bits), 1)
        bad = np.flatnonzero(~(required <= _MOST_SLOTS))
        if len(bad):
            device = self.routes.devices[on[bad[0]], hop]
            raise InputError(
                f"device {device}: its hop of {self.routes.distances[on[bad[0]], hop]:g} m needs "
                f"{required[bad[0]]:.3g} successful slots; expected at most {_MOST_SLOTS:.0e}; are the coordinates "
                f"in km, and the slot in seconds?"
            )
        return required.astype(np.int64)

    def _first(self, held: IntArray, on: IntArray, hop: int, room: FloatArray) -> IntArray:
        """The samples that arrive over an unfinished hop with `room` bits."""
        places = held.shape[1] * held.shape[2]
        flat, costs = held.reshape(-1, places), self._costs(held, on).reshape(-1, places)
        if self.fading.label_order:
            keys = np.broadcast_to(np.arange(flat.shape[1], dtype=np.float64), flat.shape)
        else:
            keys = generator(self.seed, Purpose.SEEDS, round=hop, group=1).random(flat.shape)
        order = np.argsort(np.where(flat >= 0, keys, np.inf), axis=1, kind="stable")
        ends = SDI_BITS + np.cumsum(np.take_along_axis(costs, order, axis=1), axis=1)
        arrives = np.empty(flat.shape, dtype=bool)
        np.put_along_axis(arrives, order, ends <= room[:, None], axis=1)
        return np.where(arrives, flat, -1).reshape(held.shape)
