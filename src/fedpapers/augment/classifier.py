"""The convolutional network that a device trains, before and after augmentation, and the judge of generated digits."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from fedpapers.augment.seeds import Images, Labels
from fedpapers.models import Layout, initial_vector
from fedpapers.randomness import Purpose, generator
from fedpapers.relay.layouts import LABELS

_TEST_BATCH = 500


def network() -> nn.Sequential:
    """Two convolutions and two dense layers for 28 × 28 images: 1,199,776 weights, the paper's number.

    Which layers have a bias is ours, because only so the number comes out.
    """
    return nn.Sequential(
        nn.Conv2d(1, 32, 3, bias=False),
        nn.ReLU(),
        nn.Conv2d(32, 64, 3, bias=False),
        nn.MaxPool2d(2),
        nn.ReLU(),  # after the pooling: the same values from a quarter of the work
        nn.Flatten(),
        nn.Linear(64 * 12 * 12, 128),
        nn.ReLU(),
        nn.Linear(128, LABELS, bias=False),
    )


def train_network(
    images: Images, labels: Labels, epochs: int, batch: int, learning_rate: float, seed: int, client: int = 0
) -> nn.Sequential:
    """A network trained with Adam on shuffled batches.

    Args:
        images: uint8, shape [n, 28, 28].
        labels: Shape [n].
        epochs: Passes over the images.
        batch: Images of a step; the last of an epoch may have fewer.
        learning_rate: Of Adam.
        seed: Of first values and shuffles.
        client: Whose network it is: the same device starts from the same values before and after augmentation.
    """
    made = network()
    layout = Layout.of(made)
    draw = generator(seed, Purpose.CLASSIFIER, client=client)
    with torch.no_grad():
        values = layout.views(initial_vector(layout, draw))
        for name, parameter in made.named_parameters():
            parameter.copy_(values[name])
    made = made.to(memory_format=torch.channels_last)  # twice as fast on CPUs
    optimiser = torch.optim.Adam(made.parameters(), learning_rate, fused=True)
    pixels, wanted = _inputs(images), torch.from_numpy(labels)
    for epoch in range(1, epochs + 1):
        draw = generator(seed, Purpose.CLASSIFIER, round=epoch, client=client)
        order = torch.from_numpy(draw.permutation(len(labels)))
        for chosen in torch.split(order, batch):
            optimiser.zero_grad()
            loss = functional.cross_entropy(made(pixels[chosen]), wanted[chosen])
            loss.backward()  # type: ignore[no-untyped-call]
            optimiser.step()
    return made


def answers(trained: nn.Sequential, images: Images) -> NDArray[np.int64]:
    """The label that a network gives each image, shape [n]."""
    return np.concatenate([part.argmax(dim=1).numpy() for part in _outputs(trained, images)])


def features(trained: nn.Sequential, images: Images) -> NDArray[np.float32]:
    """What the last hidden layer makes of each image, shape [n, 128]."""
    return np.concatenate([part.numpy() for part in _outputs(trained[:-1], images)])


def _outputs(layers: nn.Sequential, images: Images) -> Iterator[Tensor]:
    with torch.inference_mode():
        for part in torch.split(_inputs(images), _TEST_BATCH):
            yield cast(Tensor, layers(part))


def _inputs(images: Images) -> Tensor:
    pixels = torch.from_numpy(np.asarray(images)).float().unsqueeze(1) / 255
    return pixels.contiguous(memory_format=torch.channels_last)
