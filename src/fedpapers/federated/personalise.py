"""Private layers trained alone, many clients at once, on features that the shared layers below have already made.

Clients have different numbers of samples, so what belongs to them is padded to [N, most, …]; padding has no weight.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.func import functional_call, grad, vmap
from torch.nn.functional import cross_entropy
from torch.nn.utils.rnn import pad_sequence

from fedpapers.models import Layout


@dataclass(frozen=True)
class Samples:
    """The samples of N clients, as the layers below their private ones see them.

    Attributes:
        features: Shape [N, most, …].
        labels: Shape [N, most].
        sizes: Samples of each client, shape [N]; what comes after them is padding.
    """

    features: Tensor
    labels: Tensor
    sizes: tuple[int, ...]

    @classmethod
    def padded(cls, features: Tensor, labels: Tensor, sizes: Sequence[int]) -> Samples:
        """From the samples of one client after another, [n, …] and [n]."""
        parts = (torch.split(values, list(sizes)) for values in (features, labels))
        padded = [pad_sequence(list(own), batch_first=True) for own in parts]
        return cls(padded[0], padded[1], tuple(sizes))

    def weights(self) -> Tensor:
        """1 for a sample, 0 for padding, shape [N, most]."""
        places = torch.arange(self.labels.shape[1], device=self.labels.device)
        return (places < torch.tensor(self.sizes, device=self.labels.device)[:, None]).float()


@dataclass(frozen=True)
class Heads:
    """The part of a network that begins with its first private layer.

    Attributes:
        network: Its layers.
        layout: Where the parameters of the whole network lie.
        shared: Those of the shared layers, by name.
    """

    network: nn.Sequential
    layout: Layout
    shared: dict[str, Tensor]

    def losses(self, private: Tensor, features: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        """Cross-entropy [batch] and logits [batch, classes] of one client with the private parameters [size − P]."""
        own = Layout(self.layout.private_shapes, 0).views(private)
        logits: Tensor = functional_call(self.network, self.shared | own, (features,))
        return cross_entropy(logits, labels, reduction="none"), logits

    def test(self, private: Tensor, samples: Samples) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Correctly classified samples and summed cross-entropy of each client, shapes [N].

        Args:
            private: Private parameters of each client, shape [N, size − P].
            samples: Their samples.
        """
        losses, logits = vmap(self.losses)(private, samples.features, samples.labels)
        weights = samples.weights()
        correct = ((logits.argmax(2) == samples.labels) * weights).sum(1)
        return correct.long().cpu().numpy(), (losses.double() * weights).sum(1).cpu().numpy()

    def trained(
        self,
        private: Tensor,
        samples: Samples,
        epochs: int,
        batch_size: int,
        learning_rate: float,
        draws: Sequence[np.random.Generator],
    ) -> Tensor:
        """The private parameters [N, size − P] after some epochs of plain SGD on them alone.

        Args:
            private: Those to start from.
            samples: Each client's samples.
            epochs: Passes over them.
            batch_size: Samples of a mini-batch; the last one of a pass has what is left.
            learning_rate: η.
            draws: A generator for each client: the order of its samples.
        """
        places, weights = _mini_batches(samples.sizes, epochs, batch_size, draws)
        rows = torch.arange(len(samples.sizes))[:, None]
        gradient = vmap(grad(self._weighted_loss))
        for step_places, step_weights in zip(places, weights.to(private.device), strict=True):
            features, labels = samples.features[rows, step_places], samples.labels[rows, step_places]
            private = private - learning_rate * gradient(private, features, labels, step_weights)
        return private

    def _weighted_loss(self, private: Tensor, features: Tensor, labels: Tensor, weights: Tensor) -> Tensor:
        return (self.losses(private, features, labels)[0] * weights).sum()


def _mini_batches(
    sizes: Sequence[int], epochs: int, batch_size: int, draws: Sequence[np.random.Generator]
) -> tuple[Tensor, Tensor]:
    """Places and weights of the samples of each step, shape [steps, N, batch]; a client that is done has weights 0."""
    steps = epochs * max(-(-size // batch_size) for size in sizes)
    width = min(batch_size, max(sizes))
    places = np.zeros((steps, len(sizes), width), dtype=np.int64)
    weights = np.zeros((steps, len(sizes), width), dtype=np.float32)
    for client, (size, draw) in enumerate(zip(sizes, draws, strict=True)):
        passes = (draw.permutation(size) for _ in range(epochs))
        batches = (order[k : k + batch_size] for order in passes for k in range(0, size, batch_size))
        for step, batch in enumerate(batches):
            places[step, client, : len(batch)] = batch
            weights[step, client, : len(batch)] = 1 / len(batch)
    return torch.from_numpy(places), torch.from_numpy(weights)
