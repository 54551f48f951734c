"""The radio: path loss, the rate of a hop, and which slots succeed.

The paper gives path-loss exponent, bandwidth, power, noise and Rayleigh fading. How routes share the band, the rate
and the slots are ours; `docs/relay-model.md` has the reasons.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import lambertw

from fedpapers.errors import InputError, nearest
from fedpapers.relay.layouts import FloatArray, IntArray

PATH_LOSS_EXPONENT = 4
BANDWIDTH_HZ = 20e6
POWER_W = 0.2
NOISE_W_PER_HZ = 10**-20.4
SLOT_S = 0.032
"""T_c: the coherence time 9 / (16 π f_D) at 3 km/h and 2 GHz (ours)."""

_FADINGS = ("rayleigh", "none", "pattern:1.5,0.2")


@dataclass(frozen=True, eq=False)
class Links:
    """Hops, all arrays of one shape.

    Attributes:
        mean_snr: g, the signal-to-noise ratio at unit fading.
        threshold: θ, the signal-to-noise ratio below which a slot is lost.
        success_probability: p of a slot under Rayleigh fading.
        slot_bits: q, the bits that a successful slot carries.
    """

    mean_snr: FloatArray
    threshold: FloatArray
    success_probability: FloatArray
    slot_bits: FloatArray

    def at(self, rows: IntArray, hop: int) -> Links:
        """One hop of some routes, where the arrays are of shape [T, m]; of the shape of `rows`."""
        columns = (self.mean_snr, self.threshold, self.success_probability, self.slot_bits)
        return Links(*(column[rows, hop] for column in columns))


def links(distances: ArrayLike, sharing: ArrayLike, slot: float) -> Links:
    """The hops of given lengths.

    g = P d⁻⁴ / (N₀ B). A sender knows g but not the fading h², and takes the rate log₂(1 + θ) with the largest
    goodput, θ = argmax log₂(1 + θ) exp(−θ / g) = exp(W₀(g)) − 1, where W₀ is Lambert's function. As routes take turns,
    a slot carries q = T_c / r · B log₂(1 + θ) bits.

    Args:
        distances: In metres, above 0.
        sharing: r, the number of routes that share the band; broadcast against `distances`.
        slot: T_c in seconds.
    """
    mean_snr = (
        POWER_W * np.asarray(distances, dtype=np.float64) ** -PATH_LOSS_EXPONENT / (NOISE_W_PER_HZ * BANDWIDTH_HZ)
    )
    exponent = lambertw(mean_snr).real  # log(1 + θ)
    # θ ≤ g; rounding must not turn a slot at the mean into an outage.
    threshold = np.minimum(np.expm1(exponent), mean_snr)
    rate = BANDWIDTH_HZ * exponent / math.log(2)
    return Links(mean_snr, threshold, np.exp(-threshold / mean_snr), slot / np.asarray(sharing) * rate)


class Fading(Protocol):
    """How h² runs over the slots of a route's clock, and in which order samples are sent."""

    @property
    def label_order(self) -> bool:
        """Whether samples go in the order of their labels; else in a random one."""

    def slots(
        self, required: IntArray, hops: Links, start: FloatArray | IntArray, draw: np.random.Generator
    ) -> FloatArray:
        """The number F of slots until the K-th success, infinite where there is none.

        Args:
            required: K ≥ 1, shape [A].
            hops: The hops, shape [A].
            start: Slots of the route's clock that have passed, shape [A].
            draw: The channel's generator.
        """

    def successes(
        self,
        required: IntArray,
        needed: FloatArray,
        available: IntArray,
        hops: Links,
        start: IntArray,
        draw: np.random.Generator,
    ) -> IntArray:
        """The successes in the first `available` of `needed` slots, where `available` < `needed`; shape [A]."""


@dataclass(frozen=True)
class Rayleigh:
    """h² exponential with mean 1, independent over slots and hops; samples in random order."""

    label_order: bool = False

    def slots(
        self, required: IntArray, hops: Links, start: FloatArray | IntArray, draw: np.random.Generator
    ) -> FloatArray:
        """K and a negative binomial number of failures."""
        return np.asarray(required + draw.negative_binomial(required, hops.success_probability), dtype=np.float64)

    def successes(
        self,
        required: IntArray,
        needed: FloatArray,
        available: IntArray,
        hops: Links,
        start: IntArray,
        draw: np.random.Generator,
    ) -> IntArray:
        """Given F, the first K − 1 successes lie anywhere among its first F − 1 slots: hypergeometric."""
        return draw.hypergeometric(required - 1, needed.astype(np.int64) - required, available)


@dataclass(frozen=True)
class Pattern:
    """Given values of h², which repeat; slot n of a route's clock, from 1, has value number (n − 1) mod length.

    Attributes:
        values: h² ≥ 0.
        label_order: See `Fading`.
    """

    values: tuple[float, ...]
    label_order: bool = True

    def slots(
        self, required: IntArray, hops: Links, start: FloatArray | IntArray, draw: np.random.Generator
    ) -> FloatArray:
        """Whole periods, and the place of the last success in the one after them."""
        good = self._from(hops, start)
        per_period = np.maximum(good.sum(axis=1), 1)
        periods, last = np.divmod(required - 1, per_period)
        places = np.argsort(~good, axis=1, kind="stable")  # those of the successes first, in their order
        ends = periods * len(self.values) + places[np.arange(len(places)), last] + 1
        return np.where(good.any(axis=1) & np.isfinite(start), ends, np.inf)

    def successes(
        self,
        required: IntArray,
        needed: FloatArray,
        available: IntArray,
        hops: Links,
        start: IntArray,
        draw: np.random.Generator,
    ) -> IntArray:
        """Those of the whole periods, and those in the rest."""
        good = self._from(hops, start)
        periods, rest = np.divmod(available, len(self.values))
        within = np.concatenate([np.zeros((len(good), 1), dtype=np.int64), np.cumsum(good, axis=1)], axis=1)
        return np.asarray(periods * within[:, -1] + within[np.arange(len(good)), rest])

    def _from(self, hops: Links, start: FloatArray | IntArray) -> np.ndarray[tuple[int, int], np.dtype[np.bool_]]:
        """Whether each slot of the period that begins after `start` succeeds, shape [A, period]."""
        period = len(self.values)
        begin = np.where(np.isfinite(start), start, 0).astype(np.int64)
        gains = np.array(self.values)[(begin[:, None] + np.arange(period)) % period]
        return np.asarray(hops.mean_snr[:, None] * gains >= hops.threshold[:, None])


def parse_fading(text: str) -> Fading:
    """`rayleigh`, `none` (h² = 1) or `pattern:1.5,0.2,…` (values of h²).

    Raises:
        InputError: It is something else.
    """
    kind, colon, values = text.partition(":")
    if kind == "pattern":
        return Pattern(tuple(_gain(text, value) for value in values.split(",")))
    if kind == "rayleigh" and not colon:
        return Rayleigh()
    if kind == "none" and not colon:
        return Pattern((1.0,), label_order=False)
    raise InputError(f"--fading '{text}': expected {', '.join(_FADINGS)}; {nearest(text, _FADINGS)}")


def _gain(text: str, value: str) -> float:
    try:
        gain = float(value)
    except ValueError:
        gain = math.nan
    if not 0 <= gain < math.inf:
        raise InputError(f"--fading '{text}': '{value}' is no h²; expected numbers of at least 0, as {_FADINGS[-1]}")
    return gain
