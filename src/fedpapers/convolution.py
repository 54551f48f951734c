"""Convolution, bias, normalisation or none, ReLU, and maxima of squares of 2 × 2 pixels, as one layer.

After the convolution only a quarter of the pixels goes on, and on a CPU nothing else is computed: the loops of
`convolution_loops` pass once over the images, and once back. PyTorch's own layers read and write all of them again and
again, which takes as long as the convolutions of CelebA's network.
"""

from __future__ import annotations

from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.nn.functional import conv2d, max_pool2d, relu

EPS = 1e-5  # of group normalisation


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
        # Bias and ReLU keep the order of pixels: after the maxima they give the same values from a quarter of the work.
        return relu(_largest(_convolution(images, self.weight)) + self.bias[:, None, None])


class NormalisedConvolution(PooledConvolution):
    """A `PooledConvolution` with group normalisation after the bias.

    Args:
        inputs: Channels of the images.
        channels: Of the outputs.
        size: Height and width of the weights, odd.
        groups: Of channels, each normalised by its own mean and variance in each image.
    """

    def __init__(self, inputs: int, channels: int, size: int, groups: int) -> None:
        super().__init__(inputs, channels, size)
        self.norm = nn.GroupNorm(groups, channels, EPS)

    def forward(self, images: Tensor) -> Tensor:
        """Images [batch, inputs, height, width] -> [batch, channels, ⌈height/2⌉, ⌈width/2⌉]."""
        norm = self.norm
        if _compiled(images):
            parameters = self.weight, self.bias, norm.weight, norm.bias
            return cast(Tensor, _Normalised.apply(images, *parameters, norm.num_groups))
        return relu(_largest(norm(_convolution(images, self.weight, self.bias))))


def _convolution(images: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    return conv2d(images, weight, bias, padding=weight.shape[2] // 2)


def _largest(images: Tensor) -> Tensor:
    """The largest value of each square."""
    if not images.requires_grad or torch._C._are_functorch_transforms_active():
        return max_pool2d(images, 2, ceil_mode=True)
    return cast(Tensor, _Largest.apply(images))


class _Largest(torch.autograd.Function):
    """PyTorch's pooling, which keeps for its gradient where the maxima were, but not the images themselves."""

    SETTINGS = [2, 2], [2, 2], [0, 0], [1, 1], True

    @staticmethod
    def forward(ctx: Any, images: Tensor) -> Tensor:
        largest, places = torch.ops.aten.max_pool2d_with_indices(images, *_Largest.SETTINGS)
        ctx.save_for_backward(places)
        ctx.shape, ctx.last = images.shape, images.is_contiguous(memory_format=torch.channels_last)
        return cast(Tensor, largest)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        """PyTorch's own, which asks for the images but reads no more of them than their shape."""
        layout = torch.channels_last if ctx.last else torch.contiguous_format
        images = torch.empty(ctx.shape, dtype=gradients[0].dtype, device=gradients[0].device, memory_format=layout)
        backward = torch.ops.aten.max_pool2d_with_indices_backward
        return backward(gradients[0], images, *_Largest.SETTINGS, *ctx.saved_tensors)


def _compiled(images: Tensor) -> bool:
    """Whether the compiled loops can have these images."""
    return (
        images.device.type == "cpu"
        and images.dtype in (torch.float32, torch.float64)
        and images.is_contiguous(memory_format=torch.channels_last)
        and not torch._C._are_functorch_transforms_active()
    )


def _loops() -> Any:
    from fedpapers import convolution_loops  # half a second, for those who train

    return convolution_loops


def _arrays(*tensors: Tensor) -> list[Any]:
    """The tensors' values for NumPy: images [batch, height, width, channels], not copied if they lie like that."""
    return [(one.permute(0, 2, 3, 1) if one.dim() == 4 else one).contiguous().numpy() for one in tensors]


def _room(like: Tensor, dtype: torch.dtype | None = None) -> Tensor:
    """Room for what pooling makes of images."""
    batch, channels, height, width = like.shape
    shape = batch, channels, -(-height // 2), -(-width // 2)
    return torch.empty(shape, dtype=dtype or like.dtype, memory_format=torch.channels_last)


def _convolution_backward(ctx: Any, gradient: Tensor, images: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
    """The gradients of a convolution's images, if somebody asks for it, and weight."""
    padding = [weight.shape[2] // 2] * 2
    settings = [1, 1], padding, [1, 1], False, [0, 0], 1
    wanted = [ctx.needs_input_grad[0], True, False]
    of_images, of_weight, _ = torch.ops.aten.convolution_backward(gradient, images, weight, None, *settings, wanted)
    return of_images, of_weight


class _Normalised(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, images: Tensor, weight: Tensor, shift: Tensor, scale: Tensor, bias: Tensor, groups: int
    ) -> Tensor:
        inputs, weight, shift, scale, bias = (one.detach() for one in (images, weight, shift, scale, bias))
        convolved = _convolution(inputs, weight).contiguous(memory_format=torch.channels_last)
        outputs, largest, places = _room(convolved), _room(convolved), _room(convolved, torch.uint8)
        sums = convolved.new_empty(convolved.shape[:2])
        mean, deviation = convolved.new_empty(2, len(convolved), groups)
        made = outputs, largest, places, sums, mean, deviation
        _loops().normalise_and_pool(*_arrays(convolved, shift, scale, bias), EPS, *_arrays(*made))
        ctx.save_for_backward(inputs, weight, shift, scale, *made)
        ctx.convolved = convolved
        return outputs

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        images, weight, *kept = ctx.saved_tensors
        back = ctx.convolved  # nobody else has it: its gradient takes its place
        del ctx.convolved
        made = tuple(torch.empty_like(kept[0]) for _ in range(3))
        arrays = _arrays(*gradients, *(one.detach() for one in kept), back, *made)
        _loops().normalise_and_pool_backward(*arrays)
        return *_convolution_backward(ctx, back, images, weight), *made, None
