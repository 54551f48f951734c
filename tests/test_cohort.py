"""Local training of a whole cohort against the plain loop, client by client."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from networks import PUBLISHED
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.nn.utils import parameters_to_vector, vector_to_parameters

from fedpapers.federated import cohort as engine
from fedpapers.federated import low_rank
from fedpapers.federated.cohort import CohortResult, Learner, Participation, train_cohort
from fedpapers.federated.low_rank import _clipped, _Steps
from fedpapers.models import Layout, build, initial_vector
from fedpapers.privacy.mechanism import Mechanism

SIZES = {"mnist-cnn": ((28, 28, 1), 10), "linear": ((28, 28, 1), 10), "femnist-cnn": ((28, 28, 1), 62),
         "celeba-cnn": ((84, 84, 3), 2)}  # fmt: skip
TOLERANCE = {torch.float32: 1e-4, torch.float64: 1e-10}
RATE = 0.1


def tiny(classes: int) -> nn.Module:
    """A network with everything that the engine's ways have to deal with, in seconds."""
    return nn.Sequential(
        nn.Conv2d(1, 4, 3, padding=1),
        nn.GroupNorm(2, 4),
        nn.MaxPool2d(2),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(36, 24),
        nn.ReLU(),
        nn.Linear(24, classes),
    )


def plain(network: nn.Module, learner: Learner, one: Participation) -> tuple[Tensor, float]:
    """The trained vector and the first loss, by PyTorch's own SGD."""
    vector = torch.cat([one.start, one.private])
    names = (name for name, _ in learner.model.named_parameters())
    own = dict(zip(names, network.to(vector.dtype).parameters(), strict=True))
    parameters = [own[name] for name in learner.layout.shapes]
    vector_to_parameters(vector.clone(), parameters)
    sgd, losses = torch.optim.SGD(parameters, lr=RATE), []
    for images, labels in one.batches():
        sgd.zero_grad()
        loss = cross_entropy(network(images.contiguous()), labels)
        loss.backward()
        sgd.step()
        losses.append(loss.item())
    return parameters_to_vector(parameters).detach(), losses[0]


def check(network: nn.Module, learner: Learner, members: list[Participation], norm: float) -> CohortResult:
    """Compare the engine's result with the plain loop's."""
    clip = Mechanism(1.0, norm).clip
    groups, start = max(one.group for one in members) + 1, members[0].start
    like, shared = start.new_zeros(groups, len(start)), learner.layout.shared_size
    result = train_cohort(learner, members, clip, like)
    bound, expected = TOLERANCE[start.dtype], torch.zeros_like(like)
    for one, private, long, loss in zip(members, result.private, result.norms, result.losses, strict=True):
        trained, first = plain(network, learner, one)
        update = trained[:shared] - one.start
        length = update.double().norm().item()
        expected[one.group] += clip(update)[0]
        assert long == pytest.approx(length, rel=bound)
        assert loss == pytest.approx(first, rel=bound)
        if len(private):
            assert relative(private - one.private, trained[shared:] - one.private) <= bound
    assert relative(result.sums, expected) <= bound
    return result


def relative(got: Tensor, expected: Tensor) -> float:
    """The largest error over the largest value."""
    return ((got - expected).abs().max() / expected.abs().max()).item()


def cohort_of(
    layout: Layout,
    image: tuple[int, ...],
    classes: int,
    places: list[tuple[int, int, list[int]]],
    dtype: torch.dtype = torch.float32,
    seed: int = 0,
) -> list[Participation]:
    """Participations (group, start model, batch sizes) on random images."""
    draw = np.random.default_rng(seed)
    starts = [initial_vector(layout, draw).to(dtype) for _ in range(1 + max(model for _, model, _ in places))]
    shared = [start[: layout.shared_size] for start in starts]
    cohort = []
    for client, (group, model, sizes) in enumerate(places):
        batches = [
            (torch.from_numpy(draw.random((size, *image))).to(dtype).permute(0, 3, 1, 2),
             torch.from_numpy(draw.integers(0, classes, size)))
            for size in sizes
        ]  # fmt: skip
        private = starts[model][layout.shared_size :] * (1 + 0.1 * client)
        cohort.append(Participation(group, client, shared[model], private, partial(list, batches)))
    return cohort


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("private", [(), ("last",)])
@pytest.mark.parametrize("steps", [1, 3])
@pytest.mark.parametrize("model", SIZES)
def test_every_model_trains_as_in_the_plain_loop(
    model: str, steps: int, private: tuple[str, ...], dtype: torch.dtype
) -> None:
    if model == "linear" and private:
        return  # nothing is left to share
    image, classes = SIZES[model]
    network = build(model, classes)
    layout = Layout.of(network, private)
    places = [(0, 0, [4] * steps), (0, 0, [2] * steps), (1, 1, [3] * steps), (1, 0, [4] * steps)]
    members = cohort_of(layout, image, classes, places, dtype)
    check(PUBLISHED[model](classes), Learner(network, layout, RATE), members, 0.15)


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("model", ["mnist-cnn", "femnist-cnn"])
def test_twenty_steps(model: str, dtype: torch.dtype) -> None:
    image, classes = SIZES[model]
    network = build(model, classes)
    layout = Layout.of(network)
    members = cohort_of(layout, image, classes, [(0, 0, [2] * 20)], dtype)
    check(PUBLISHED[model](classes), Learner(network, layout, RATE), members, 0.3)


@pytest.fixture
def threads() -> Iterator[Callable[[int], None]]:
    """Sets the number of threads for the test."""
    before = torch.get_num_threads()
    yield torch.set_num_threads
    torch.set_num_threads(before)


