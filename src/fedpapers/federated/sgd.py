"""Steps of plain SGD on the parameters in a vector, which change in place."""

from __future__ import annotations

import torch
from torch import Tensor

from fedpapers.models import Layout


def parameters_in(vector: Tensor, layout: Layout) -> dict[str, Tensor]:
    """The parameters by name, as views of a vector [size], each with a gradient of its own.

    A gradient of the vector itself would be put together from theirs, in more memory.
    """
    return {name: view.requires_grad_() for name, view in layout.views(vector.detach()).items()}


def step(parameters: list[Tensor], loss: Tensor, learning_rate: float) -> None:
    """Take the gradient of a loss times the learning rate from the parameters, and with them from their vectors."""
    gradients = torch.autograd.grad(loss, parameters)
    with torch.no_grad():
        torch._foreach_add_(parameters, gradients, alpha=-learning_rate)
