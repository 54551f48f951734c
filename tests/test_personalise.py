"""Private layers trained before a client is tested: what they do, and what they leave alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils import parameters_to_vector, vector_to_parameters

from fedpapers.federated.evaluate import Evaluation, evaluate
from fedpapers.federated.personalise import Heads, Samples
from fedpapers.federated.rounds import Federation, State, next_release, rounds
from fedpapers.groups import single
from fedpapers.models import Layout, NormalisedFeatures, build
from fedpapers.randomness import Purpose, generator

Make = Callable[..., Federation]
EPOCHS = 3


@pytest.fixture(scope="module")
def personal(make_federation: Make) -> Federation:
    """Six clients with a private last layer on normalised features, with noise as at the papers' scale."""
    return make_federation(
        single(6), model="mnist-cnn", private_layers=("last",), features="normalised", samples=40, sampling_rate=0.5,
        clipping_norm=0.1, noise_multiplier=2.42, noise="client",
    )  # fmt: skip


@pytest.fixture(scope="module")
def state(personal: Federation) -> State:
    """Where it stands after three rounds."""
    *_, (last, _) = rounds(personal, personal.initial_state(), 3)
    return last


def same(a: Evaluation, b: Evaluation) -> bool:
    return bool(np.array_equal(a.correct, b.correct) and np.array_equal(a.unpersonalised, b.unpersonalised))


def test_it_is_sgd_on_the_private_layers_of_each_client_alone(personal: Federation, state: State) -> None:
    got = evaluate(personal, state, EPOCHS)
    for n, train in enumerate(personal.clients.train):
        network = build("mnist-cnn", 10, "normalised").to_empty(device="cpu")
        vector_to_parameters(torch.cat([state.shared[0], state.private[n]]), network.parameters())
        head = list(network.children())[-1]
        steps = torch.optim.SGD(head.parameters(), personal.learner.learning_rate)
        draw = generator(personal.seed, Purpose.PERSONALISE, round=3, client=n)
        for order in [draw.permutation(train) for _ in range(EPOCHS)]:
            for k in range(0, len(order), personal.batch_size):
                images, labels = personal.clients.load(order[k : k + personal.batch_size])
                network.zero_grad()
                nn.functional.cross_entropy(network(images), labels).backward()
                steps.step()
        images, labels = personal.clients.load(personal.clients.test[n])
        with torch.no_grad():
            logits = network(images)
        assert got.correct[n] == (logits.argmax(1) == labels).sum()
        assert got.loss[n] == pytest.approx(nn.functional.cross_entropy(logits, labels).item(), rel=1e-4)
        assert torch.equal(parameters_to_vector(network.parameters())[: len(state.shared[0])], state.shared[0])


@pytest.mark.parametrize("epochs, batch_size", [(1, 4), (3, 4), (2, 100)])
def test_rows_of_samples_stand_for_the_weights_of_a_dense_layer(
    monkeypatch: pytest.MonkeyPatch, epochs: int, batch_size: int
) -> None:
    network = nn.Sequential(nn.Linear(12, 5))
    sizes, draw = (7, 1, 12, 4), np.random.default_rng(1)
    features, labels = draw.normal(size=(sum(sizes), 12)), draw.integers(5, size=sum(sizes))
    samples = Samples.padded(torch.from_numpy(features), torch.from_numpy(labels), sizes)
    heads = Heads(network, Layout.of(network, ("0",)), {})
    private = torch.from_numpy(draw.normal(size=(len(sizes), 65)))
    found = []
    for dense in (True, False):
        monkeypatch.setattr(Heads, "_is_dense", dense)
        draws = [np.random.default_rng(n) for n in range(len(sizes))]
        found.append(heads.trained(private, samples, epochs, batch_size, 0.3, draws))
    torch.testing.assert_close(found[0], found[1], rtol=1e-12, atol=1e-12)
    assert (found[0] - private).norm() > 1


