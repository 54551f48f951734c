"""Hops, deadlines and means over layouts, against brute force, closed forms and golden values."""

from __future__ import annotations

import json
import math
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import relay_brute_force as brute
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from fedpapers.errors import InputError
from fedpapers.relay.channel import Pattern, Rayleigh
from fedpapers.relay.compression import csr_bits, mean_sample_bits
from fedpapers.relay.layouts import Layouts, draw_layouts
from fedpapers.relay.routes import find_routes
from fedpapers.relay.seeds import Seeds, draw_seed_bits, labels_held
from fedpapers.relay.statistics import arrivals, estimate, expected_latency
from fedpapers.relay.transmission import Relays

GOLDEN = json.loads((Path(__file__).parent / "golden/relay.json").read_text(encoding="utf-8"))
NO_FADING = Pattern((1.0,), label_order=False)
HOPS = (1, 2, 3, 4, 5)


def relays_of(layouts, max_hops, *, bits=2254.56, cap=4, fading=NO_FADING, seed=0):
    return Relays(layouts, find_routes(layouts.positions, max_hops), Seeds(cap), bits, fading, seed)


# Against brute force

FIVE = [
    {"x": 4.0, "y": 1.0, "target": 3, "dummies": [5]},
    {"x": 2.5, "y": 1.0, "target": 7, "dummies": [3, 1]},
    {"x": 1.0, "y": 1.0, "target": 3, "dummies": [9]},
    {"x": -3.0, "y": -1.0, "target": 1, "dummies": []},
    {"x": -1.5, "y": -1.0, "target": 0, "dummies": [1]},
]


def copies(n):
    dummies = [[device["dummies"] + [-1] * (2 - len(device["dummies"])) for device in FIVE]]
    positions = [[(device["x"], device["y"]) for device in FIVE]]
    targets = [[device["target"] for device in FIVE]]
    columns = (np.array(positions), np.array(targets), np.array(dummies))
    return Layouts(*(np.repeat(column, n, axis=0) for column in columns))


def features_by_hand(deadline, repetitions):
    """Slots of each hop without a deadline, and at the server the samples of each label, of each device, and in all."""
    setting = {"bits": 2254.56, "cap": 4, "slot": 0.032, "shuffle": True}
    draw, rows = np.random.default_rng(11), []
    routes = brute.routes_of([(device["x"], device["y"]) for device in FIVE], 3)
    for _ in range(repetitions):
        row, held = [], []
        for route in routes:
            gains = iter(lambda: draw.exponential(), None)
            row += brute.run_route(route, FIVE, setting, len(routes), None, lambda n, g=gains: next(g), draw)[0]
            held += brute.run_route(route, FIVE, setting, len(routes), deadline, lambda n, g=gains: next(g), draw)[1]
        row += np.bincount([label for _, label in held], minlength=10).tolist()
        row += np.bincount([device for device, _ in held], minlength=5).tolist()
        rows.append([*row, len(held), len(held) ** 2])
    return np.array(rows, dtype=float)


