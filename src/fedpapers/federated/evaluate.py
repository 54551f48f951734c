"""Accuracy of each client's personal model on its own test samples."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn.functional import cross_entropy

from fedpapers.federated.rounds import Federation, State

_BATCH = 1024


@dataclass(frozen=True)
class Evaluation:
    """How well the clients' models do, by client.

    Attributes:
        samples: Test samples, shape [N].
        correct: Correctly classified ones, shape [N].
        loss: Mean cross-entropy, shape [N].
    """

    samples: NDArray[np.int64]
    correct: NDArray[np.int64]
    loss: NDArray[np.float64]

    @property
    def accuracy(self) -> NDArray[np.float64]:
        """Share of correct ones, shape [N]."""
        return self.correct / self.samples


@torch.inference_mode()
def evaluate(federation: Federation, state: State) -> Evaluation:
    """Test each client's personal model: φ_n with the client's private layers."""
    clients = federation.clients
    samples = np.array([len(own) for own in clients.test], dtype=np.int64)
    correct = np.zeros(len(clients), dtype=np.int64)
    loss = np.zeros(len(clients))
    models = federation.personal_models(state)
    for batch_clients, model in _batches(federation):
        owner = np.repeat(batch_clients, samples[batch_clients])
        vector = torch.cat([models[model], state.private[int(batch_clients[0])]])
        images, labels = clients.load(np.concatenate([clients.test[n] for n in batch_clients]))
        logits = federation.learner.logits(vector, images)
        np.add.at(correct, owner, (logits.argmax(1) == labels).cpu().numpy())
        np.add.at(loss, owner, cross_entropy(logits, labels, reduction="none").double().cpu().numpy())
    return Evaluation(samples, correct, loss / samples)


def _batches(federation: Federation) -> list[tuple[NDArray[np.int64], int]]:
    """Clients that can be tested together, with the index of their model.

    Clients with the same groups have the same personal model; with private layers each client is tested alone.
    """
    together: list[tuple[NDArray[np.int64], int]] = []
    patterns, pattern_of = federation.patterns
    for model in range(len(patterns)):
        clients = np.flatnonzero(pattern_of == model)
        sizes = np.array([len(federation.clients.test[n]) for n in clients])
        alone = federation.learner.layout.private_size > 0
        part = np.arange(len(clients)) if alone else np.cumsum(sizes) // _BATCH
        together += [(clients[part == p], model) for p in np.unique(part)]
    return together
