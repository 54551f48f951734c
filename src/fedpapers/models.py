"""The networks, and their parameters as one flat vector.

The engine sees a model as a vector: shared parameters first, then the private ones that never leave a client.
"""

from __future__ import annotations

import itertools
import math
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import layer_norm

from fedpapers.convolution import NormalisedConvolution, PooledConvolution
from fedpapers.errors import InputError, nearest
from fedpapers.memory import zeros


def mnist_cnn(classes: int = 10) -> nn.Sequential:
    """Two convolutions and one dense layer for 28 × 28 × 1 images: 28,938 parameters with 10 classes.

    Small on purpose: the noise of a mechanism grows with the number of parameters, and groups of a few dozen
    workers have to carry it.
    """
    return nn.Sequential(
        PooledConvolution(1, 16, 5),
        PooledConvolution(16, 32, 5),
        nn.Flatten(),
        nn.Linear(32 * 7 * 7, classes),
    )


def linear(classes: int = 10) -> nn.Sequential:
    """Multinomial logistic regression on 28 × 28 × 1 images: 7,850 parameters with 10 classes."""
    return nn.Sequential(nn.Flatten(), nn.Linear(28 * 28, classes))


def femnist_cnn(classes: int = 62) -> nn.Sequential:
    """LEAF's network for 28 × 28 × 1 images of FEMNIST: 6,603,710 parameters with 62 classes."""
    return nn.Sequential(
        PooledConvolution(1, 32, 5),
        PooledConvolution(32, 64, 5),
        nn.Flatten(),
        nn.Linear(64 * 7 * 7, 2048),
        nn.ReLU(),
        nn.Linear(2048, classes),
    )


def celeba_cnn(classes: int = 2, channels: int = 32) -> nn.Sequential:
    """LEAF's network for 84 × 84 × 3 images of CelebA: 31,202 parameters with 2 classes.

    LEAF normalises by the batch's own statistics, at test time too, so that a prediction depends on the other test
    images. Group normalisation has as many parameters and looks at one image only.

    Args:
        classes: Number of outputs.
        channels: Of each convolution; LEAF has 32.
    """
    blocks = [NormalisedConvolution(inputs, channels, 3, groups=8) for inputs in (3, channels, channels, channels)]
    return nn.Sequential(*blocks, nn.Flatten(), nn.Linear(channels * 6 * 6, classes))


def celeba_cnn_small(classes: int = 2) -> nn.Sequential:
    """LEAF's network for CelebA with half the channels, ours, for minutes on few cores: 8,690 parameters."""
    return celeba_cnn(classes, channels=16)


MODELS: Mapping[str, Callable[[int], nn.Sequential]] = {
    "mnist-cnn": mnist_cnn,
    "linear": linear,
    "femnist-cnn": femnist_cnn,
    "celeba-cnn": celeba_cnn,
    "celeba-cnn-small": celeba_cnn_small,
}


class NormalisedFeatures(nn.Module):
    """Features of each sample with mean 0 and length 10: layer normalisation (arXiv 1607.06450) without parameters.

    Noise makes the layers below wander and their outputs grow without bound, and the gradient of a dense layer grows
    with what it sees. So without this the steps of a private last layer diverge, however small they are at the start.
    With it neither its steps nor its predictions depend on the scale of the features. The length is about that of the
    features of LEAF's networks in training without noise, whatever the width of the layer, such that the papers'
    learning rates fit.
    """

    LENGTH = 10.0

    def forward(self, features: Tensor) -> Tensor:
        """Features [batch, width] normalised; features without any variation give zeros."""
        width = features.shape[1:]
        return layer_norm(features, width, eps=1e-12) * (self.LENGTH / math.sqrt(width.numel()))


