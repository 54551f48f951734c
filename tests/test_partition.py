"""Partitions: what each scheme promises, and the file in which one is kept."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from data_folders import refused
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from safetensors.numpy import load_file, save_file
from scipy import stats

from fedpapers import groups as structures
from fedpapers.data import partition, schemes
from fedpapers.data.draws import Step, step_generator
from fedpapers.data.group_classes import by_groups, group_classes
from fedpapers.data.partition import Partition, read_partition
from fedpapers.data.schemes import by_dirichlet, by_shards
from fedpapers.data.split import split
from fedpapers.data.writers import by_writer
from fedpapers.errors import InputError
from fedpapers.groups import Groups

quick = settings(max_examples=40, deadline=None)
seeds = st.integers(0, 2**32)
label_lists = st.lists(st.integers(0, 9), min_size=1, max_size=200).map(np.array)


def digits(per_class: int = 100, classes: int = 10, seed: int = 0) -> NDArray[np.int64]:
    return np.random.default_rng(seed).permutation(np.repeat(np.arange(classes), per_class))


def same(a: Sequence[NDArray[np.int64]], b: Sequence[NDArray[np.int64]]) -> bool:
    return len(a) == len(b) and all(np.array_equal(x, y) for x, y in zip(a, b, strict=True))


def assert_disjoint(samples: Sequence[NDArray[np.int64]], n: int, complete: bool = False) -> None:
    """No sample twice, ascending within a client, and all of them where that is promised."""
    for indices in samples:
        assert indices.dtype == np.int64 and np.all(np.diff(indices) > 0)
    every = np.concatenate(samples)
    assert len(np.unique(every)) == len(every)
    assert every.size == 0 or (every.min() >= 0 and every.max() < n)
    assert not complete or len(every) == n


# Shards


@quick
@given(label_lists, st.integers(1, 12), st.integers(1, 4), seeds)
def test_shards_use_each_sample_once_and_few_labels_a_client(
    labels: NDArray[np.int64], clients: int, shards: int, seed: int
) -> None:
    if clients * shards > len(labels):
        refused(lambda: by_shards(labels, clients, shards, seed), f"{clients} clients", f"{shards} shards")
        return
    samples = by_shards(labels, clients, shards, seed)
    assert len(samples) == clients
    assert_disjoint(samples, len(labels), complete=True)
    size = len(labels) / (clients * shards)
    assert all(shards * np.floor(size) <= len(s) <= shards * np.ceil(size) for s in samples)
    assert same(samples, by_shards(labels, clients, shards, seed))


def test_two_shards_of_half_a_class_hold_at_most_two_labels() -> None:
    labels = digits(100)
    samples = by_shards(labels, 10, 2, seed=3)
    assert all(len(s) == 100 and len(np.unique(labels[s])) <= 2 for s in samples)
    assert not same(samples, by_shards(labels, 10, 2, seed=4))


# Dirichlet


@quick
@given(label_lists, st.integers(1, 8), st.floats(1e-6, 1e6), seeds)
def test_dirichlet_uses_each_sample_once(labels: NDArray[np.int64], clients: int, alpha: float, seed: int) -> None:
    samples = by_dirichlet(labels, clients, alpha, minimum=0, attempts=1, seed=seed)
    assert len(samples) == clients
    assert_disjoint(samples, len(labels), complete=True)
    assert same(samples, by_dirichlet(labels, clients, alpha, 0, 1, seed))


@quick
@given(st.integers(2, 10), st.floats(0.2, 100), st.integers(1, 20), seeds)
def test_dirichlet_keeps_the_minimum_or_says_what_was_reached(
    clients: int, alpha: float, minimum: int, seed: int
) -> None:
    labels = digits(30)
    try:
        samples = by_dirichlet(labels, clients, alpha, minimum, 5, seed)
    except InputError as error:
        for needle in (f"alpha {alpha}", f"{clients} clients", f"minimum of {minimum}", "5 attempts", "at best"):
            assert needle in str(error)
        return
    assert min(map(len, samples)) >= minimum
    assert_disjoint(samples, len(labels), complete=True)


def test_dirichlet_redraws_until_everybody_has_the_minimum() -> None:
    labels = digits(100)
    first = by_dirichlet(labels, 10, 0.3, 0, 1, seed=0)
    assert min(map(len, first)) < 40
    assert min(map(len, by_dirichlet(labels, 10, 0.3, 40, 1000, seed=0))) >= 40


def test_dirichlet_seeds_differ() -> None:
    labels = digits(100)
    assert not same(by_dirichlet(labels, 5, 1.0, 0, 1, seed=0), by_dirichlet(labels, 5, 1.0, 0, 1, seed=1))


@pytest.mark.parametrize("alpha", [5e-324, 1e-300, 1e-20, 1e-3, 1e300, 1.7e308])
@pytest.mark.filterwarnings("error")
def test_extreme_alpha_is_its_limit(alpha: float) -> None:
    labels = digits(100)
    largest = []
    for seed in range(20):
        samples = by_dirichlet(labels, 10, alpha, 0, 1, seed)
        assert_disjoint(samples, len(labels), complete=True)
        largest.append(np.max([np.bincount(labels[s], minlength=10) for s in samples], axis=0))
    if alpha > 1:
        assert np.all(np.equal(largest, 10))
    elif alpha < 1e-3:
        assert np.all(np.equal(largest, 100))
    else:
        # A second client gets anything of a label with probability about α (K − 1) ln 200 = 0.05.
        assert 0.9 < np.mean(np.equal(largest, 100)) < 1


def test_small_alpha_ends_with_an_error_not_a_loop() -> None:
    refused(
        lambda: by_dirichlet(digits(100), 50, 1e-3, 10, 20, 0),
        *("alpha 0.001", "50 clients", "minimum of 10", "20 attempts", "at best 0"),
    )
    refused(lambda: by_dirichlet(digits(1), 5, 1.0, 10, 10**12, 0), "there are 10 in all")


def test_proportions_follow_the_dirichlet_distribution() -> None:
    # The first of K proportions is Beta(α, (K − 1) α), whatever NumPy's own sampler does.
    for alpha in (0.05, 0.5, 1.0, 20.0):
        draw = np.random.default_rng(5)
        first = np.array([schemes._proportions(4, alpha, draw)[0] for _ in range(4000)])
        assert stats.kstest(first, stats.beta(alpha, 3 * alpha).cdf).pvalue > 1e-3


def test_dirichlet_label_marginals_are_plausible() -> None:
    # Client 0's share of a label has mean 1/K and variance (1/K)(1 − 1/K)/(Kα + 1); 2,000 labels in 10 draws.
    clients, alpha, per_class = 5, 0.5, 200
    labels = digits(per_class, 200)
    shares = np.concatenate(
        [
            np.bincount(labels[by_dirichlet(labels, clients, alpha, 0, 1, seed)[0]], minlength=200) / per_class
            for seed in range(10)
        ]
    )
    variance = 0.2 * 0.8 / (clients * alpha + 1)
    assert abs(shares.mean() - 0.2) < 4 * np.sqrt(variance / len(shares))
    assert shares.var() == pytest.approx(variance, rel=0.15)


@pytest.mark.parametrize("alpha", [0.0, -1.0, float("nan"), float("inf")])
def test_dirichlet_refuses_other_alpha(alpha: float) -> None:
    refused(lambda: by_dirichlet(digits(), 5, alpha, 0, 1, 0), "alpha is", "positive")


# Writers


@quick
@given(st.lists(st.integers(0, 7), min_size=1, max_size=80).map(np.array), st.integers(1, 12))
def test_writers_are_clients_unless_they_wrote_little(writers: NDArray[np.int64], minimum: int) -> None:
    names = [f"w{k}" for k in range(9)]
    counts = np.bincount(writers, minlength=9)
    if counts.max() < minimum:
        refused(lambda: by_writer(writers, names, minimum), f"minimum of {minimum}", "9 writers", str(counts.max()))
        return
    clients, samples = by_writer(writers, names, minimum)
    assert clients == tuple(name for name, count in zip(names, counts, strict=True) if count >= minimum)
    assert_disjoint(samples, len(writers))
    for client, indices in zip(clients, samples, strict=True):
        assert np.array_equal(indices, np.flatnonzero(writers == int(client[1:])))


# Groups

GROUPS = structures.overlapping()
STRUCTURES = [
    structures.single(7),
    GROUPS,
    structures.string(6, 3, 1),
    structures.ring(4, 3, 1),
    structures.star(4, 3, 1),
    structures.grid(3, 3, 4, 1),
    structures.random(5, 4, 12),
    structures.disjoint(3, 4),
]


@quick
@given(st.sampled_from(STRUCTURES), st.integers(1, 10), st.data(), seeds)
def test_groups_classes_stand_on_a_circle(groups: Groups, size: int, data: st.DataObject, seed: int) -> None:
    overlap = data.draw(st.integers(0, size))
    of_group = group_classes(digits(2), groups, size, overlap, seed)
    assert tuple(of_group) == groups.names
    assert all(len(set(classes)) == size for classes in of_group.values())
    rows = list(of_group.values())
    for left, right in pairwise(rows):
        assert right[:overlap] == left[size - overlap :]
        # On a circle too short for both, they also meet at the other end.
        assert len(set(left) & set(right)) == max(overlap, 2 * size - 10)


@quick
@given(st.sampled_from(STRUCTURES), st.integers(1, 10), st.integers(2, 25), st.data(), seeds)
def test_workers_have_their_own_groups_classes_only(
    groups: Groups, size: int, each: int, data: st.DataObject, seed: int
) -> None:
    labels = digits(100)
    overlap = data.draw(st.integers(0, size - 1))
    of_group = group_classes(labels, groups, size, overlap, seed)
    try:
        samples = by_groups(labels, groups, size, overlap, each, seed)
    except InputError:
        # 100 of a class suffice unless several workers share very few classes.
        assert len(groups.workers) * each > 100
        return
    assert_disjoint(samples, len(labels))
    assert len(samples) == len(groups.workers)
    for worker, indices in zip(groups.workers, samples, strict=True):
        own = {c for name, members in groups.members.items() if worker in members for c in of_group[name]}
        assert len(indices) == each
        assert set(labels[indices].tolist()) <= own
    assert same(samples, by_groups(labels, groups, size, overlap, each, seed))


def test_quotas_are_equal_while_the_supply_lasts() -> None:
    labels = digits(500)
    of_group = group_classes(labels, GROUPS, 4, 2, seed=1)
    for worker, indices in zip(GROUPS.workers, by_groups(labels, GROUPS, 4, 2, 61, seed=1), strict=True):
        own = {c for name, members in GROUPS.members.items() if worker in members for c in of_group[name]}
        counts = np.bincount(labels[indices], minlength=10)[sorted(own)]
        assert counts.max() - counts.min() == (1 if 61 % len(own) else 0)


def test_a_class_that_runs_out_is_replaced_by_the_others() -> None:
    labels = np.repeat([0, 1, 2], [5, 100, 100])
    groups = structures.single(2)
    for indices in by_groups(labels, groups, 3, 0, 60, seed=0):
        assert len(indices) == 60
    first, second = (np.bincount(labels[s], minlength=3) for s in by_groups(labels, groups, 3, 0, 60, seed=0))
    assert first[0] == 5 and second[0] == 0
    assert abs(first[1] - first[2]) <= 1 and second.tolist() == [0, 30, 30]


def test_workers_with_few_classes_are_served_first() -> None:
    # Worker 1 may take from both groups; worker 2 has one class, which just suffices for it.
    groups = Groups({"A": ("1", "2"), "B": ("1",)})
    labels = np.repeat([0, 1], [40, 40])
    bridge, bound = by_groups(labels, groups, 1, 0, 40, seed=0)
    assert len(np.unique(labels[bound])) == len(np.unique(labels[bridge])) == 1
    assert_disjoint((bridge, bound), 80, complete=True)


def test_too_little_supply_names_worker_labels_and_numbers() -> None:
    labels = np.repeat([3, 8], [50, 50])
    refused(
        lambda: by_groups(labels, structures.single(3), 2, 0, 40, 0),
        *("worker '3'", "20 samples of labels 3, 8", "samples_per_worker, which is 40"),
    )


@pytest.mark.parametrize(
    ("size", "overlap", "each", "needle"),
    [
        (0, 0, 10, "classes_per_group is 0"),
        (11, 0, 10, "classes_per_group is 11"),
        (4, 5, 10, "class_overlap is 5"),
        (4, -1, 10, "class_overlap is -1"),
        (4, 2, 0, "samples_per_worker is 0"),
    ],
)
def test_groups_refuse_numbers_out_of_range(size: int, overlap: int, each: int, needle: str) -> None:
    refused(lambda: by_groups(digits(), GROUPS, size, overlap, each, 0), needle, "expected")


def test_the_draws_of_the_steps_are_not_the_same_stream() -> None:
    streams = [step_generator(step, 0, client).integers(2**62) for step in Step for client in (0, 1)]
    assert len(set(streams)) == len(streams)


# Split


@quick
@given(
    st.lists(st.integers(2, 40), min_size=1, max_size=8),
    st.floats(0, 1, exclude_min=True, exclude_max=True),
    seeds,
)
def test_split_keeps_all_and_leaves_no_side_empty(sizes: list[int], fraction: float, seed: int) -> None:
    samples = np.split(np.arange(sum(sizes)), np.cumsum(sizes)[:-1])
    clients = [f"c{k}" for k in range(len(sizes))]
    done = split(samples, clients, fraction, seed)
    assert done.clients == tuple(clients)
    assert_disjoint(done.train + done.test, sum(sizes), complete=True)
    for indices, train, test in zip(samples, done.train, done.test, strict=True):
        assert np.array_equal(np.sort(np.concatenate([train, test])), indices)
        assert len(train) >= 1 and len(test) >= 1
        assert abs(len(train) - fraction * len(indices)) <= 0.5 + 1e-9 or min(len(train), len(test)) == 1
    again = split(samples, clients, fraction, seed)
    assert same(done.train, again.train) and same(done.test, again.test)


def test_split_of_a_client_does_not_depend_on_others_but_on_place_and_seed() -> None:
    a, b = np.arange(50), np.arange(50, 100)
    both = split([a, b], "ab", 0.8, seed=0)
    assert np.array_equal(both.train[0], split([a], "a", 0.8, seed=0).train[0])
    assert not np.array_equal(both.train[0], both.train[1] - 50)
    assert not same(both.train, split([a, b], "ab", 0.8, seed=1).train)
    assert [len(s) for s in both.train + both.test] == [40, 40, 10, 10]


@pytest.mark.parametrize("n", [0, 1])
def test_split_refuses_clients_with_too_little(n: int) -> None:
    refused(lambda: split([np.arange(5), np.arange(n)], ["Ann", "Ben"], 0.8, 0), "'Ben'", f"has {n} sample")


@pytest.mark.parametrize("fraction", [0.0, 1.0, -0.1, float("nan")])
def test_split_refuses_other_fractions(fraction: float) -> None:
    refused(lambda: split([np.arange(5)], ["Ann"], fraction, 0), "train_fraction")


# The file

SPEC: dict[str, Any] = {"scheme": "shards", "clients": 4, "seed": 0, "alpha": 0.1}
LABELS = digits(20)


def example() -> Partition:
    return split(by_shards(LABELS, 4, 2, 0), ["1", "2", "3", 'Ü, "4"'], 0.8, 0)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    example().write(tmp_path, SPEC, LABELS)
    return tmp_path / "partition.safetensors"


def test_round_trip(file: Path) -> None:
    read = read_partition(file, samples=200)
    assert read.clients == example().clients
    assert same(read.train, example().train) and same(read.test, example().test)
    assert all(s.dtype == np.int64 for s in read.train + read.test)


def test_equal_partitions_give_equal_bytes_and_leave_no_other_file(file: Path, tmp_path: Path) -> None:
    example().write(tmp_path / "again", dict(reversed(SPEC.items())), LABELS)
    for name in ("partition.safetensors", "histogram.csv"):
        assert (tmp_path / "again" / name).read_bytes() == (tmp_path / name).read_bytes()
    assert len(list((tmp_path / "again").iterdir())) == 2


def test_metadata_says_how_it_was_made(file: Path) -> None:
    raw = file.read_bytes()
    metadata = json.loads(raw[8 : 8 + int.from_bytes(raw[:8], "little")])["__metadata__"]
    assert list(metadata) == ["fedpapers"]
    head = json.loads(metadata["fedpapers"])
    assert head["spec"] == SPEC and head["format"] == 1 and head["clients"] == list(example().clients)


def test_histogram_counts_every_sample(file: Path) -> None:
    with (file.parent / "histogram.csv").open(newline="", encoding="utf-8") as table:
        rows = list(csv.DictReader(table))
    assert list(rows[0]) == ["client", "split", "label", "samples"]
    counted = {(r["client"], r["split"], int(r["label"])): int(r["samples"]) for r in rows}
    made = example()
    for name, sets in (("train", made.train), ("test", made.test)):
        for client, indices in zip(made.clients, sets, strict=True):
            for label in range(10):
                assert counted.pop((client, name, label), 0) == np.sum(LABELS[indices] == label)
    assert not counted


def test_empty_sides_survive(tmp_path: Path) -> None:
    empty = np.empty(0, dtype=np.int64)
    Partition(("a", "b"), (empty, np.array([1])), (np.array([0]), empty)).write(tmp_path, {}, np.array([0, 1]))
    read = read_partition(tmp_path / "partition.safetensors")
    assert [s.tolist() for s in read.train + read.test] == [[], [1], [0], []]


def test_a_partition_needs_sets_for_every_client() -> None:
    with pytest.raises(ValueError, match="2 clients, 1 train"):
        Partition(("a", "b"), (np.arange(1),), (np.arange(1), np.arange(1)))


def test_every_flipped_bit_is_noticed(file: Path) -> None:
    raw = file.read_bytes()
    draw = np.random.default_rng(0)
    header = 8 + int.from_bytes(raw[:8], "little")
    places = [*range(header), *draw.integers(header, len(raw), 100)]
    for place in places:
        changed = bytearray(raw)
        changed[place] ^= 1 << int(draw.integers(8))
        file.write_bytes(changed)
        refused(lambda: read_partition(file), str(file))


def test_every_truncation_is_noticed(file: Path) -> None:
    raw = file.read_bytes()
    for length in [*range(0, len(raw), 37), len(raw) - 1]:
        file.write_bytes(raw[:length])
        refused(lambda: read_partition(file), str(file))
    file.write_bytes(raw + b"\0")
    refused(lambda: read_partition(file), str(file))


def forge(file: Path, head: dict[str, Any] | None = None, **arrays: Any) -> None:
    """Another file with a right checksum, as a faulty writer could leave it."""
    raw = file.read_bytes()
    old = json.loads(json.loads(raw[8 : 8 + int.from_bytes(raw[:8], "little")])["__metadata__"]["fedpapers"])
    del old["sha256"]
    new, content = old | (head or {}), load_file(file) | arrays
    new["sha256"] = partition._checksum(new, content)
    save_file(content, file, {"fedpapers": json.dumps(new)})


def ints(*values: int) -> NDArray[np.int64]:
    return np.array(values, dtype=np.int64)


TRAIN = np.concatenate(example().train)


@pytest.mark.parametrize(
    ("head", "arrays", "needle"),
    [
        ({"format": 2}, {}, "version is 2"),
        ({"format": None}, {}, "version is None"),
        ({"samples": 150}, {}, "expected 0 to 149"),
        ({}, {"train": np.where(TRAIN == 199, 200, TRAIN)}, "to 200; expected 0 to 199"),
        ({}, {"train": np.where(TRAIN == 0, -1, TRAIN)}, "from -1"),
        ({}, {"test": np.r_[np.concatenate(example().test)[:-1], TRAIN[0]]}, "twice"),
        ({}, {"train_offsets": ints(0, 10, 5, 20, 160)}, "train_offsets"),
        ({}, {"train_offsets": ints(0, 160)}, "train_offsets"),
        ({}, {"test_offsets": ints(0, 10, 20, 30, 41)}, "test_offsets"),
        ({}, {"test_offsets": ints(1, 10, 20, 30, 40)}, "test_offsets"),
        ({}, {"test_offsets": ints()}, "test_offsets"),
        ({}, {"more": ints(1)}, "not a partition"),
        ({}, {"train": TRAIN.astype(np.float64)}, "not a partition"),
        ({}, {"train": TRAIN.reshape(2, -1)}, "not a partition"),
    ],
)
def test_wrong_contents_are_refused(file: Path, head: dict[str, Any], arrays: dict[str, Any], needle: str) -> None:
    assert TRAIN.min() == 0 and TRAIN.max() == 199, "the cases above replace these two"
    forge(file, head, **arrays)
    refused(lambda: read_partition(file), str(file), needle, "expected")


def test_other_files_are_refused(file: Path, tmp_path: Path) -> None:
    refused(lambda: read_partition(tmp_path / "none"), "no such file")
    refused(lambda: read_partition(tmp_path), "no such file")
    save_file(load_file(file), file)
    refused(lambda: read_partition(file), "not a partition")
    file.write_text("hello")
    refused(lambda: read_partition(file), "corrupt")


def test_a_partition_of_another_data_set_is_refused(file: Path) -> None:
    refused(lambda: read_partition(file, samples=199), "200 samples", "one of 199")
