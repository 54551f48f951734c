"""Routes, channel, compression, Algorithm 1 and privacy of the relay model, piece by piece."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
import relay_brute_force as brute
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize, sparse, stats
from scipy.special import lambertw

from fedpapers.relay.channel import Pattern, Rayleigh, links
from fedpapers.relay.compression import (
    DENSE_BITS,
    csr_bits,
    mean_sample_bits,
    sparsified_nonzeros,
    sparsify,
    value_bits,
    zeroed_pixels,
)
from fedpapers.relay.layouts import draw_layouts
from fedpapers.relay.privacy import CommonMap, label_privacy, own_map_privacy
from fedpapers.relay.routes import draw_reference_routes, find_routes
from fedpapers.relay.seeds import Seeds

GOLDEN = json.loads((Path(__file__).parent / "golden/relay.json").read_text(encoding="utf-8"))


def listed(routes):
    return [row[row >= 0].tolist() for row in routes.devices]


# Routes


@pytest.mark.parametrize("max_hops", [1, 2, 3, 4, 5, 10**30])
def test_routes_of_six_devices(max_hops):
    six = GOLDEN["six"]
    routes = find_routes(np.array([six["pos_km"]], dtype=float), max_hops)
    assert listed(routes) == six["table"][str(min(max_hops, 5))]
    hops = six["hop_dist_m"].get(str(max_hops))
    if hops:
        assert [row[~np.isnan(row)].tolist() for row in routes.distances] == [pytest.approx(hop) for hop in hops]


# Whole coordinates make ties.
coordinates = st.one_of(st.integers(-3, 3).map(float), st.floats(-5, 5))
points = st.tuples(coordinates, coordinates)


@settings(max_examples=150, deadline=None)
@given(st.integers(1, 8).flatmap(lambda n: st.lists(st.lists(points, min_size=n, max_size=n), min_size=1, max_size=4)))
def test_routes_partition_the_devices_and_come_closer(layouts):
    positions = np.array(layouts, dtype=float)
    to_server = np.hypot(positions[..., 0], positions[..., 1])
    for max_hops in (1, 2, 3, 9):
        routes = find_routes(positions, max_hops)
        for i, places in enumerate(layouts):
            own = [route for route, layout in zip(listed(routes), routes.layout, strict=True) if layout == i]
            assert sorted(device for route in own for device in route) == list(range(len(places)))
            assert all(1 <= len(route) <= max_hops for route in own)
            assert all(np.all(np.diff(to_server[i][route]) < 0) for route in own)
            assert own == brute.routes_of(places, max_hops)
            assert routes.sharing[routes.layout == i].tolist() == [len(own)] * len(own)


def test_distances_below_a_metre_count_as_one():
    routes = find_routes(np.array([[[0.0, 0.0], [0.0005, 0.0], [0.0015, 0.0]]]), 3)
    assert listed(routes) == [[2, 1, 0]]
    assert routes.distances[0] == pytest.approx([1, 1, 1])


def test_layouts_do_not_depend_on_how_many_are_drawn_and_dummies_are_nested():
    few, many = draw_layouts(3, 10, 1, seed=4), draw_layouts(50, 10, 3, seed=4)
    assert np.array_equal(few.positions, many.positions[:3])
    assert np.array_equal(few.targets, many.targets[:3])
    assert np.array_equal(few.dummies, many.dummies[:3, :, :1])
    assert not np.array_equal(few.positions, draw_layouts(3, 10, 1, seed=5).positions)


def test_layouts_are_uniform():
    drawn = draw_layouts(2000, 10, 9, seed=0)
    assert stats.kstest(drawn.positions.ravel(), stats.uniform(-5, 10).cdf).pvalue > 1e-6
    assert stats.chisquare(np.bincount(drawn.targets.ravel())).pvalue > 1e-6
    first = (drawn.dummies[..., 0] - drawn.targets) % 10
    assert stats.chisquare(np.bincount(first.ravel(), minlength=10)[1:]).pvalue > 1e-6
    everything = np.concatenate([drawn.targets[..., None], drawn.dummies], axis=-1)
    assert np.array_equal(np.sort(everything, axis=-1), np.broadcast_to(np.arange(10), everything.shape))


def test_reference_routes_are_uniform_over_the_layouts_routes():
    routes = find_routes(np.repeat([GOLDEN["six"]["pos_km"]], 3000, axis=0).astype(float), 3)
    chosen = draw_reference_routes(routes, seed=1)
    assert np.array_equal(routes.layout[chosen], np.arange(3000))
    assert stats.chisquare(np.bincount(chosen % 3)).pvalue > 1e-6


# Channel


@pytest.mark.parametrize("link", GOLDEN["links"], ids=lambda link: f"{link['d_m']:g} m")
def test_links(link):
    tolerance = 1e-5 if link["mean_snr"] > 1e9 else 1e-9
    alone, shared = links(link["d_m"], 1, 0.032), links(link["d_m"], 5, 0.032)
    assert alone.mean_snr == pytest.approx(link["mean_snr"], rel=tolerance)
    assert alone.threshold == pytest.approx(link["theta_star"], rel=tolerance)
    assert alone.success_probability == pytest.approx(link["success_prob"], rel=tolerance)
    assert alone.slot_bits == pytest.approx(link["slot_bits_r1"], rel=tolerance)
    assert shared.slot_bits == pytest.approx(link["slot_bits_r5"], rel=tolerance)
    assert alone.threshold / alone.mean_snr == pytest.approx(link["h2_threshold"], rel=tolerance)


@pytest.mark.parametrize("metres", [10, 300, 1000, 2000, 5000])
def test_threshold_maximises_the_goodput(metres):
    link = links(metres, 1, 0.032)
    snr = float(link.mean_snr)
    best = optimize.minimize_scalar(
        lambda log: -math.log1p(math.exp(log)) * math.exp(-math.exp(log) / snr), bounds=(-20, 30), method="bounded"
    )
    goodput = math.log1p(link.threshold) * link.success_probability
    assert goodput == pytest.approx(-best.fun, rel=1e-9)
    w = lambertw(snr).real
    assert w * math.exp(w) == pytest.approx(snr, rel=1e-12)


@settings(max_examples=200, deadline=None)
@given(st.floats(1, 1e9))
def test_a_slot_at_the_mean_is_never_lost(metres):
    link = links([metres], 1, 0.032)
    assert link.mean_snr >= link.threshold > 0
    assert 1 / math.e - 1e-12 <= link.success_probability[0] < 1


def test_success_probability_tends_to_1_over_e_at_the_edge():
    assert links(1e5, 1, 0.032).success_probability == pytest.approx(1 / math.e, rel=1e-6)


def test_slots_under_rayleigh_fading_are_negative_binomial():
    link, draw = links(np.full(20000, 1000.0), 1, 0.032), np.random.default_rng(1)
    probability = link.success_probability[0]
    needed = Rayleigh().slots(np.full(20000, 3), link, np.zeros(20000), draw)
    counts = np.bincount(needed.astype(int) - 3, minlength=16)
    expected = 20000 * stats.nbinom.pmf(np.arange(15), 3, probability)
    observed = [*counts[:15], counts[15:].sum()]
    assert stats.chisquare(observed, [*expected, 20000 - expected.sum()]).pvalue > 1e-6


def test_successes_within_the_slots_that_are_left_are_binomial():
    link, draw, n, available = links(np.full(20000, 1000.0), 1, 0.032), np.random.default_rng(2), 20000, 9
    required = np.full(n, 6)
    needed = Rayleigh().slots(required, link, np.zeros(n), draw)
    cut = np.flatnonzero(needed > available)
    rows = links(np.full(len(cut), 1000.0), 1, 0.032)
    part = Rayleigh().successes(
        required[cut], needed[cut], np.full(len(cut), available), rows, np.zeros(len(cut), dtype=int), draw
    )
    counts = np.bincount(part, minlength=6)
    expected = n * stats.binom.pmf(np.arange(6), available, link.success_probability[0])
    assert stats.chisquare([*counts, n - len(cut)], [*expected, n - expected.sum()]).pvalue > 1e-6


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.sampled_from([0.0, 0.2, 0.7, 1.0, 3.0]), min_size=1, max_size=6),
    st.integers(1, 20),
    st.integers(0, 20),
    st.sampled_from([100.0, 1000.0, 5000.0]),
)
def test_slots_of_a_pattern(values, required, start, metres):
    link, draw = links([metres], 1, 0.032), np.random.default_rng(0)
    good = [link.mean_snr[0] * value >= link.threshold[0] for value in values]
    found = Pattern(tuple(values)).slots(np.array([required]), link, np.array([start]), draw)[0]
    if not any(good):
        assert found == math.inf
        return
    clock, got = start, 0
    counts = [0]
    while got < required:
        clock += 1
        got += good[(clock - 1) % len(values)]
        counts.append(got)
    assert found == clock - start
    for available in range(len(counts) - 1):
        successes = Pattern(tuple(values)).successes(
            np.array([required]), np.array([found]), np.array([available]), link, np.array([start]), draw
        )
        assert successes[0] == counts[available]


# Compression


def test_csr_bits():
    assert csr_bits(5, 4, 5) == 80
    assert csr_bits(3, 3, 3) == 46
    for nonzeros, bits in GOLDEN["csr_bits_by_nonzeros"].items():
        assert csr_bits(int(nonzeros)) == bits
    assert DENSE_BITS == 6272


def encode(matrix):
    """A CSR matrix as a text of 0 and 1, in fields of fixed widths."""
    csr = sparse.csr_array(matrix)
    rows, columns = matrix.shape
    pointer_bits, column_bits = math.ceil(math.log2(rows * columns + 1)), math.ceil(math.log2(columns))
    pointers = "".join(f"{p:0{pointer_bits}b}" for p in csr.indptr)
    return pointers + "".join(
        (f"{c:0{column_bits}b}" if column_bits else "") + f"{v:08b}" for c, v in zip(csr.indices, csr.data, strict=True)
    )


def decode(bits, rows, columns):
    pointer_bits, column_bits = math.ceil(math.log2(rows * columns + 1)), math.ceil(math.log2(columns))
    head = (rows + 1) * pointer_bits
    pointers = [int(bits[i : i + pointer_bits], 2) for i in range(0, head, pointer_bits)]
    width = column_bits + 8
    cells = [bits[i : i + width] for i in range(head, len(bits), width)]
    indices = [int(cell[:column_bits] or "0", 2) for cell in cells]
    values = np.array([int(cell[column_bits:], 2) for cell in cells], dtype=np.uint8)
    return sparse.csr_array((values, indices, pointers), shape=(rows, columns)).toarray()


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 33), st.integers(1, 33), st.floats(0, 1), st.integers(0, 2**32))
def test_a_coder_of_that_many_bits_gives_the_matrix_back(rows, columns, share, seed):
    draw = np.random.default_rng(seed)
    matrix = draw.integers(0, 256, (rows, columns), dtype=np.uint8) * (draw.random((rows, columns)) < share)
    matrix = matrix.astype(np.uint8)
    bits = encode(matrix)
    assert len(bits) == csr_bits(int((matrix > 0).sum()), rows, columns)
    assert np.array_equal(decode(bits, rows, columns), matrix)


def test_zeroed_pixels():
    assert {rho: zeroed_pixels(float(rho)) for rho in GOLDEN["zeroed_pixels"]} == GOLDEN["zeroed_pixels"]


@pytest.mark.parametrize("rho", [0, 0.04, 0.3, 0.999])
def test_sparsify_draws_as_many_pixels_for_each_image(rho):
    images = np.full((40, 28, 28), 7, dtype=np.uint8)
    sparse_images = sparsify(images, rho, np.random.default_rng(0))
    assert ((sparse_images == 0).sum(axis=(1, 2)) == zeroed_pixels(rho)).all()
    assert set(np.unique(sparse_images)) <= {0, 7}
    assert (images == 7).all()
    if rho > 0:
        assert not np.array_equal(sparse_images[0], sparse_images[1])


def test_sizes_without_images_have_the_law_of_sizes_with_them():
    nonzeros, rho, n = 151, 0.15, 4000
    image = (np.arange(784) < nonzeros).astype(np.uint8).reshape(1, 28, 28)
    with_images = (sparsify(np.repeat(image, n, axis=0), rho, np.random.default_rng(1)) > 0).sum(axis=(1, 2))
    without = sparsified_nonzeros(np.full(n, nonzeros), rho, np.random.default_rng(2))
    law = stats.hypergeom(784, nonzeros, zeroed_pixels(rho))
    for sample in (with_images, without):
        # Deviations of the mean beyond five standard errors have a probability below 1e-6.
        assert abs((nonzeros - sample).mean() - law.mean()) < 5 * law.std() / math.sqrt(n)
    assert stats.ks_2samp(with_images, without).pvalue > 1e-6


def test_mean_sizes():
    for rho, ratios in GOLDEN["ratios"].items():
        # 151.12 is the mean of 151.1219 rounded.
        assert mean_sample_bits(float(rho)) / DENSE_BITS == pytest.approx(ratios["csr"], abs=5e-6)
        left = GOLDEN["mean_nonzeros"] * (1 - zeroed_pixels(float(rho)) / 784)
        assert value_bits(left) / DENSE_BITS == pytest.approx(ratios["values_only"], rel=1e-9)


# Algorithm 1


def merge(seeds, held, device, target, dummies, draw):
    keys = seeds.keys(1, 1 + len(dummies), 5, draw)
    columns = np.array([dummies], dtype=np.int64).reshape(1, -1)
    return seeds.merge(held, np.array([device]), np.array([target]), columns, keys)


def counts(held):
    return (held[0] >= 0).sum(axis=1).tolist()


def test_payload_along_a_route():
    chain, draw = GOLDEN["payload_chain"], np.random.default_rng(0)
    seeds = Seeds(chain["b"])
    held = seeds.nothing(1, 5)
    for device, step in enumerate(chain["steps"]):
        held = merge(seeds, held, device, step["target"], step["own_dummies"], draw)
        assert counts(held) == step["counts_by_label"]
        samples = sum(counts(held))
        assert samples == step["samples"]
        assert 10 + samples * (4 + chain["csr_bits_per_sample"]) == step["bits"]
        assert label_privacy(sum(n > 0 for n in counts(held)), chain["l"]) == pytest.approx(step["label_privacy"])


@pytest.mark.parametrize("case", GOLDEN["partial_arrival"]["cases"], ids=lambda case: case["why"])
def test_relay_after_a_partial_arrival(case):
    seeds, draw = Seeds(GOLDEN["partial_arrival"]["b"]), np.random.default_rng(0)
    held = seeds.nothing(1, 5)
    for label, received in enumerate(GOLDEN["partial_arrival"]["received_counts"]):
        held[0, label, :received] = seeds.number(np.array([7]), np.array([label]))[0, :received]
    assert counts(merge(seeds, held, 0, case["target"], case["own_dummies"], draw)) == case["counts"]


labels = st.lists(st.integers(0, 9), min_size=1, max_size=4, unique=True)


@settings(max_examples=150, deadline=None)
@given(st.lists(labels, min_size=1, max_size=5), st.sampled_from([1, 2, 4, 5, 8, 203]), st.integers(0, 2**32))
def test_no_label_exceeds_the_cap_and_the_payload_never_falls(route, cap, seed):
    seeds, draw = Seeds(cap), np.random.default_rng(seed)
    held = seeds.nothing(1, 5)
    reference = []
    for device, (target, *dummies) in enumerate(route):
        before = counts(held)
        held = merge(seeds, held, device, target, dummies, draw)
        reference = brute.merge(reference, device, target, dummies, cap, draw)
        after = counts(held)
        assert max(after) <= cap
        assert all(new >= old for new, old in zip(after, before, strict=True))
        assert after == np.bincount([label for _, label in reference], minlength=10).tolist()
        present = held[held >= 0]
        assert len(np.unique(present)) == len(present)
        devices, their_labels, places = seeds.origin(present)
        assert devices.max() <= device
        assert np.array_equal(their_labels, np.nonzero(held[0] >= 0)[0])
        own_target = np.array([route[d][0] for d in devices]) == their_labels
        assert places[own_target].max(initial=0) < 4
        if before[target]:
            other = np.arange(10) != target
            assert np.array_equal(np.array(after)[other], np.array(before)[other])


def test_the_pool_is_drawn_uniformly():
    """Of 4 received and 4 own samples of the target label, each is kept with probability 1/2."""
    n, seeds = 4000, Seeds(4)
    held = seeds.nothing(n, 1)
    held[:, 3] = seeds.number(np.full(n, 5), np.full(n, 3))
    keys = seeds.keys(n, 1, 1, np.random.default_rng(3))
    merged = seeds.merge(held, np.zeros(n, dtype=int), np.full(n, 3), np.empty((n, 0), dtype=int), keys)
    device, _, place = seeds.origin(merged[:, 3])
    kept = np.bincount(device.ravel() // 5 * 4 + place.ravel(), minlength=8)
    # Five standard deviations of a binomial number.
    assert np.abs(kept - n / 2).max() < 5 * math.sqrt(n / 4)


# Privacy


@pytest.mark.parametrize(("arrived", "dummies", "privacy"), GOLDEN["label_privacy"])
def test_label_privacy(arrived, dummies, privacy):
    assert label_privacy(arrived, dummies) == pytest.approx(privacy, rel=1e-12)


@pytest.mark.parametrize("case", GOLDEN["sample_privacy"], ids=["triangle", "five"])
def test_sample_privacy_of_given_points(case):
    assert own_map_privacy(np.array(case["points"])) == pytest.approx(case["privacy"], rel=1e-6)


def test_own_map_is_classical_scaling():
    samples = np.random.default_rng(0).random((12, 28, 28))
    flat = samples.reshape(12, -1)
    squares = ((flat[:, None] - flat[None]) ** 2).sum(axis=-1)
    centre = np.eye(12) - 1 / 12
    values, vectors = np.linalg.eigh(-0.5 * centre @ squares @ centre)
    map_ = vectors[:, -2:] * np.sqrt(values[-2:])
    distances = [math.dist(map_[i], map_[j]) for i in range(12) for j in range(i)]
    assert own_map_privacy(samples) == pytest.approx(1 / np.mean(distances), rel=1e-9)


def test_common_map_of_a_set_itself_is_its_own_map():
    samples = np.random.default_rng(1).random((20, 28, 28))
    shared = CommonMap.of(samples)
    assert shared.privacy(samples) == pytest.approx(own_map_privacy(samples), rel=1e-9)
    assert shared.privacy(samples[:5] + 3) == pytest.approx(shared.privacy(samples[:5]), rel=1e-9)


def test_equal_samples_are_private_without_bound():
    assert own_map_privacy(np.ones((4, 28, 28))) == math.inf


@pytest.mark.parametrize("n", [0, 1, 2])
def test_a_map_needs_three_samples(n):
    with pytest.raises(ValueError, match="at least 3"):
        own_map_privacy(np.ones((n, 28, 28)))
