"""Convolution, bias, normalisation or none, ReLU, and maxima of squares of 2 × 2 pixels, as one layer.

Bias, normalisation and ReLU keep the order of a channel's pixels, or turn it around. So the maxima are found first, and
the rest is computed for a quarter of the pixels: the same values.
"""

from __future__ import annotations

from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn.functional import conv2d, max_pool2d, relu


class PooledConvolution(nn.Conv2d):
    """Convolution with odd squares that leaves height and width as they are; then bias, ReLU, maxima of squares.

    At an odd edge of an image a square has two pixels or one.

    Args:
        inputs: Channels of the images.
        channels: Of the outputs.
        size: Height and width of the weights, odd.
    """

    bias: nn.Parameter

    def __init__(self, inputs: int, channels: int, size: int) -> None:
        super().__init__(inputs, channels, size, padding=size // 2)

    def forward(self, images: Tensor) -> Tensor:
        """Images [batch, inputs, height, width] -> [batch, channels, ⌈height/2⌉, ⌈width/2⌉]."""
        convolved = conv2d(images, self.weight, padding=self.padding)
        return relu(_largest(convolved) + self.bias[:, None, None])


class NormalisedConvolution(PooledConvolution):
    """A `PooledConvolution` with group normalisation after the bias.

    On a CPU and for images channels last, loops of our own pass once over the pixels, and once back. PyTorch's layers,
    which see all others, read and write them again and again, and need nearly as long as the convolutions.

    Args:
        inputs: Channels of the images.
        channels: Of the outputs.
        size: Height and width of the weights, odd.
        groups: Of channels, each normalised by its own mean and variance in each image.
    """

    def __init__(self, inputs: int, channels: int, size: int, groups: int) -> None:
        super().__init__(inputs, channels, size)
        self.norm = nn.GroupNorm(groups, channels)

    def forward(self, images: Tensor) -> Tensor:
        """Images [batch, inputs, height, width] -> [batch, channels, ⌈height/2⌉, ⌈width/2⌉]."""
        norm = self.norm
        if _fits_the_loops(images):
            parameters = self.weight, self.bias, norm.weight, norm.bias
            return cast(Tensor, _Normalised.apply(images, *parameters, self.padding, norm.num_groups, norm.eps))
        return relu(_largest(norm(super(PooledConvolution, self).forward(images))))


def _fits_the_loops(images: Tensor) -> bool:
    return (
        not torch._C._are_functorch_transforms_active()
        and images.device.type == "cpu"
        and images.dtype in (torch.float32, torch.float64)
        and images.is_contiguous(memory_format=torch.channels_last)
    )


def _largest(images: Tensor) -> Tensor:
    """The largest value of each square."""
    if not images.requires_grad or torch._C._are_functorch_transforms_active():
        return max_pool2d(images, 2, ceil_mode=True)
    return cast(Tensor, _Largest.apply(images))


class _Largest(torch.autograd.Function):
    """PyTorch's pooling, which keeps for its gradient where the maxima were, in few bytes, but not the images."""

    SETTINGS = [2, 2], [2, 2], [0, 0], [1, 1], True

    @staticmethod
    def forward(ctx: Any, images: Tensor) -> Tensor:
        largest, places = torch.ops.aten.max_pool2d_with_indices(images, *_Largest.SETTINGS)
        ctx.save_for_backward(places.short() if images.shape[2] * images.shape[3] <= 2**15 else places)
        ctx.shape, ctx.last = images.shape, images.is_contiguous(memory_format=torch.channels_last)
        return cast(Tensor, largest)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        """PyTorch's own, which asks for the images but reads no more of them than their shape."""
        layout = torch.channels_last if ctx.last else torch.contiguous_format
        images = torch.empty(ctx.shape, dtype=gradients[0].dtype, device=gradients[0].device, memory_format=layout)
        backward, (places,) = torch.ops.aten.max_pool2d_with_indices_backward, ctx.saved_tensors
        return backward(gradients[0], images, *_Largest.SETTINGS, places.long())


class _Normalised(torch.autograd.Function):
    """Convolution, bias ("shift"), group normalisation with weight and bias, ReLU, maxima of squares."""

    @staticmethod
    def forward(
        ctx: Any, images: Tensor, kernel: Tensor, shift: Tensor, weight: Tensor, bias: Tensor,
        padding: tuple[int, ...], groups: int, eps: float,
    ) -> Tensor:  # fmt: skip
        convolved = conv2d(images, kernel, shift, padding=padding).contiguous(memory_format=torch.channels_last)
        outputs, largest, places = _half(convolved), _half(convolved), _half(convolved, torch.uint8)
        sums = convolved.new_empty(convolved.shape[:2])
        mean, scale = convolved.new_empty(2, len(convolved), groups)
        made = outputs, largest, places, sums, mean, scale
        _loops().normalise_and_pool(*_arrays(convolved, weight, bias), eps, *_arrays(*made))
        ctx.save_for_backward(images, kernel, weight, *made)
        ctx.convolved, ctx.padding = convolved, padding
        return outputs

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> Any:
        images, kernel, weight, *made = ctx.saved_tensors
        back = ctx.convolved  # nobody else has it: its gradient takes its place, so that there is no second time
        del ctx.convolved
        of_parameters = tuple(torch.empty_like(weight) for _ in range(3))
        _loops().normalise_and_pool_backward(*_arrays(gradient, weight, *made, back, *of_parameters))
        settings = [1, 1], ctx.padding, [1, 1], False, [0, 0], 1, [ctx.needs_input_grad[0], True, False]
        of_images, of_kernel, _ = torch.ops.aten.convolution_backward(back, images, kernel, None, *settings)
        return of_images, of_kernel, *of_parameters, None, None, None


def _loops() -> Any:
    from fedpapers import convolution_loops  # half a second, for those who use it

    return convolution_loops


def _half(images: Tensor, dtype: torch.dtype | None = None) -> Tensor:
    """Room for images of half the height and width."""
    batch, channels, height, width = images.shape
    shape = batch, channels, -(-height // 2), -(-width // 2)
    return torch.empty(shape, dtype=dtype or images.dtype, memory_format=torch.channels_last)


def _arrays(*tensors: Tensor) -> list[Any]:
    """The tensors' values for NumPy: images [batch, height, width, channels], not copied if they lie like that."""
    plain = (one.detach() for one in tensors)
    return [(one.permute(0, 2, 3, 1) if one.dim() == 4 else one).contiguous().numpy() for one in plain]
