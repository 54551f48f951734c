"""The networks, and their parameters as one flat vector.

The engine sees a model as a vector: shared parameters first, then the private ones that never leave a client.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor, nn

from fedpapers.errors import InputError, nearest


class GroupNorm(nn.GroupNorm):
    """PyTorch's group normalisation with a gradient that is some times faster for images channels-last on a CPU."""

    def forward(self, images: Tensor) -> Tensor:
        """Images [batch, channels, height, width], normalised by the statistics of each image and group."""
        if images.is_cuda or not images.is_contiguous(memory_format=torch.channels_last):
            return super().forward(images)
        return cast(Tensor, _GroupNorm.apply(images, self.weight, self.bias, self.num_groups, self.eps))


class _GroupNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor, groups: int, eps: float) -> Tensor:
        batch, channels, height, width = x.shape
        y, mean, scale = torch.native_group_norm(x, weight, bias, batch, channels, height * width, groups, eps)
        ctx.save_for_backward(x, weight, mean, scale)
        return y

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        """With x̂ = (x − μ)·s: ∂x = s·(γ∂y − mean(γ∂y) − x̂·mean(γ∂y·x̂)), here as a·∂y + b·x + c."""
        x, weight, mean, scale = ctx.saved_tensors
        batch, channels, height, width = x.shape
        groups, size = mean.shape[1], x[0].numel() // mean.shape[1]
        pixels = x.permute(0, 2, 3, 1).reshape(batch, -1, channels)
        gradient = gradients[0].permute(0, 2, 3, 1).reshape(batch, -1, channels)
        total, product = gradient.sum(1), (gradient * pixels).sum(1)
        by_group = [(sums * weight).view(batch, groups, -1).sum(2) for sums in (total, product)]
        of_pixels = scale.pow(3) * (by_group[0] * mean - by_group[1]) / size
        constant = -of_pixels * mean - scale * by_group[0] / size
        mean, scale, of_pixels, constant = (
            values.repeat_interleave(channels // groups, 1) for values in (mean, scale, of_pixels, constant)
        )
        back = torch.addcmul(constant[:, None], of_pixels[:, None], pixels)
        back.addcmul_(gradient, (scale * weight)[:, None])
        of_weight = ((product - mean * total) * scale).sum(0)
        return back.view(batch, height, width, channels).permute(0, 3, 1, 2), of_weight, total.sum(0), None, None


def mnist_cnn(classes: int = 10) -> nn.Module:
    """Two convolutions and one dense layer for 28 × 28 × 1 images: 28,938 parameters with 10 classes.

    Small on purpose: the noise of a mechanism grows with the number of parameters, and groups of a few dozen
    workers have to carry it.
    """
    return nn.Sequential(
        nn.Conv2d(1, 16, 5, padding=2),
        nn.MaxPool2d(2),  # before the ReLU: the same values from a quarter of the work
        nn.ReLU(),
        nn.Conv2d(16, 32, 5, padding=2),
        nn.MaxPool2d(2),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(32 * 7 * 7, classes),
    )


def linear(classes: int = 10) -> nn.Module:
    """Multinomial logistic regression on 28 × 28 × 1 images: 7,850 parameters with 10 classes."""
    return nn.Sequential(nn.Flatten(), nn.Linear(28 * 28, classes))


def femnist_cnn(classes: int = 62) -> nn.Module:
    """LEAF's network for 28 × 28 × 1 images of FEMNIST: 6,603,710 parameters with 62 classes."""
    return nn.Sequential(
        nn.Conv2d(1, 32, 5, padding=2),
        nn.MaxPool2d(2),
        nn.ReLU(),
        nn.Conv2d(32, 64, 5, padding=2),
        nn.MaxPool2d(2),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(64 * 7 * 7, 2048),
        nn.ReLU(),
        nn.Linear(2048, classes),
    )


def celeba_cnn(classes: int = 2) -> nn.Module:
    """LEAF's network for 84 × 84 × 3 images of CelebA: 31,202 parameters with 2 classes.

    LEAF normalises by the batch's own statistics, at test time too, so that a prediction depends on the other test
    images. Group normalisation has as many parameters and looks at one image only.
    """
    blocks = [
        part
        for channels in (3, 32, 32, 32)
        for part in (
            nn.Conv2d(channels, 32, 3, padding=1),
            GroupNorm(8, 32),
            nn.MaxPool2d(2, ceil_mode=True),
            nn.ReLU(),
        )
    ]
    return nn.Sequential(*blocks, nn.Flatten(), nn.Linear(32 * 6 * 6, classes))


MODELS: Mapping[str, Callable[[int], nn.Module]] = {
    "mnist-cnn": mnist_cnn,
    "linear": linear,
    "femnist-cnn": femnist_cnn,
    "celeba-cnn": celeba_cnn,
}


def build(name: str, classes: int) -> nn.Module:
    """A network without values: its parameters are to be loaded from a vector before use.

    Raises:
        InputError: There is no model of that name.
    """
    if name not in MODELS:
        raise InputError(f"model: '{name}' is not known; {nearest(name, MODELS)}")
    with torch.device("meta"):
        return MODELS[name](classes)


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
            private_layers: Names of layers as in `named_parameters`, e.g. `7` for `7.weight` and `7.bias`; `last`
                stands for the last layer that has parameters.

        Raises:
            InputError: A private layer is not in the model.
        """
        layer_of = {name: name.rpartition(".")[0] for name, _ in model.named_parameters()}
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
    vector = torch.empty(layout.size)
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
