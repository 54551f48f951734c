"""MultFAug's radio over many random layouts, as tidy tables: latency, what arrives by a deadline, sample privacy.

Nothing of it trains. All points of a curve have the same layouts, so that its steps have paired errors, which are far
smaller than those of the points.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
import yaml
from numpy.typing import NDArray

from fedpapers.errors import InputError
from fedpapers.randomness import Purpose, generator
from fedpapers.relay.channel import Rayleigh
from fedpapers.relay.compression import (
    DENSE_BITS,
    PIXELS,
    VALUE_BITS,
    csr_bits,
    mean_sample_bits,
    sparsified_nonzeros,
    sparsify,
    value_bits,
    zeroed_pixels,
)
from fedpapers.relay.layouts import LABELS, FloatArray, IntArray, Layouts, draw_layouts
from fedpapers.relay.privacy import LEAST_SAMPLES, CommonMap, own_map_privacy
from fedpapers.relay.report import Setting, relay_report
from fedpapers.relay.routes import find_routes
from fedpapers.relay.seeds import Seeds, draw_seed_bits
from fedpapers.relay.statistics import arrivals, estimate, expected_latency
from fedpapers.relay.transmission import Relays

CURVES = (
    "axis", "devices", "max_hops", "rho", "dummies", "deadline", "quantity", "layouts", "mean", "standard_error",
    "step", "step_error", "bend", "bend_error",
)  # fmt: skip
PAYLOADS = ("rho", "zeroed_pixels", "samples", "grown", "form", "mean_bits", "sd_bits", "dense_bits")

CAP = 4
DUMMIES = 1
"""b and l where nothing else is said: l is the paper's, b ours."""

_WIDE_BITS = 32
_PER_LABEL = 50  # fixed images of each label that make the common map


@dataclass(frozen=True)
class Point:
    """A setting of which there is one value for each layout.

    Attributes:
        devices: N.
        max_hops: M.
        rho: Compression rate.
        dummies: l.
        deadline: τ in slots; None for none.
    """

    devices: int
    max_hops: int
    rho: float = 0.0
    dummies: int = DUMMIES
    deadline: int | None = None


@dataclass(frozen=True)
class LatencyStudy:
    """What is asked about latency.

    Attributes:
        layouts: How many are drawn.
        devices: Each N.
        max_hops: Each M, ascending.
        compression_rates: Each ρ, ascending.
        dummies: Each l, ascending.
        usual_hops: M of the curves over ρ and over l.
        seed: Of the layouts.
    """

    layouts: int
    devices: list[int]
    max_hops: list[int]
    compression_rates: list[float]
    dummies: list[int]
    usual_hops: int
    seed: int


@dataclass(frozen=True)
class ArrivalStudy:
    """What is asked about arrivals by a deadline.

    Attributes:
        layouts: How many are drawn.
        devices: Each N.
        max_hops: Each M, ascending.
        deadlines: Name -> τ in slots.
        seed: Of all draws.
    """

    layouts: int
    devices: list[int]
    max_hops: list[int]
    deadlines: Mapping[str, int]
    seed: int


@dataclass(frozen=True)
class SampleStudy:
    """What is asked about the privacy of the samples that arrive.

    Attributes:
        privacy_layouts: How many layouts are drawn; the samples at the server of each are one set.
        devices: Each N.
        usual_hops: M.
        compression_rates: Each ρ, ascending.
        deadlines: Name -> τ in slots.
        seed: Of all draws.
    """

    privacy_layouts: int
    devices: list[int]
    usual_hops: int
    compression_rates: list[float]
    deadlines: Mapping[str, int]
    seed: int


def latency_curves(study: LatencyStudy) -> Iterator[dict[str, Any]]:
    """Latency over ρ, over M and over l (Fig. 3); columns `CURVES`, quantities of `expected_latency`.

    Means over the channel; every sample has the mean size of `mean_sample_bits`.
    """

    @cache
    def value(point: Point) -> dict[str, FloatArray]:
        layouts = draw_layouts(study.layouts, point.devices, point.dummies, study.seed)
        relays = _relays(layouts, point.max_hops, mean_sample_bits(point.rho), study.seed)
        return expected_latency(relays, relays.transmit())

    for devices in study.devices:
        usual = Point(devices, study.usual_hops)
        yield from curve("rho", [replace(usual, rho=rho) for rho in study.compression_rates], value)
        yield from curve("max_hops", [replace(usual, max_hops=hops) for hops in study.max_hops], value)
        yield from curve("dummies", [replace(usual, dummies=dummies) for dummies in study.dummies], value)
        value.cache_clear()


