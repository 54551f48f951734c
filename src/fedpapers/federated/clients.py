"""The clients' samples: batches to train on, and test sets."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

Batch = tuple[Tensor, Tensor]


@dataclass(frozen=True)
class Clients:
    """What each client holds; samples are read from the memory-mapped arrays only when they are used.

    Attributes:
        images: Samples as bytes, shape [samples, height, width] or [samples, height, width, channels].
        labels: Class of each sample, shape [samples].
        train: For each client the indices of its training samples.
        test: For each client the indices of its test samples.
        device: Where batches are put.
    """

    images: NDArray[np.uint8]
    labels: NDArray[np.int64]
    train: tuple[NDArray[np.int64], ...]
    test: tuple[NDArray[np.int64], ...]
    device: torch.device

    def __len__(self) -> int:
        return len(self.train)

    def load(self, samples: NDArray[np.int64]) -> Batch:
        """Images [batch, channels, height, width] in [0, 1] and their labels [batch]."""
        pixels = torch.from_numpy(np.ascontiguousarray(self.images[samples]))
        # Channels last in memory: PyTorch pools such images faster on a CPU, and the loops of `convolution` need it.
        pixels = (pixels.unsqueeze(3) if pixels.dim() == 3 else pixels).permute(0, 3, 1, 2)
        labels = torch.from_numpy(np.ascontiguousarray(self.labels[samples]))
        return pixels.to(self.device, torch.float32).div_(255), labels.to(self.device)

    def batches(self, client: int, steps: int, size: int, draw: np.random.Generator) -> list[Batch]:
        """The mini-batches of one client's local steps: its training samples in random order, again and again.

        Args:
            client: Index of the client.
            steps: L, the number of batches.
            size: Samples a batch; a client that has fewer gives all of them.
            draw: The generator of (seed, batches, round, group, client).
        """
        own = self.train[client]
        size = min(size, len(own))
        passes = -(-steps * size // len(own))
        order = np.concatenate([draw.permutation(own) for _ in range(passes)])
        return [self.load(order[step * size : (step + 1) * size]) for step in range(steps)]
