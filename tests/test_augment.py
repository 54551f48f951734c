"""Devices, arrivals, the generator, the devices' network and the judgement of generated digits."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import cdist
from test_mnist import idx

from fedpapers.augment.arrivals import arrivals, layout_targets
from fedpapers.augment.cgan import Discriminator, Gan, Generator, generate, oversample, train
from fedpapers.augment.checkpoint import read_generator, read_judge, read_state, write_judge, write_state
from fedpapers.augment.classifier import answers, features, network, train_network
from fedpapers.augment.quality import harmonic_mean, inside, quality
from fedpapers.augment.seeds import compress_seeds, read_seeds, write_seeds
from fedpapers.data.devices import deal_devices, read_devices
from fedpapers.data.format import read_dataset
from fedpapers.data.mnist import prepare_mnist
from fedpapers.errors import InputError
from fedpapers.experiment.augmentation_spec import DevicesRecipe
from fedpapers.experiment.prepare_devices import make_devices
from fedpapers.relay.compression import zeroed_pixels
from fedpapers.relay.layouts import draw_layouts
from fedpapers.relay.seeds import Seeds

CPU = torch.device("cpu")

# Devices


@settings(max_examples=60, deadline=None)
@given(
    per_label=st.integers(30, 60),
    targets=st.lists(st.integers(0, 9), min_size=1, max_size=6),
    many=st.integers(4, 8),
    test=st.integers(0, 5),
    judged=st.integers(0, 5),
    seed=st.integers(0, 2**63 - 1),
)
def test_devices_are_disjoint_as_far_as_the_data_last(per_label, targets, many, test, judged, seed):
    labels = np.random.default_rng(0).permutation(np.repeat(np.arange(10), per_label))
    devices = deal_devices(labels, targets, 4, many, test, judged, seed)
    for device, target in enumerate(targets):
        held = devices.of(device)
        assert np.bincount(labels[held], minlength=10).tolist() == [4 if k == target else many for k in range(10)]
        assert len(set(held.tolist())) == len(held)
        for label in range(10):
            assert (labels[devices.of_label(device, label)] == label).all()
    reserved = [*devices.test.tolist(), *devices.held_out.tolist()]
    assert np.bincount(labels[devices.test], minlength=10).tolist() == [test] * 10
    assert np.bincount(labels[devices.held_out], minlength=10).tolist() == [judged] * 10
    assert len(set(reserved)) == len(reserved)
    assert not set(reserved) & set(devices.samples.tolist())
    demand = devices.counts.sum(axis=0)
    supply = per_label - test - judged
    assert devices.shared == np.maximum(0, demand - supply).sum()
    assert len(set(devices.samples.tolist())) == np.minimum(demand, supply).sum()


def test_what_no_device_has_is_the_same_for_all_seeds_and_numbers():
    labels = np.repeat(np.arange(10), 50)
    first, second = deal_devices(labels, [1, 2], 4, 8, 5, 6, seed=1), deal_devices(labels, [3] * 4, 4, 9, 5, 6, seed=2)
    assert (first.test == second.test).all() and (first.held_out == second.held_out).all()
    assert first.samples[:8].tolist() != second.samples[:8].tolist()


def test_a_test_part_of_its_own_is_left_alone():
    labels = np.tile(np.arange(10), 30)
    devices = deal_devices(labels, [0, 5], 4, 6, np.arange(200, 300), 3, seed=0)
    assert devices.test.tolist() == list(range(200, 300))
    assert max(devices.samples.max(), devices.held_out.max()) < 200


def recipe(**changes):
    content = {
        "dataset_name": "mnist", "dataset": {"kind": "mnist", "source": "embedded"}, "targets": [0, 5],
        "samples_per_label": 5, "judge_samples": 4, "test_samples": None, "seed": 0,
    }  # fmt: skip
    return DevicesRecipe.model_validate(content | changes)


def test_the_test_part_of_a_folder_tests_all_devices(tmp_path, digits):
    dataset = read_dataset(digits)
    for split, rows in (("train", slice(0, None, 2)), ("t10k", slice(1, None, 20))):
        for kind, array in (("images-idx3", dataset.images[rows]), ("labels-idx1", dataset.labels[rows])):
            (tmp_path / "raw").mkdir(exist_ok=True)
            (tmp_path / "raw" / f"{split}-{kind}-ubyte").write_bytes(idx(array.astype(np.uint8)))
    prepare_mnist("folder", tmp_path / "mnist", tmp_path / "raw")
    devices = make_devices(recipe(), read_dataset(tmp_path / "mnist"))
    assert devices.test.tolist() == list(range(2500, 2750)) and devices.samples.max() < 2500


def test_a_data_set_without_a_test_part_is_one_line(digits):
    with pytest.raises(InputError, match="no training and test part of its own; expected both, or test_samples"):
        make_devices(recipe(), read_dataset(digits))


def test_too_few_samples_are_one_line():
    with pytest.raises(InputError, match=r"devices: 20 samples of label 0; expected at least 26: 10 for testing"):
        deal_devices(np.repeat(np.arange(10), 20), [1], 4, 16, 5, 5, seed=0)


def test_devices_on_disk(tmp_path, digits):
    dataset = read_dataset(digits)
    made = deal_devices(dataset.labels, layout_targets(25, 0), 4, 16, 50, 50, seed=0)
    assert made.shared == 0
    made.write(tmp_path, dataset.labels, "digits", [str(k) for k in range(10)])
    file = tmp_path / "devices.safetensors"
    again = read_devices(file, 5000)
    assert all(
        (getattr(again, name) == getattr(made, name)).all() for name in ("samples", "counts", "test", "held_out")
    )
    histogram = (tmp_path / "histogram.csv").read_text().splitlines()
    assert histogram[0] == "client,split,label,samples" and len(histogram) == 1 + 25 * 10 + 20
    before = file.read_bytes()
    made.write(tmp_path, dataset.labels, "digits", [str(k) for k in range(10)])
    assert file.read_bytes() == before
    with pytest.raises(InputError, match="expected a data set of 4999"):
        read_devices(file, 4999)
    file.write_bytes(before[:-9] + bytes([before[-9] ^ 1]) + before[-8:])
    with pytest.raises(InputError, match="corrupt"):
        read_devices(file, 5000)
    file.unlink()
    with pytest.raises(InputError, match="no such file"):
        read_devices(file, 5000)


# Arrivals and seeds


def test_without_loss_arrivals_are_those_of_the_routes():
    layout = draw_layouts(1, 10, 1, 0)
    (whole,) = arrivals(layout, 1, 4, 0.0, [None], 0)
    expected = {
        int(number)
        for device in range(10)
        for label in (layout.targets[0, device], layout.dummies[0, device, 0])
        for number in Seeds(4).number(np.array([device]), np.array([label]))[0]
    }
    assert set(whole.seeds) == expected
    assert whole.label_privacy == 0.5


def test_an_earlier_deadline_brings_less_and_the_layout_stays():
    layout = draw_layouts(1, 25, 1, 0)
    found = list(arrivals(layout, 3, 4, 0.0, [1, 25, 400, None], 0))
    counts = [len(one.seeds) for one in found]
    assert counts == sorted(counts) and counts[0] < counts[-1]
    assert found[2] == found[3]
    assert len({(one.reference, one.target) for one in found}) == 1
    assert [len(one.labels) for one in found] == counts


def test_a_seed_is_the_same_image_wherever_it_arrives(digits):
    dataset = read_dataset(digits)
    devices = deal_devices(dataset.labels, [3, 5], 4, 8, 5, 5, seed=0)
    all_numbers = list(range(2 * 10 * 4))
    for rho in (0.0, 0.15):
        images, labels = compress_seeds(dataset.images, devices, all_numbers, 4, rho, 7)
        some, some_labels = compress_seeds(dataset.images, devices, [2, 13, 77], 4, rho, 7)
        assert (some == images[[2, 13, 77]]).all() and (some_labels == labels[[2, 13, 77]]).all()
        original = dataset.images[devices.of_label(0, 1)[1]]
        compressed = images[5]
        kept = compressed == original
        assert (compressed[~kept] == 0).all() and (~kept).sum() <= zeroed_pixels(rho)
    assert labels.tolist() == [label for _ in range(2) for label in range(10) for _ in range(4)]


def test_seeds_on_disk(tmp_path):
    images = np.zeros((2, 28, 28), dtype=np.uint8)
    images[0, :3, :5] = 9
    write_seeds(tmp_path, images, np.array([4, 4]), 0.0, {"data": "digits"})
    about = json.loads((tmp_path / "about.json").read_text())
    assert about["csr_bits"] == 15 * 13 + 2 * 290 and about["labels"][4] == 2
    read, labels = read_seeds(tmp_path / "seeds.safetensors")
    assert (read == images).all() and labels.tolist() == [4, 4]
    (tmp_path / "seeds.safetensors").write_bytes(b"x")
    with pytest.raises(InputError, match="not the file that was written"):
        read_seeds(tmp_path / "seeds.safetensors")


# The generator


def test_the_generator_has_the_papers_number_of_weights():
    layers = Generator().layers.state_dict()
    assert sum(value.numel() for value in layers.values() if value.is_floating_point()) == 1_493_520


def test_the_classifier_has_the_papers_number_of_weights():
    assert sum(parameter.numel() for parameter in network().parameters()) == 1_199_776


def test_the_discriminator_is_the_described_one():
    sizes = [tuple(parameter.shape) for name, parameter in Discriminator().named_parameters() if "weight" in name]
    assert sizes == [(10, 784), (512, 784), (512, 512), (512, 512), (1, 512)]


@pytest.fixture(scope="module")
def few(digits):
    dataset = read_dataset(digits)
    chosen = np.arange(0, 5000, 250)
    return np.asarray(dataset.images[chosen]), np.asarray(dataset.labels[chosen])


def trained(few, tmp_path, cuts, seed=3):
    """The bytes of the state after six steps, cut at some of them and continued from disk."""
    images, labels = oversample(*few, 2, seed)
    first = 0
    for last in (*cuts, 6):
        gan = Gan.new(seed, 5e-4, CPU)
        if first:
            read_state(tmp_path / f"step-{first:06d}.safetensors", gan, first, "hash")
        steps = [step for step, _ in train(gan, images, labels, 8, seed, last)]
        assert steps == list(range(first + 1, last + 1))
        first = last
        write_state(tmp_path / f"step-{last:06d}.safetensors", gan, {"hash": "hash"})
    return (tmp_path / "step-000006.safetensors").read_bytes()


def test_cuts_do_not_change_a_byte(few, tmp_path):
    whole = trained(few, tmp_path / "whole", ())
    assert trained(few, tmp_path / "cut", (2, 3)) == whole
    assert trained(few, tmp_path / "other", (), seed=4) != whole


def test_a_state_of_something_else_is_refused(few, tmp_path):
    trained(few, tmp_path, ())
    path = tmp_path / "step-000006.safetensors"
    assert isinstance(read_generator(path, 6, "hash"), Generator)
    for step, hash in ((6, "other"), (5, "hash")):
        with pytest.raises(InputError, match="expected"):
            read_generator(path, step, hash)
    path.write_bytes(path.read_bytes()[:-1] + b"?")
    with pytest.raises(InputError, match="not the file that was written"):
        read_generator(path, 6, "hash")
    path.with_suffix(".json").write_text("{")
    with pytest.raises(InputError, match="missing or damaged"):
        read_generator(path, 6, "hash")


def test_training_learns_its_labels(few):
    chosen = few[1] < 2
    digits, wanted = few[0][chosen], few[1][chosen]
    gan = Gan.new(0, 1e-3, CPU)
    for _ in train(gan, *oversample(digits, wanted, 5, 0), 16, 0, 200):
        pass
    every = np.arange(2).repeat(20)
    made = generate(gan.networks["generator"], every, 0)
    assert made.shape == (40, 28, 28) and made.dtype == np.uint8
    means = [
        [pictures[labels == k].mean(axis=0).ravel() for k in (0, 1)]
        for pictures, labels in ((made, every), (digits, wanted))
    ]
    assert cdist(*means, "cosine").argmin(axis=1).tolist() == [0, 1]
    assert (generate(gan.networks["generator"], every, 0) == made).all()


def test_oversampling_keeps_the_originals_and_moves_the_copies_a_little(few):
    images, labels = oversample(*few, 3, 0)
    assert images.shape == (len(few[0]) * 4, 784) and labels.tolist() == few[1].tolist() * 4
    assert torch.allclose(images[: len(few[0])], torch.from_numpy(few[0].reshape(-1, 784)).float() / 127.5 - 1)
    moved = images.reshape(4, len(few[0]), 784)
    assert images.min() >= -1 and images.max() <= 1
    assert not torch.equal(moved[0], moved[1]) and not torch.equal(moved[1], moved[2])
    ink = (moved + 1).sum(dim=2)
    assert (ink[1:] / ink[0]).sub(1).abs().max() < 0.35
    assert len(oversample(*few, 0, 0)[0]) == len(few[0])


# The devices' network


def test_the_network_learns_and_repeats(few, tmp_path):
    learnt = train_network(*few, epochs=15, batch=8, learning_rate=1e-3, seed=0)
    assert (answers(learnt, few[0]) == few[1]).mean() > 0.9
    assert features(learnt, few[0]).shape == (len(few[0]), 128)
    write_judge(tmp_path / "judge.safetensors", learnt)
    read = read_judge(tmp_path / "judge.safetensors")
    assert (answers(read, few[0]) == answers(learnt, few[0])).all()
    change = (tmp_path / "judge.safetensors").read_bytes()
    (tmp_path / "judge.safetensors").write_bytes(change[:-7] + bytes([change[-7] ^ 1]) + change[-6:])
    with pytest.raises(InputError, match="not the network that was written"):
        read_judge(tmp_path / "judge.safetensors")
    one, two = (train_network(*few, 1, 8, 1e-3, 0, client=client) for client in (1, 1))
    assert all(torch.equal(a, b) for a, b in zip(one.parameters(), two.parameters(), strict=True))


# Judgement


def brute_inside(points, manifold):
    """Improved precision by its definition, with loops."""
    radii = [sorted(np.linalg.norm(manifold - one, axis=1))[3] for one in manifold]
    hits = [
        any(np.linalg.norm(point - one) <= radius for one, radius in zip(manifold, radii, strict=True))
        for point in points
    ]
    return sum(hits) / len(hits)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 4), st.integers(4, 12), st.integers(4, 12), st.floats(0, 2))
def test_precision_and_recall_are_the_definition(seed, dimensions, n, m, shift):
    draw = np.random.default_rng(seed)
    real, made = draw.normal(size=(n, dimensions)), draw.normal(size=(m, dimensions)) + shift
    assert inside(made, real) == pytest.approx(brute_inside(made, real))
    assert inside(real, made) == pytest.approx(brute_inside(real, made))


def test_a_class_that_is_not_generated_has_no_recall():
    draw = np.random.default_rng(0)
    points, labels = draw.normal(size=(40, 3)), np.repeat([0, 1], 20)
    whole = quality(points, labels, points, labels)
    assert whole == (1.0, 1.0, 1.0)
    half = quality(points, labels, points[:20], labels[:20])
    assert half[:2] == (1.0, 0.5) and half.f1 == pytest.approx(2 / 3)
    assert quality(points, labels, points[:0], labels[:0]) == (0.0, 0.0, 0.0)


@given(st.floats(0, 1), st.floats(0, 1))
def test_f1_lies_between_precision_and_recall(precision, recall):
    f1 = harmonic_mean(precision, recall)
    assert f1 >= 0 and (f1 == 0 or min(precision, recall) - 1e-12 <= f1 <= max(precision, recall) + 1e-12)


def test_messages_are_one_line():
    with pytest.raises(InputError) as caught:
        deal_devices(np.repeat(np.arange(10), 3), [1], 4, 16, 5, 5, seed=0)
    assert re.fullmatch(r"[^\n]+", str(caught.value))