def arrival_curves(study: ArrivalStudy, images: NDArray[np.uint8], labels: IntArray) -> Iterator[dict[str, Any]]:
    """What arrives over M for each deadline and none (Fig. 6c); columns `CURVES`, quantities of `arrivals`.

    Samples have the CSR sizes of images of their label at ρ = 0.
    """
    sizes = [csr_bits(_nonzeros(images[own])) for own in _by_label(labels)]
    for devices in study.devices:
        layouts = draw_layouts(study.layouts, devices, DUMMIES, study.seed)
        bits = draw_seed_bits(layouts, Seeds(CAP), sizes, _of_samples(study.seed))
        deadlines = [*study.deadlines.values(), None]
        values: dict[Point, dict[str, FloatArray]] = {}
        for hops in study.max_hops:
            relays = _relays(layouts, hops, bits, study.seed)
            sent = relays.transmit()
            for deadline in deadlines:
                values[Point(devices, hops, deadline=deadline)] = arrivals(relays, sent, deadline)
        for deadline in deadlines:
            points = [Point(devices, hops, deadline=deadline) for hops in study.max_hops]
            yield from curve("max_hops", points, values.__getitem__)


def sample_privacy_curves(study: SampleStudy, images: NDArray[np.uint8], labels: IntArray) -> Iterator[dict[str, Any]]:
    """Sample privacy over ρ for each deadline, and over the deadlines for each ρ (Fig. 5); columns `CURVES`.

    Quantities: `own_map` and `common_map` (`fedpapers.relay.privacy`); the common one is made from 50 images of each
    label, or as many as there are, at the same ρ. The samples of a layout's server are those sent at ρ = 0; their
    pixels are set to 0 afterwards. Layouts of which a deadline leaves fewer than 3 samples are left out.
    """
    fixed = np.concatenate([own[:_PER_LABEL] for own in _by_label(labels)])
    for devices in study.devices:
        sets = _arrived(study, devices, images, labels)

        @cache
        def value(point: Point, sets: Any = sets) -> dict[str, FloatArray]:
            draw = generator(study.seed, Purpose.SEEDS, group=3)
            shared = CommonMap.of(sparsify(images[fixed], point.rho, draw) / 255)
            samples = [sparsify(images[own], point.rho, draw) / 255 for own in sets[point.deadline]]
            maps = {"own_map": own_map_privacy, "common_map": shared.privacy}
            return {name: np.array([privacy(own) for own in samples]) for name, privacy in maps.items()}

        usual = Point(devices, study.usual_hops)
        slots = sorted(study.deadlines.values(), reverse=True)
        for deadline in slots:
            points = [replace(usual, rho=rho, deadline=deadline) for rho in study.compression_rates]
            yield from curve("rho", points, value)
        for rho in study.compression_rates:
            yield from curve("deadline", [replace(usual, rho=rho, deadline=deadline) for deadline in slots], value)


def payloads(compression_rates: Sequence[float], seed: int, images: NDArray[np.uint8]) -> Iterator[dict[str, Any]]:
    """Bits of an image at each ρ, in three forms (Table M of ours); columns `PAYLOADS`.

    Forms: `csr`, with its indices; `values`, the values alone, which cannot be decoded; `csr_wide`, CSR of pixels of
    32 bits, to be compared with dense images of such pixels. `grown` is the share of images that are larger than at the
    ρ before, as their pixels are drawn anew.
    """
    nonzeros, draw = _nonzeros(images), _of_samples(seed)
    before = None
    for rho in compression_rates:
        left = sparsified_nonzeros(nonzeros, rho, draw)
        grown = None if before is None else (left > before).mean()
        before = left
        forms = {
            "csr": (csr_bits(left), DENSE_BITS),
            "values": (value_bits(left), DENSE_BITS),
            "csr_wide": (csr_bits(left) + left * (_WIDE_BITS - VALUE_BITS), PIXELS * _WIDE_BITS),
        }
        for form, (bits, dense) in forms.items():
            columns = (rho, zeroed_pixels(rho), len(left), grown, form, bits.mean(), bits.std(), dense)
            yield dict(zip(PAYLOADS, columns, strict=True))