@pytest.mark.parametrize("model", SIZES)
def test_clients_on_threads_of_their_own(model: str, threads: Callable[[int], None]) -> None:
    image, classes = SIZES[model]
    network = build(model, classes)
    learner = Learner(network, Layout.of(network, () if model == "linear" else ("last",)), RATE)
    places = [(k % 2, 0, [1 + k % 3] * (2 if k < 10 else 1)) for k in range(13)]
    members = cohort_of(learner.layout, image, classes, places, torch.float64)
    threads(1)
    alone = check(PUBLISHED[model](classes), learner, members, 0.15)
    threads(3)
    found = check(PUBLISHED[model](classes), learner, members, 0.15)
    assert torch.get_num_threads() == 3 and len({id(one.model) for one in learner.twins(3)}) == 3
    again = train_cohort(learner, members[::-1], Mechanism(1.0, 0.15).clip, found.sums)
    assert torch.equal(again.sums, found.sums)
    if learner.wide is None:
        assert torch.equal(alone.sums, found.sums)


@pytest.fixture
def narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take the way of wide layers with small ones too."""
    monkeypatch.setattr(low_rank, "_WIDE", 2)
    monkeypatch.setattr(low_rank.WideLayer, "pays", lambda *_: True)


@pytest.mark.usefixtures("narrow")
@settings(max_examples=60, deadline=None)
@given(
    places=st.lists(
        st.tuples(st.integers(0, 2), st.integers(0, 2), st.lists(st.integers(1, 4), min_size=1, max_size=6)),
        min_size=1, max_size=6,
    ),
    dtype=st.sampled_from(list(TOLERANCE)),
    private=st.sampled_from([(), ("0",), ("5",), ("7",), ("0", "7")]),
    norm=st.sampled_from([1e-3, 0.05, 10.0]),
    at_once=st.sampled_from([1, 5, 256]),
    seed=st.integers(0, 99),
)  # fmt: skip
def test_groups_steps_and_batches_of_any_size(
    places: Any, dtype: torch.dtype, private: tuple[str, ...], norm: float, at_once: int, seed: int
) -> None:
    network = tiny(3)
    layout = Layout.of(network, private)
    learner = Learner(network, layout, RATE)
    assert low_rank.WideLayer.of(network, layout) is not None
    members = cohort_of(layout, (6, 6, 1), 3, places, dtype, seed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engine, "_SAMPLES", at_once)
        found = check(tiny(3), learner, members, norm)
        order = np.random.default_rng(seed).permutation(len(members)).tolist()
        other = train_cohort(learner, [members[k] for k in order], Mechanism(1.0, norm).clip, found.sums)
    assert torch.equal(other.sums, found.sums)
    assert [other.norms[order.index(k)] for k in range(len(order))] == found.norms


@pytest.mark.usefixtures("narrow")
@pytest.mark.parametrize("rate", [1e20, 1e38])
def test_a_client_that_diverges_counts_as_zero(rate: float) -> None:
    network = tiny(3)
    layout = Layout.of(network)
    members = cohort_of(layout, (6, 6, 1), 3, [(0, 0, [3] * 3), (0, 0, [2] * 3)])
    result = train_cohort(Learner(network, layout, rate), members, Mechanism(1.0, 0.5).clip, members[0].start[None])
    assert torch.isfinite(result.sums).all()
    assert not all(np.isfinite(result.norms))


@pytest.mark.usefixtures("narrow")
@pytest.mark.parametrize("seed", range(5))
def test_one_client_moves_the_sum_by_at_most_the_clipping_norm(seed: int) -> None:
    network = tiny(3)
    layout = Layout.of(network)
    places = [(0, 0, [3, 3]), (0, 0, [2, 4]), (0, 0, [4, 1])]
    members = cohort_of(layout, (6, 6, 1), 3, places, seed=seed)
    clip: Callable[..., Any] = Mechanism(1.0, 0.01).clip
    learner = Learner(network, layout, RATE)
    full = train_cohort(learner, members, clip, members[0].start[None]).sums.double()
    for k, one in enumerate(members):
        alone = train_cohort(learner, [replace(one, group=0)], clip, members[0].start[None]).sums.double()
        assert alone.norm() <= 0.01
        others = train_cohort(learner, members[:k] + members[k + 1 :], clip, members[0].start[None]).sums.double()
        assert (full - others).norm() <= 0.01 * (1 + 1e-6)


@pytest.mark.parametrize("apart", [1e-7, 5e-7, 8e-6, 1e-3, 1.0])
def test_steps_that_cancel_are_clipped_with_their_rounding(apart: float) -> None:
    draw, clip = np.random.default_rng(0), Mechanism(1.0, 1e-6).clip
    steps = _Steps(torch.zeros(64, 512), [[1, 1]])
    inputs, gradient = (torch.from_numpy(draw.random((1, size), dtype=np.float32)) for size in (512, 64))
    for inputs_now, gradient_now in ((inputs, gradient), (inputs * (1 + apart), -gradient)):
        steps.see(inputs_now, [1])
        steps.learn(gradient_now, [1])
    _clipped(torch.zeros(0), 0, steps, clip)
    change = torch.zeros(64, 512).addmm_(steps.gradients.T, steps.inputs)
    assert 0 < change.double().norm().item() <= 1e-6


def test_a_wide_layer_on_the_images_themselves_is_trained_in_the_plain_way() -> None:
    """Nothing below it has parameters, so that PyTorch would not ask for the gradient of what it gets."""
    network = nn.Sequential(nn.Flatten(), nn.Linear(28 * 28, 512), nn.ReLU(), nn.Linear(512, 10))
    assert low_rank.WideLayer.of(network, Layout.of(network)) is None
