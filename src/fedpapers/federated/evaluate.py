"""Accuracy of each client's personal model on its own test samples."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn.functional import cross_entropy

from fedpapers.federated.personalise import Heads, Samples
from fedpapers.federated.rounds import Federation, State
from fedpapers.models import divide
from fedpapers.randomness import Purpose, generator

_BATCH = 64  # images at once: as fast as more to a tenth, and the memory of their activations is in proportion
_BLOCK = 8192  # samples whose features are in memory at once


@dataclass(frozen=True)
class Evaluation:
    """How well the clients' models do, by client.

    Attributes:
        samples: Test samples, shape [N].
        correct: Correctly classified ones, shape [N].
        loss: Mean cross-entropy, shape [N].
        unpersonalised: Correctly classified ones with the private layers as the rounds left them, shape [N]; the same
            as `correct` where there is nothing to personalise.
    """

    samples: NDArray[np.int64]
    correct: NDArray[np.int64]
    loss: NDArray[np.float64]
    unpersonalised: NDArray[np.int64]

    @property
    def accuracy(self) -> NDArray[np.float64]:
        """Share of correct ones, shape [N]."""
        return self.correct / self.samples


@torch.no_grad()
def evaluate(federation: Federation, state: State, personalise_epochs: int = 0) -> Evaluation:
    """Test each client's personal model: φ_n with the client's private layers.

    A client first trains its private layers alone, on its own training data, with the run's learning rate and batch
    size. The state is not touched: what clients do with their own layers is released to nobody, and each evaluation
    starts from what the rounds left.

    Args:
        federation: The federation.
        state: Where it stands.
        personalise_epochs: Epochs of that training.
    """
    samples = np.array([len(own) for own in federation.clients.test], dtype=np.int64)
    correct, unpersonalised = np.zeros_like(samples), np.zeros_like(samples)
    loss = np.zeros(len(samples))
    models = federation.personal_models(state)
    if federation.learner.layout.private_size == 0:
        for clients, model in _batches(federation, samples, _BATCH):
            owner = np.repeat(clients, samples[clients])
            hits, losses = _test(federation, models[model], clients)
            np.add.at(correct, owner, hits)
            np.add.at(loss, owner, losses)
        return Evaluation(samples, correct, loss / samples, correct)
    train = np.array([len(own) for own in federation.clients.train], dtype=np.int64)
    for clients, model in _batches(federation, samples + train, _BLOCK):
        heads, (own, others) = _heads(federation, models[model], clients)
        private = state.private[torch.from_numpy(clients)]
        unpersonalised[clients], loss[clients] = heads.test(private, others)
        correct[clients] = unpersonalised[clients]
        if personalise_epochs:
            draws = [
                generator(federation.seed, Purpose.PERSONALISE, round=state.round, client=n) for n in clients.tolist()
            ]
            settings = personalise_epochs, federation.batch_size, federation.learner.learning_rate
            correct[clients], loss[clients] = heads.test(heads.trained(private, own, *settings, draws), others)
    return Evaluation(samples, correct, loss / samples, unpersonalised)


def _test(
    federation: Federation, vector: Tensor, clients: NDArray[np.int64]
) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
    """For each test sample of clients with one model whether it is classified correctly, and its loss."""
    images, labels = federation.clients.load(np.concatenate([federation.clients.test[n] for n in clients]))
    learner = federation.learner
    logits = learner.logits(learner.layout.views(vector), images)
    losses = cross_entropy(logits, labels, reduction="none").double()
    return (logits.argmax(1) == labels).cpu().numpy(), losses.cpu().numpy()


def _heads(federation: Federation, shared: Tensor, clients: NDArray[np.int64]) -> tuple[Heads, list[Samples]]:
    """The private part of the model of some clients, and their training and test samples as it sees them."""
    layout = federation.learner.layout
    below, network = divide(federation.learner.model, layout)
    vector = torch.cat([shared, shared.new_zeros(layout.private_size)])
    parameters = {name: view for name, view in layout.views(vector).items() if name not in layout.private_shapes}
    parts = [_of(below, parameters), _of(network, parameters)]
    sets = ([one[n] for n in clients] for one in (federation.clients.train, federation.clients.test))
    return Heads(network, layout, parts[1]), [_samples(federation, below, parts[0], own) for own in sets]


def _of(network: nn.Module, parameters: dict[str, Tensor]) -> dict[str, Tensor]:
    """Those of the parameters that belong to a part of the network; channels last, which is twice as fast."""
    own = {name: parameters[name] for name, _ in network.named_parameters() if name in parameters}
    return {
        name: view.contiguous(memory_format=torch.channels_last) if view.dim() == 4 else view
        for name, view in own.items()
    }


def _samples(
    federation: Federation, below: nn.Module, parameters: dict[str, Tensor], sets: Sequence[NDArray[np.int64]]
) -> Samples:
    """The features of some clients' samples, made in batches that do not care whose they are."""
    indices = np.concatenate(sets)
    loaded = [federation.clients.load(indices[k : k + _BATCH]) for k in range(0, len(indices), _BATCH)]
    features = torch.cat([functional_call(below, parameters, (images,)) for images, _ in loaded])
    return Samples.padded(features, torch.cat([labels for _, labels in loaded]), [len(own) for own in sets])


def _batches(federation: Federation, sizes: NDArray[np.int64], most: int) -> Iterator[tuple[NDArray[np.int64], int]]:
    """Clients that can be tested together, about `most` samples of them, with the index of their model.

    Clients with the same groups have the same personal model.
    """
    patterns, pattern_of = federation.patterns
    for model in range(len(patterns)):
        clients = np.flatnonzero(pattern_of == model)
        part = np.cumsum(sizes[clients]) // most
        for p in np.unique(part):
            yield clients[part == p], model