def mapped_layout(devices: Sequence[int], usual_hops: int, seed: int) -> tuple[str, dict[str, Any]]:
    """The study's first layout with the fewest devices: a file for `fedpapers relay`, and the `relay_report` of it.

    Args:
        devices: Each N.
        usual_hops: M.
        seed: Of the layouts.
    """
    layout = draw_layouts(1, min(devices), DUMMIES, seed)
    report = relay_report(layout, Setting(usual_hops, cap=CAP, seed=seed))
    return yaml.safe_dump({"devices": report["devices"]}, sort_keys=False, default_flow_style=None), report


def curve(axis: str, points: Sequence[Point], value: Any) -> Iterator[dict[str, Any]]:
    """The rows of one curve, one a point and quantity.

    `step` is a value minus that of the point before; `bend` how much the slope grows at a point: the second difference
    where points are one apart. Both are means over layouts of paired values.

    Args:
        axis: The attribute that differs between the points.
        points: In the order of the axis.
        value: Point -> quantity -> a value for each layout, shape [L].
    """
    places = [getattr(point, axis) for point in points]
    found = [value(point) for point in points]
    for quantity in found[0]:
        values = [own[quantity] for own in found]
        steps = [after - before for before, after in pairwise(values)]
        slopes = [step / (b - a) for step, (a, b) in zip(steps, pairwise(places), strict=True)]
        bends = [after - before for before, after in pairwise(slopes)]
        columns = zip(points, values, [None, *steps], [None, *bends, None][: len(points)], strict=True)
        for point, own, step, bend in columns:
            setting = vars(point) | {"axis": axis, "quantity": quantity, "layouts": len(own)}
            numbers = (*estimate(own), *_paired(step), *_paired(bend))
            yield setting | dict(zip(CURVES[-6:], numbers, strict=True))


def _paired(differences: FloatArray | None) -> tuple[float | None, float | None]:
    return (None, None) if differences is None else estimate(differences)


def _relays(layouts: Layouts, max_hops: int, bits: IntArray | float, seed: int) -> Relays:
    return Relays(layouts, find_routes(layouts.positions, max_hops), Seeds(CAP), bits, Rayleigh(), seed)


def _by_label(labels: IntArray) -> list[IntArray]:
    """The indices of each label's samples."""
    found = [np.flatnonzero(labels == label) for label in range(LABELS)]
    for label, own in enumerate(found):
        if not len(own):
            raise InputError(f"papers.multfaug.layouts.dataset has no sample of label {label}; expected some of each")
    return found


def _nonzeros(images: NDArray[np.uint8]) -> IntArray:
    return np.asarray((images != 0).sum(axis=(1, 2)))


def _of_samples(seed: int) -> np.random.Generator:
    """Which samples of a data set the devices' seeds are; groups 0 and 1 of the purpose are the relays'."""
    return generator(seed, Purpose.SEEDS, group=2)


def _arrived(
    study: SampleStudy, devices: int, images: NDArray[np.uint8], labels: IntArray
) -> dict[int | None, list[IntArray]]:
    """Deadline -> for each layout the indices of the images that are at the server."""
    layouts = draw_layouts(study.privacy_layouts, devices, DUMMIES, study.seed)
    seeds = Seeds(CAP)
    chosen = draw_seed_bits(layouts, seeds, _by_label(labels), _of_samples(study.seed))
    relays = _relays(layouts, study.usual_hops, csr_bits(_nonzeros(images))[chosen], study.seed)
    sent = relays.transmit()
    sets: dict[int | None, list[IntArray]] = {}
    for deadline in study.deadlines.values():
        held = relays.collect(sent, deadline)
        route, label, place = np.nonzero(held >= 0)
        layout = relays.routes.layout[route]
        found = chosen[layout, *seeds.origin(held[route, label, place])]
        sets[deadline] = np.split(found, np.cumsum(np.bincount(layout, minlength=study.privacy_layouts))[:-1])
    whole = np.all([[len(own) >= LEAST_SAMPLES for own in own_sets] for own_sets in sets.values()], axis=0)
    return {deadline: [own_sets[i] for i in np.flatnonzero(whole)] for deadline, own_sets in sets.items()}
