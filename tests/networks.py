"""The networks as they were published, of PyTorch's own layers, with parameters in the order of ours."""

from collections.abc import Callable, Mapping

from torch import nn


def mnist_cnn(classes: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(1, 16, 5, padding=2),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 5, padding=2),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(1568, classes),
    )


def femnist_cnn(classes: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(1, 32, 5, padding=2),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(32, 64, 5, padding=2),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(3136, 2048),
        nn.ReLU(),
        nn.Linear(2048, classes),
    )


def celeba_cnn(classes: int) -> nn.Sequential:
    convolutions = [
        layer
        for inputs in (3, 32, 32, 32)
        for layer in (
            nn.Conv2d(inputs, 32, 3, padding=1),
            nn.GroupNorm(8, 32),
            nn.ReLU(),
            nn.MaxPool2d(2, ceil_mode=True),
        )
    ]
    return nn.Sequential(*convolutions, nn.Flatten(), nn.Linear(1152, classes))


def linear(classes: int) -> nn.Sequential:
    return nn.Sequential(nn.Flatten(), nn.Linear(784, classes))


PUBLISHED: Mapping[str, Callable[[int], nn.Sequential]] = {
    "mnist-cnn": mnist_cnn, "linear": linear, "femnist-cnn": femnist_cnn, "celeba-cnn": celeba_cnn,
}  # fmt: skip
