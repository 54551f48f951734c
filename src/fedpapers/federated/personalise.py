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
from torch.nn.functional import cross_entropy, one_hot
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

    @property
    def _is_dense(self) -> bool:
        """Whether it is a single dense layer with a bias."""
        return [type(layer) for layer in self.network] == [nn.Linear] and len(self.layout.private_shapes) == 2

    def _dense(self, private: Tensor) -> tuple[Tensor, Tensor]:
        """Weight [N, classes, features] and bias [N, 1, classes] of such a layer."""
        weight, bias = torch.split(private, [shape.numel() for shape in self.layout.private_shapes.values()], dim=1)
        return weight.view(len(bias), bias.shape[1], -1), bias[:, None]

    def _logits_of_one(self, private: Tensor, features: Tensor) -> Tensor:
        own = Layout(self.layout.private_shapes, 0).views(private)
        logits: Tensor = functional_call(self.network, self.shared | own, (features,))
        return logits

    def logits(self, private: Tensor, features: Tensor) -> Tensor:
        """Outputs [N, most, classes] with each client's private parameters [N, size − P]."""
        if not self._is_dense:
            return vmap(self._logits_of_one)(private, features)
        weight, bias = self._dense(private)
        return torch.baddbmm(bias, features, weight.mT)

    def test(self, private: Tensor, samples: Samples) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Correctly classified samples and summed cross-entropy of each client, shapes [N].

        Args:
            private: Private parameters of each client, shape [N, size − P].
            samples: Their samples.
        """
        logits, weights = self.logits(private, samples.features), samples.weights()
        losses = cross_entropy(logits.mT, samples.labels, reduction="none").double()
        correct = ((logits.argmax(2) == samples.labels) * weights).sum(1)
        return correct.long().cpu().numpy(), (losses * weights).sum(1).cpu().numpy()

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
        places, weights = (part.to(private.device) for part in _mini_batches(samples.sizes, epochs, batch_size, draws))
        steps = list(zip(places, learning_rate * weights, strict=True))
        if self._is_dense and samples.features.shape[1] <= samples.features.shape[2]:
            return self._trained_by_rows(private, samples, steps)
        rows = torch.arange(len(private), device=private.device)[:, None]
        gradient = vmap(grad(self._weighted_loss))
        for at, rates in steps:
            private = private - gradient(private, samples.features[rows, at], samples.labels[rows, at], rates)
        return private

    def _weighted_loss(self, private: Tensor, features: Tensor, labels: Tensor, weights: Tensor) -> Tensor:
        losses = cross_entropy(self._logits_of_one(private, features), labels, reduction="none")
        return (losses * weights).sum()

    def _trained_by_rows(self, private: Tensor, samples: Samples, steps: Sequence[tuple[Tensor, Tensor]]) -> Tensor:
        """The same for a dense layer of which no client has more samples, padding included, than it has inputs.

        SGD changes its weight by −Σ gᵀa: a the features of the samples that were seen, g a row [classes] for each. So
        the rows are all that a step has to know and to change, and beside the first logits A·Aᵀ + 1 is all that it
        needs of the features; the 1 is the bias.
        """
        features, (weight, bias) = samples.features, self._dense(private)
        first = torch.baddbmm(bias, features, weight.mT)
        products = torch.baddbmm(features.new_ones(1, 1, 1), features, features.mT)
        labels = one_hot(samples.labels, first.shape[2]).to(features)
        changes = torch.zeros_like(first)
        rows = torch.arange(len(private), device=private.device)[:, None]
        for at, rates in steps:
            logits = first[rows, at] - products[rows, at] @ changes
            own = (logits.softmax(2) - labels[rows, at]) * rates[..., None]
            # Samples of a batch differ; only padding repeats one, and adds zeros: the order of additions is no matter.
            changes.index_put_((rows, at), own, accumulate=True)
        return torch.cat([(weight - changes.mT @ features).flatten(1), bias[:, 0] - changes.sum(1)], dim=1)


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