def test_it_does_not_touch_the_state_nor_what_follows(personal: Federation, state: State) -> None:
    before = replace(state, shared=state.shared.clone(), private=state.private.clone())
    evaluate(personal, state, EPOCHS)
    assert torch.equal(state.shared, before.shared) and torch.equal(state.private, before.private)
    after, untouched = next_release(personal, state)[0], next_release(personal, before)[0]
    assert torch.equal(after.shared, untouched.shared) and torch.equal(after.private, untouched.private)


def test_the_accuracy_without_it_stands_beside(personal: Federation, state: State) -> None:
    before, after = evaluate(personal, state), evaluate(personal, state, EPOCHS)
    assert np.array_equal(before.correct, before.unpersonalised)
    assert np.array_equal(after.unpersonalised, before.correct)
    assert after.correct.sum() > 2 * before.correct.sum() > 0


def test_without_private_layers_there_is_nothing_to_personalise(make_federation: Make) -> None:
    federation = make_federation(single(4))
    state = federation.initial_state()
    assert same(evaluate(federation, state), evaluate(federation, state, EPOCHS))


def scaled(federation: Federation, state: State, factor: float) -> State:
    """The same, but the last shared layer's outputs are `factor` times as large."""
    shared = state.shared.clone()
    views = federation.learner.layout.views(torch.cat([shared[0], state.private[0]]))
    for name in ("1.weight", "1.bias"):
        views[name].mul_(factor)
    full = torch.cat([view.reshape(-1) for view in views.values()])
    return replace(state, shared=full[None, : shared.shape[1]].clone())


def test_the_scale_of_the_features_does_not_matter(personal: Federation, state: State) -> None:
    got = evaluate(personal, state, EPOCHS)
    for factor in (1e3, 1e-3):
        large = evaluate(personal, scaled(personal, state, factor), EPOCHS)
        assert same(got, large)
        assert large.loss == pytest.approx(got.loss, rel=1e-3)


def test_in_the_rounds_it_does_not_matter_for_the_private_layers_either(personal: Federation, state: State) -> None:
    quiet = replace(
        personal, mechanism=replace(personal.mechanism, noise_multiplier=0.0, sampling_rate=1.0), local_steps=1
    )
    trained = next_release(quiet, state)[0].private - state.private
    large = next_release(quiet, scaled(quiet, state, 1e3))[0].private - state.private
    assert trained.norm() > 0.1
    torch.testing.assert_close(trained, large, rtol=1e-3, atol=1e-4)


def test_without_normalised_features_the_scale_decides(make_federation: Make) -> None:
    federation = make_federation(single(3), model="mnist-cnn", private_layers=("last",), samples=30)
    state = federation.initial_state()
    large = scaled(federation, state, 1e3)
    assert evaluate(federation, large, EPOCHS).loss.min() > 10 * evaluate(federation, state, EPOCHS).loss.max()


def test_normalised_features_have_mean_0_and_one_length() -> None:
    features = torch.from_numpy(np.random.default_rng(0).normal(3, 50, (5, 64)).astype(np.float32))
    got: Tensor = NormalisedFeatures()(features)
    assert got.mean(1).abs().max() <= 1e-6
    assert got.norm(dim=1).numpy() == pytest.approx(NormalisedFeatures.LENGTH, rel=1e-5)
    assert torch.equal(NormalisedFeatures()(torch.ones(2, 8)), torch.zeros(2, 8))


def test_private_layers_may_be_more_than_the_last(make_federation: Make) -> None:
    federation = make_federation(single(3), model="mnist-cnn", private_layers=("1", "last"), samples=30)
    assert [*federation.learner.layout.private_shapes] == ["1.weight", "1.bias", "3.weight", "3.bias"]
    state = federation.initial_state()
    got = evaluate(federation, state, EPOCHS)
    assert got.loss.mean() < evaluate(federation, state).loss.mean()