def features(deadline, repetitions):
    relays = relays_of(copies(repetitions), 3, fading=Rayleigh(), seed=5)
    sent = relays.transmit()
    held = relays.collect(sent, deadline)
    routes = relays.routes
    columns = [sent.slots[i :: len(sent.slots) // repetitions, hop] for i, hop in np.argwhere(routes.devices[:2] >= 0)]
    device = np.where(held >= 0, relays.seeds.origin(held)[0], 5)
    by_label = (held >= 0).sum(axis=2).reshape(repetitions, 2, 10).sum(axis=1)
    by_device = np.stack([(device == i).sum(axis=(1, 2)).reshape(repetitions, 2).sum(axis=1) for i in range(5)], axis=1)
    total = by_label.sum(axis=1)
    return np.column_stack([*columns, by_label, by_device, total, total**2]).astype(float)


@pytest.mark.parametrize("deadline", [0, 7, 12, 25, None])
def test_slot_by_slot(deadline):
    """Each mean is off by less than 5 standard errors: false alarm below 1e-4 over 110 comparisons."""
    by_hand, ours = features_by_hand(deadline, 2500), features(deadline, 20000)
    assert by_hand.shape[1] == ours.shape[1] == 22
    error = np.sqrt(by_hand.var(axis=0) / len(by_hand) + ours.var(axis=0) / len(ours))
    assert np.all(np.abs(by_hand.mean(axis=0) - ours.mean(axis=0)) <= 5 * error + 1e-9)


device = st.fixed_dictionaries(
    {
        "x": st.floats(-5, 5),
        "y": st.floats(-5, 5),
        "labels": st.lists(st.integers(0, 9), min_size=1, max_size=4, unique=True),
    }
)


@settings(max_examples=120, deadline=None)
@given(
    st.lists(device, min_size=1, max_size=6),
    st.integers(1, 4),
    st.lists(st.sampled_from([0.1, 0.5, 1.0, 2.0]), min_size=1, max_size=5),
    st.one_of(st.none(), st.integers(0, 60)),
    st.sampled_from([1, 3, 4, 6]),
    st.sampled_from([0.0, 800.0, 2254.56]),
)
def test_patterns_slot_by_slot(devices, max_hops, pattern, deadline, cap, bits):
    devices = [d | {"target": d["labels"][0], "dummies": d["labels"][1:]} for d in devices]
    most = max(len(d["dummies"]) for d in devices)
    positions = [(d["x"], d["y"]) for d in devices]
    dummies = np.array([[d["dummies"] + [-1] * (most - len(d["dummies"])) for d in devices]], dtype=np.int64)
    targets = np.array([[d["target"] for d in devices]])
    layouts = Layouts(np.array([positions]), targets, dummies.reshape(1, len(devices), most))
    # Without the fifth value, a pattern of lost slots alone would keep the brute force busy for ever.
    gains = [*pattern, 5.0]
    relays = relays_of(layouts, max_hops, bits=bits, cap=cap, fading=Pattern(tuple(gains)))
    sent = relays.transmit()
    held = relays.collect(sent, deadline)
    setting = {"bits": bits, "cap": cap, "slot": 0.032, "shuffle": False}
    routes = brute.routes_of(positions, max_hops)
    for t, route in enumerate(routes):
        draw = np.random.default_rng(0)
        common = (route, devices, setting, len(routes))
        used, _ = brute.run_route(*common, None, lambda n: gains[(n - 1) % len(gains)], draw)
        _, there = brute.run_route(*common, deadline, lambda n: gains[(n - 1) % len(gains)], draw)
        assert sent.slots[t, : len(route)].tolist() == used
        labels = np.bincount([label for _, label in there], minlength=10)
        assert (held[t] >= 0).sum(axis=1).tolist() == labels.tolist()


# Invariants


@pytest.mark.parametrize("fading", [Rayleigh(), NO_FADING], ids=["rayleigh", "none"])
def test_a_route_on_time_loses_nothing(fading):
    relays = relays_of(draw_layouts(300, 10, 1, seed=2), 3, fading=fading)
    sent = relays.transmit()
    lengths = relays.routes.lengths
    assert np.array_equal(relays.collect(sent, 1e300), sent.held)
    shares = np.arange(1, sent.slots.shape[1] + 1) / lengths[:, None]
    ends = np.cumsum(sent.slots, axis=1)
    on_time = ((ends <= np.floor(25 * shares)) | (relays.routes.devices < 0)).all(axis=1)
    held = relays.collect(sent, 25)
    assert 0.1 < on_time.mean() < 0.9
    assert np.array_equal(held[on_time], sent.held[on_time])
    last = ends[np.arange(len(ends)), lengths - 1]
    single = (lengths == 1) & (last > 25)
    assert ((held[single] >= 0).sum(axis=(1, 2)) < (sent.held[single] >= 0).sum(axis=(1, 2))).all()


def test_payload_never_falls_while_nothing_is_lost():
    relays = relays_of(draw_layouts(500, 25, 2, seed=1), 5)
    sent = relays.transmit()
    on = relays.routes.devices[:, 1:] >= 0
    assert np.all((np.diff(sent.samples, axis=1) >= 0) | ~on)
    assert np.all((np.diff(sent.bits, axis=1) >= 0) | ~on)


def test_own_sizes_of_the_samples_are_counted():
    layouts = draw_layouts(40, 10, 1, seed=3)
    bits = np.random.default_rng(0).integers(300, 5000, (40, 10, 10, 4))
    relays = relays_of(layouts, 4, bits=bits)
    sent = relays.transmit()
    last = relays.routes.lengths - 1
    for t in range(len(last)):
        device, label, place = relays.seeds.origin(sent.held[t][sent.held[t] >= 0])
        total = 10 + (4 + bits[relays.routes.layout[t], device, label, place]).sum()
        assert sent.bits[t, last[t]] == total


def test_equal_seeds_give_equal_results_and_others_do_not():
    layouts = draw_layouts(50, 10, 1, seed=3)
    first, again, other = (relays_of(layouts, 3, fading=Rayleigh(), seed=seed) for seed in (1, 1, 2))
    assert np.array_equal(first.transmit().slots, again.transmit().slots)
    assert not np.array_equal(first.transmit().slots, other.transmit().slots)
    held = [relays.collect(relays.transmit(), 10) for relays in (first, again, other)]
    assert np.array_equal(held[0], held[1])
    assert not np.array_equal(held[0], held[2])


def test_a_hop_that_takes_for_ever_is_an_error():
    layouts = Layouts(np.array([[[1e5, 0.0]]]), np.array([[1]]), np.array([[[2]]]))
    with pytest.raises(InputError, match=r"device 0: its hop of 1e\+08 m needs .* in km"):
        relays_of(layouts, 1).transmit()


# Closed forms


def test_one_device_is_on_time_with_a_negative_binomial_probability():
    n, deadline = 20000, 25
    layouts = Layouts(np.full((n, 1, 2), 2.5), np.full((n, 1), 1), np.full((n, 1, 1), 2))
    relays = relays_of(layouts, 1, fading=Rayleigh(), bits=9000.0)
    sent = relays.transmit()
    probability, required = relays.links().success_probability[0, 0], sent.required[0, 0]
    assert required > 3
    whole = ((relays.collect(sent, deadline) >= 0).sum(axis=(1, 2)) == 8).mean()
    expected = stats.nbinom.cdf(deadline - required, required, probability)
    # Five standard deviations.
    assert abs(whole - expected) < 5 * math.sqrt(expected * (1 - expected) / n)
    assert abs(sent.slots.mean() - sent.expected[0, 0]) < 5 * sent.slots.std() / math.sqrt(n)


def test_seeds_of_routes_of_two():
    """25 devices, M = 2: 12 pairs and one single; l = 1, b = 4.

    A pair's second device adds nothing new if its target is one of the two labels (probability 1/5), else 4 samples of
    it, and 4 of its dummy unless that is one of the two, of the nine other labels.
    """
    expected = 12 * (8 + 4 / 5 * (4 + 4 * 7 / 9)) + 8
    relays = relays_of(draw_layouts(3000, 25, 1, seed=6), 2)
    found = estimate(arrivals(relays, relays.transmit(), None)["seeds"])
    assert abs(found.mean - expected) < 5 * found.standard_error


def test_one_hop_has_the_label_privacy_of_the_dummies():
    for dummies in (0, 1, 3):
        relays = relays_of(draw_layouts(20, 10, dummies, seed=0), 1)
        for deadline in (0, 5, None):
            found = arrivals(relays, relays.transmit(), deadline)["label_privacy"]
            assert found == pytest.approx(np.full(20, 1 - 1 / (1 + dummies)))


# Golden means over layouts


def assert_agree(found, golden):
    """Within 4 standard errors of the difference, and 5 digits where the golden error is rounded to 0."""
    for estimate_, (mean, error) in zip(found, golden, strict=True):
        spread = math.hypot(error, estimate_.standard_error)
        assert abs(estimate_.mean - mean) <= 4 * spread + 1e-4, (estimate_, mean, error)


@cache
def latencies(devices):
    layouts = draw_layouts(3000, devices, 1, seed=21)
    answers = []
    for max_hops in HOPS:
        relays = relays_of(layouts, max_hops)
        answers.append(expected_latency(relays, relays.transmit()))
    return answers


@pytest.mark.parametrize("devices", [10, 25])
def test_expected_latency(devices):
    names = {"reference": "ref", "system": "sys_of_means", "hops": "hops", "routes": "routes"}
    for ours, theirs in names.items():
        found = [estimate(answer[ours]) for answer in latencies(devices)]
        assert_agree(found, GOLDEN["expected_latency"][f"N{devices}_{theirs}"])


def test_latency_has_its_minimum_at_two_and_at_three_hops():
    for devices, best in ((10, 2), (25, 3)):
        by_hops = dict(zip(HOPS, latencies(devices), strict=True))
        for hops in (best - 1, best + 1):
            gap = estimate(by_hops[hops]["reference"] - by_hops[best]["reference"])
            assert gap.mean > 4 * gap.standard_error


@pytest.mark.parametrize("devices", [10, 25])
def test_latency_falls_with_the_compression_rate(devices):
    layouts, last = draw_layouts(2000, devices, 1, seed=22), None
    for rho, golden in GOLDEN["latency_by_rho"][f"N{devices}"].items():
        relays = relays_of(layouts, 3, bits=mean_sample_bits(float(rho)))
        reference = expected_latency(relays, relays.transmit())["reference"]
        assert_agree([estimate(reference)], [golden])
        if last is not None:
            assert np.all(reference <= last)
            assert reference.mean() < last.mean()
        last = reference


def drawn_slots(routes, slots):
    """Of the reference device, which is the first of any route of its layout, and of the last route to arrive."""
    of_layout = [slots[routes.layout == layout] for layout in range(routes.layout.max() + 1)]
    return {
        "reference": np.array([own.mean() for own in of_layout]),
        "system": np.array([own.max() for own in of_layout]),
    }


@pytest.mark.parametrize("devices", [10, 25])
def test_arrivals(devices):
    """With sizes as in the MNIST test images of each label; the golden ones are those of the images themselves."""
    layouts, draw = draw_layouts(1500, devices, 1, seed=23), np.random.default_rng(24)
    sizes = [
        csr_bits(np.maximum(draw.normal(mean, deviation, 5000), 1).astype(int))
        for mean, deviation in GOLDEN["nonzeros_by_label"]
    ]
    table = draw_seed_bits(layouts, Seeds(4), sizes, draw)
    found = {25: [], None: []}
    slots = []
    for max_hops in HOPS:
        relays = relays_of(layouts, max_hops, bits=table, fading=Rayleigh(), seed=25)
        sent = relays.transmit()
        slots.append(drawn_slots(relays.routes, sent.slots.sum(axis=1)))
        for deadline, rows in found.items():
            rows.append(arrivals(relays, sent, deadline))
    names = {
        "seeds": "seeds",
        "labels": "labels",
        "coverage": "cov_ref",
        "label_privacy": "PLfloor",
        "label_privacy_without_floor": "PL0",
    }
    for deadline, rows in found.items():
        golden = GOLDEN["arrivals"][f"N{devices}_tau_{deadline}"]
        for ours, theirs in names.items():
            assert_agree([estimate(row[ours]) for row in rows], golden[theirs])
    assert_agree([estimate(row["reference"]) for row in slots], golden["ref_slots"])
    assert_agree([estimate(row["system"]) for row in slots], golden["sys_slots"])


def test_labels_held():
    assert labels_held(np.array([[[-1, 3], [-1, -1]]])).tolist() == [[True, False]]
