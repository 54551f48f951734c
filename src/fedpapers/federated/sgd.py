"""Plain SGD on the parameters in a vector, which change in place."""

from __future__ import annotations

import torch
from torch import Tensor

from fedpapers.models import Layout


def parameters_in(vector: Tensor, layout: Layout) -> dict[str, Tensor]:
    """The parameters by name, as views of a vector [size]; in each of them PyTorch adds up its own gradient.

    So a gradient times −η is a step of SGD. PyTorch adds it as soon as it is there, when nothing else needs the
    parameter any more, and keeps none: those of all clients would need as much memory as their parameters.
    """
    parameters = {}
    for name, view in layout.views(vector.detach()).items():
        parameters[name] = view.data.requires_grad_()
        parameters[name].grad = view.data
    return parameters


def step(loss: Tensor, learning_rate: float) -> None:
    """Take the gradient of a loss times the learning rate from the parameters, and with them from their vectors."""
    # −η as an argument of `backward` would have PyTorch load SymPy to check it: 12 MB
    torch.autograd.backward(-learning_rate * loss)
