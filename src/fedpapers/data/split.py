"""Each client's samples, divided into train and test."""

from __future__ import annotations

from collections.abc import Sequence

from fedpapers.data.draws import Indices, Step, ascending, step_generator
from fedpapers.data.partition import Partition
from fedpapers.errors import InputError


def split(samples_per_client: Sequence[Indices], clients: Sequence[str], train_fraction: float, seed: int) -> Partition:
    """Split every client's samples at random into train and test.

    The number of training samples is rounded half up, then bounded such that each side has at least one. A client's
    split does not depend on the other clients.

    Args:
        samples_per_client: K index arrays, at least 2 samples each.
        clients: The K clients' names.
        train_fraction: Share of the training samples, in (0, 1).
        seed: Of the split.

    Raises:
        InputError: `train_fraction` is out of range, or a client has fewer than 2 samples.
    """
    check_train_fraction(train_fraction)
    train, test = [], []
    for k, (client, samples) in enumerate(zip(clients, samples_per_client, strict=True)):
        n = len(samples)
        if n < 2:
            raise InputError(
                f"partition: client '{client}' has {n} sample{'s' * (n != 1)}; expected at least 2, one to train and "
                f"one to test; raise the minimum of samples per client"
            )
        sides = cut(samples, min(max(int(n * train_fraction + 0.5), 1), n - 1), seed, k)
        train.append(sides[0])
        test.append(sides[1])
    return Partition(tuple(clients), tuple(train), tuple(test))


def check_train_fraction(train_fraction: float) -> None:
    """Refuse a share of training samples outside (0, 1)."""
    if not 0 < train_fraction < 1:
        raise InputError(f"partition: train_fraction is {train_fraction}; expected a number between 0 and 1")


def cut(samples: Indices, n_train: int, seed: int, client: int) -> tuple[Indices, Indices]:
    """A client's samples, `n_train` of them drawn at random and the rest, each ascending."""
    order = step_generator(Step.SPLIT, seed, client=client).permutation(samples)
    return ascending([order[:n_train]]), ascending([order[n_train:]])
