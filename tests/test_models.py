"""The networks: sizes as published, first values."""

import numpy as np
import pytest
import torch

from fedpapers.models import MODELS, Layout, build, initial_vector


@pytest.mark.parametrize(
    ("name", "image", "classes", "parameters"),
    [
        ("mnist-cnn", (1, 28, 28), 10, 28_938),
        ("linear", (1, 28, 28), 10, 7_850),
        ("femnist-cnn", (1, 28, 28), 62, 6_603_710),
        ("celeba-cnn", (3, 84, 84), 2, 31_202),
        ("celeba-cnn-small", (3, 84, 84), 2, 8_690),
    ],
)
def test_size_and_shape(name: str, image: tuple[int, ...], classes: int, parameters: int) -> None:
    assert Layout.of(build(name, classes)).size == parameters
    assert MODELS[name](classes)(torch.zeros(3, *image)).shape == (3, classes)


def test_normalisation_starts_as_the_identity() -> None:
    layout = Layout.of(build("celeba-cnn", 2))
    first = layout.views(initial_vector(layout, np.random.default_rng(0)))
    assert torch.equal(first["0.norm.weight"], torch.ones(32)) and torch.equal(first["0.norm.bias"], torch.zeros(32))
    assert first["0.bias"].abs().max() <= 1 / np.sqrt(27) and first["1.bias"].abs().max() <= 1 / np.sqrt(288)


def test_prediction_does_not_depend_on_the_other_images() -> None:
    model = MODELS["celeba-cnn"](2)
    images = torch.from_numpy(np.random.default_rng(1).random((5, 3, 84, 84), dtype=np.float32))
    torch.testing.assert_close(model(images)[:1], model(images[:1]))


def test_normalised_features_leave_the_names_and_the_size_as_they_are() -> None:
    for name in MODELS:
        plain, normalised = Layout.of(build(name, 10), ["last"]), Layout.of(build(name, 10, "normalised"), ["last"])
        assert plain == normalised
