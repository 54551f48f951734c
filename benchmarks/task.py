"""What every side of the comparison trains, and when: the same task, one round at a time.

A side is a process that reads this module with whatever Python its library needs; only NumPy, PyTorch and the
package's own networks are used.
"""

from __future__ import annotations

import json
import sys
import time
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.utils import vector_to_parameters

from fedpapers.convolution import NormalisedConvolution, PooledConvolution
from fedpapers.models import MODELS

RATE, CLIPPING_NORM, NOISE_MULTIPLIER = 0.05, 0.5, 1.0


@dataclass(frozen=True)
class Task:
    """A federated training task in memory.

    Attributes:
        model: The network's name.
        threads: Of PyTorch, for all of a side's processes together.
        clients: K.
        steps: L, local steps.
        batch: Samples of a client's mini-batch.
        start: First parameters, shape [P].
        images: Of each client, in the order of its batches, shape [K, L·batch, channels, height, width].
        labels: Shape [K, L·batch].
    """

    model: str
    threads: int
    clients: int
    steps: int
    batch: int
    start: Tensor
    images: Tensor
    labels: Tensor

    @classmethod
    def read(cls, file: str) -> Task:
        """The task that a file of arrays describes."""
        arrays = np.load(file)
        pixels = torch.from_numpy(arrays["pixels"])  # as PyTorch's loaders give them: channels first, from 0 to 1
        settings = json.loads(str(arrays["settings"]))
        return cls(
            **settings,
            start=torch.from_numpy(arrays["start"]),
            images=pixels.permute(0, 1, 4, 2, 3).contiguous().to(torch.float32).div_(255),
            labels=torch.from_numpy(arrays["labels"]),
        )

    def network(self) -> nn.Sequential:
        """The network with the first parameters."""
        network = published(MODELS[self.model](int(self.labels.max()) + 1))
        vector_to_parameters(self.start.clone(), network.parameters())
        return network


def published(network: nn.Sequential) -> nn.Sequential:
    """A network as it was published, of PyTorch's own layers, with parameters in the same order."""
    return nn.Sequential(*(layer for own in network for layer in _plain(own)))


def _plain(layer: nn.Module) -> list[nn.Module]:
    if not isinstance(layer, PooledConvolution):
        return [layer]
    layers: list[nn.Module] = [
        nn.Conv2d(layer.in_channels, layer.out_channels, layer.kernel_size, padding=layer.padding)
    ]
    if isinstance(layer, NormalisedConvolution):
        layers.append(nn.GroupNorm(layer.norm.num_groups, layer.norm.num_channels))
    return [*layers, nn.ReLU(), nn.MaxPool2d(2, ceil_mode=True)]


class Turns:
    """The driver's side of a process: wait for a turn, say how long it took.

    Standard output belongs to the driver; what libraries print goes to standard error.
    """

    def __init__(self) -> None:
        self.out, sys.stdout = sys.stdout, sys.stderr
        self.started = 0.0

    def checked(self, vector: Tensor, file: str) -> None:
        """Leave the parameters after a round without noise for comparison."""
        np.save(file, vector.detach().numpy())
        self._say({"checked": file})

    def begin(self) -> bool:
        """Wait for a turn; False when there is none any more."""
        go = sys.stdin.readline().strip() == "go"
        self.started = time.perf_counter()
        return go

    def end(self) -> None:
        """Say how long the turn took."""
        self._say({"ms": 1000 * (time.perf_counter() - self.started)})

    def _say(self, what: dict[str, Any]) -> None:
        print(json.dumps(what), file=self.out, flush=True)


def arguments() -> tuple[Task, str]:
    """The task, and the file for the parameters after the round without noise."""
    task, checked = sys.argv[1:]
    return Task.read(task), checked