def build(name: str, classes: int, features: Literal["normalised"] | None = None) -> nn.Sequential:
    """A network without values: its parameters are to be loaded from a vector before use.

    Args:
        name: One of MODELS.
        classes: Number of outputs.
        features: Whether the last layer sees normalised features; its own name stays as it is.

    Raises:
        InputError: There is no model of that name.
    """
    if name not in MODELS:
        raise InputError(f"model: '{name}' is not known; {nearest(name, MODELS)}")
    with torch.device("meta"):
        network = MODELS[name](classes)
    if features is None:
        return network
    *below, last = network.named_children()
    return nn.Sequential(OrderedDict([*below, ("normalised", NormalisedFeatures()), last]))


def divide(network: nn.Module, layout: Layout) -> tuple[nn.Sequential, nn.Sequential]:
    """The layers below the first private one, whose outputs are one client's as another's, and the rest.

    Args:
        network: Layers in a row.
        layout: Which parameters are private; some are.
    """
    assert isinstance(network, nn.Sequential)
    private = {name.partition(".")[0] for name in layout.private_shapes}
    first = next(k for k, (name, _) in enumerate(network.named_children()) if name in private)
    return network[:first], network[first:]


@dataclass(frozen=True)
class Layout:
    """Where each parameter of a model lies in its flat vector.

    Attributes:
        shapes: Parameter name -> shape, in the order of the vector: the shared ones, then the private ones.
        shared_size: Number of values of the shared ones, P.
    """

    shapes: Mapping[str, torch.Size]
    shared_size: int

    @classmethod
    def of(cls, model: nn.Module, private_layers: Sequence[str] = ()) -> Layout:
        """The layout of a model of which some layers are private.

        Args:
            model: The network.
            private_layers: Names of layers, e.g. `3` for all parameters whose names begin with `3.`; `last` stands for
                the last layer that has parameters.

        Raises:
            InputError: A private layer is not in the model.
        """
        layer_of = {name: name.partition(".")[0] for name, _ in model.named_parameters()}
        layers = list(dict.fromkeys(layer_of.values()))
        private = {layers[-1] if layer == "last" else layer for layer in private_layers}
        for layer in private - set(layers):
            raise InputError(f"private_layers: the model has no layer '{layer}'; {nearest(layer, layers)}")
        ordered = sorted(model.named_parameters(), key=lambda item: layer_of[item[0]] in private)
        return cls(
            shapes={name: parameter.shape for name, parameter in ordered},
            shared_size=sum(p.numel() for name, p in ordered if layer_of[name] not in private),
        )

    @cached_property
    def size(self) -> int:
        """Number of values of the whole model."""
        return sum(shape.numel() for shape in self.shapes.values())

    @cached_property
    def private_shapes(self) -> dict[str, torch.Size]:
        """The shapes of the private parameters, in the order of the vector."""
        ends = itertools.accumulate(shape.numel() for shape in self.shapes.values())
        return {name: self.shapes[name] for name, end in zip(self.shapes, ends, strict=True) if end > self.shared_size}

    @property
    def private_size(self) -> int:
        """Number of values of the private layers."""
        return self.size - self.shared_size

    def views(self, vector: Tensor) -> dict[str, Tensor]:
        """The parameters by name, as views of a vector [size]."""
        parts = torch.split(vector, [shape.numel() for shape in self.shapes.values()])
        return {name: part.view(shape) for (name, shape), part in zip(self.shapes.items(), parts, strict=True)}


def initial_vector(layout: Layout, draw: np.random.Generator) -> Tensor:
    """First values [size], uniform in ±1/√fan-in as in PyTorch's own layers.

    A bias has the fan-in of the weight before it. A normalisation has weights 1 and biases 0.
    """
    vector = zeros(layout.size, like=torch.empty(0))
    bound = 1.0
    for name, view in layout.views(vector).items():
        normalises = name.endswith("weight") and view.dim() == 1
        if name.endswith("weight"):
            bound = 0.0 if normalises else 1 / math.sqrt(view[0].numel())
        if bound == 0:
            view.fill_(float(normalises))
            continue
        for part in torch.split(view.view(-1), 2**18):
            part.copy_(torch.from_numpy(draw.uniform(-bound, bound, size=len(part))))
    return vector
