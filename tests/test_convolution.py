"""The convolutions with what follows them, against PyTorch's own layers."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numba
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.func import functional_call, grad, vmap
from torch.nn.utils import parameters_to_vector, vector_to_parameters

from fedpapers import convolution_loops
from fedpapers.convolution import NormalisedConvolution, PooledConvolution

TOLERANCE = {torch.float32: 2e-5, torch.float64: 1e-12}


def pair(normalised: bool, channels: int, dtype: torch.dtype, draw: np.random.Generator) -> tuple[nn.Module, nn.Module]:
    """Our layer and PyTorch's, with the same parameters; normalisation's weights have both signs."""
    own = NormalisedConvolution(3, channels, 3, groups=4) if normalised else PooledConvolution(3, channels, 3)
    norm = [nn.GroupNorm(4, channels)] if normalised else []
    plain = nn.Sequential(nn.Conv2d(3, channels, 3, padding=1), *norm, nn.ReLU(), nn.MaxPool2d(2, ceil_mode=True))
    vector = torch.from_numpy(draw.standard_normal(len(parameters_to_vector(plain.parameters()))))
    for layer in (own, plain):
        vector_to_parameters(vector.clone(), layer.parameters())
    return own.to(dtype), plain.to(dtype)


def images_of(shape: tuple[int, ...], dtype: torch.dtype, draw: np.random.Generator, levels: int = 0) -> Tensor:
    """Images channels last; with few levels there are many pixels of one value."""
    pixels = draw.integers(0, levels, shape) if levels else draw.standard_normal(shape) + 1
    return torch.from_numpy(pixels).to(dtype).permute(0, 3, 1, 2)


def results(layer: nn.Module, images: Tensor) -> list[Tensor]:
    """Outputs, and the gradients of images and parameters for outputs that count differently."""
    images = images.detach().clone(memory_format=torch.preserve_format).requires_grad_()
    outputs = layer(images)
    weights = torch.linspace(-1, 2, outputs.numel(), dtype=images.dtype).view(outputs.shape)
    return [outputs, *torch.autograd.grad(outputs, [images, *layer.parameters()], weights)]


def assert_close(found: list[Tensor], expected: list[Tensor]) -> None:
    for one, other in zip(found, expected, strict=True):
        bound = TOLERANCE[other.dtype] * max(1.0, other.abs().max().item())
        torch.testing.assert_close(one, other, rtol=0, atol=bound)


@settings(max_examples=60, deadline=None)
@given(
    normalised=st.booleans(),
    dtype=st.sampled_from(list(TOLERANCE)),
    batch=st.integers(1, 3),
    sides=st.tuples(st.integers(2, 9), st.integers(2, 9)),
    channels=st.sampled_from([4, 8, 24]),
    last=st.booleans(),
    seed=st.integers(0, 99),
)
def test_layers_are_pytorchs(
    normalised: bool, dtype: torch.dtype, batch: int, sides: tuple[int, int], channels: int, last: bool, seed: int
) -> None:
    draw = np.random.default_rng(seed)
    own, plain = pair(normalised, channels, dtype, draw)
    images = images_of((batch, *sides, 3), dtype, draw)
    images = images if last else images.contiguous()
    assert_close(results(own, images), results(plain, images.contiguous()))


@pytest.mark.parametrize("normalised", [False, True])
def test_of_equal_pixels_the_first_one_learns(normalised: bool) -> None:
    """Weights of whole numbers give outputs of which many are equal to the last digit."""
    draw = np.random.default_rng(3)
    own, plain = pair(normalised, 4, torch.float64, draw)
    for layer in (own, plain[0]):
        layer.weight.data = torch.from_numpy(np.random.default_rng(4).integers(-1, 2, layer.weight.shape)).double()
        layer.bias.data.zero_()
    images = images_of((4, 9, 7, 3), torch.float64, draw, levels=2)
    assert_close(results(own, images), results(plain, images.contiguous()))


@pytest.mark.parametrize("wrong", [np.nan, np.inf])
@pytest.mark.parametrize("row", [2, 6])
@pytest.mark.parametrize("normalised", [False, True])
def test_what_is_no_number_stays_visible(normalised: bool, row: int, wrong: float) -> None:
    draw = np.random.default_rng(5)
    own, plain = pair(normalised, 4, torch.float64, draw)
    images = images_of((2, 7, 7, 3), torch.float64, draw)
    images[1, 0, row, row] = wrong
    found, expected = results(own, images), results(plain, images.contiguous())
    torch.testing.assert_close(found[0][0], expected[0][0])
    assert all(torch.equal(one.isnan(), other.isnan()) for one, other in zip(found, expected, strict=True))


def test_a_variance_that_overflows_stays_visible() -> None:
    own, _ = pair(True, 4, torch.float64, np.random.default_rng(5))
    images = images_of((2, 6, 6, 3), torch.float64, np.random.default_rng(6))
    images[1] *= 1e200
    found = own(images)
    assert found[0].isfinite().all() and found[1].isnan().all()


@pytest.mark.parametrize("normalised", [False, True])
def test_transforms_of_functions_see_the_same_layers(normalised: bool) -> None:
    draw = np.random.default_rng(6)
    own, _ = pair(normalised, 8, torch.float64, draw)
    images = images_of((3, 7, 7, 3), torch.float64, draw)
    parameters = {name: value.detach() for name, value in own.named_parameters()}

    def loss(given: dict[str, Tensor], image: Tensor) -> Tensor:
        outputs: Tensor = functional_call(own, given, (image[None],))
        return (outputs**2).sum()

    each = vmap(grad(loss), in_dims=(None, 0))(parameters, images)
    (own(images) ** 2).sum().backward()
    assert_close([each[name].sum(0) for name in parameters], [value.grad for value in own.parameters()])
    assert_close([vmap(lambda image: own(image[None])[0])(images)], [own(images)])


def test_threads_do_not_disturb_each_other() -> None:
    draw = np.random.default_rng(7)
    own, _ = pair(True, 8, torch.float32, draw)
    images = [images_of((4, 20, 20, 3), torch.float32, draw) for _ in range(12)]
    found = []
    for threads in (1, 4):
        with ThreadPoolExecutor(threads, initializer=torch.set_num_threads, initargs=(1,)) as pool:
            found.append(list(pool.map(lambda one: results(own, one), images)))
    for one, other in zip(*found, strict=True):
        assert all(torch.equal(*pair) for pair in zip(one, other, strict=True))


def test_loops_run_where_they_cannot_be_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    njit = numba.njit

    def nowhere(*, cache: bool = False, **others: Any) -> Any:
        def refuse(loop: Any) -> Any:
            raise RuntimeError(f"cannot cache function '{loop.__name__}': no locator available")

        return refuse if cache else njit(**others)

    monkeypatch.setattr(numba, "njit", nowhere)

    def double(numbers: Any) -> None:
        for k in range(len(numbers)):
            numbers[k] *= 2

    numbers = np.arange(3.0)
    convolution_loops.compiled(double)(numbers)
    assert numbers.tolist() == [0, 2, 4]
