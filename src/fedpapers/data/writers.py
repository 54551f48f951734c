"""Writers as clients, as LEAF has them: a data set sampled by writer, each writer a client, its samples split."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedpapers.data.draws import Indices, Samples, Step, check_at_least, step_generator
from fedpapers.data.partition import Partition
from fedpapers.data.split import check_train_fraction, cut
from fedpapers.errors import InputError


def sample_writers(counts: Sequence[int], fraction: float, min_samples: int, seed: int) -> Indices:
    """LEAF's sampling of a data set: which writers are taken, and how many samples of each.

    Writers are taken in random order until they have `fraction` of all samples; of the last one only as many (its
    first) as are lacking. Then those with fewer than `min_samples` are left out (`sample.py --niid` and
    `remove_users.py` of github.com/TalwalkarLab/leaf). LEAF does so in each of its files; we take all files together,
    because other formats are cut into files differently.

    Args:
        counts: Samples of each writer.
        fraction: Share of the samples, in (0, 1]; 1 takes all.
        min_samples: At least 1.
        seed: Of the order.

    Returns:
        For each writer the number of samples taken, 0 for those left out; shape [writers].

    Raises:
        InputError: A number is out of its range, or no writer is left.
    """
    if not 0 < fraction <= 1:
        raise InputError(f"sampling of writers: fraction is {fraction}; expected a number above 0, at most 1")
    check_at_least("writer", 1, min_samples=min_samples)
    sizes = np.asarray(counts, dtype=np.int64)
    taken = sizes.copy()
    if fraction < 1:
        order = step_generator(Step.SAMPLE, seed).permutation(len(sizes))
        before = np.cumsum(sizes[order]) - sizes[order]
        taken[order] = np.clip(int(fraction * sizes.sum()) - before, 0, sizes[order])
    taken[taken < min_samples] = 0
    if not taken.any():
        raise InputError(
            f"sampling of writers: with fraction {fraction} none of {len(sizes)} writers has min_samples "
            f"{min_samples}; expected at least one; the largest has {sizes.max(initial=0)} samples in all"
        )
    return taken


def by_writer(
    writers: NDArray[np.integer[Any]], writer_names: Sequence[str], minimum: int
) -> tuple[tuple[str, ...], Samples]:
    """Make each writer a client, in the order of `writer_names`.

    Args:
        writers: Integers, shape [n], each an index into `writer_names`.
        writer_names: The writers' names.
        minimum: Writers with fewer samples are left out, and their samples with them; at least 1.

    Returns:
        The names of the K writers that are left, and their K index arrays.

    Raises:
        InputError: `minimum` is below 1, or no writer is left.
    """
    check_at_least("writer", 1, minimum=minimum)
    writers = np.asarray(writers)
    counts = np.bincount(writers, minlength=len(writer_names))
    everybody = np.split(np.argsort(writers, kind="stable"), np.cumsum(counts)[:-1])
    kept = np.flatnonzero(counts >= minimum)
    if len(kept) == 0:
        raise InputError(
            f"partition writer: none of {len(writer_names)} writers has the minimum of {minimum} samples; "
            f"expected at least one; the largest has {counts.max(initial=0)}"
        )
    return tuple(writer_names[k] for k in kept.tolist()), tuple(everybody[k] for k in kept)


def split_as_leaf(
    samples_per_client: Sequence[Indices], clients: Sequence[str], train_fraction: float, seed: int
) -> Partition:
    """Split every client's samples as LEAF's `split_data.py --by_sample` does: as `split`, but rounded down.

    A client has at least 1 training sample; clients with fewer than 2 samples are dropped.

    Args:
        samples_per_client: K index arrays.
        clients: The K clients' names.
        train_fraction: Share of the training samples, in (0, 1).
        seed: Of the split.

    Raises:
        InputError: `train_fraction` is out of range, or no client is left.
    """
    check_train_fraction(train_fraction)
    kept = [k for k, samples in enumerate(samples_per_client) if len(samples) >= 2]
    if not kept:
        raise InputError(f"partition: none of {len(clients)} clients has 2 samples; expected at least one to split")
    train, test = [], []
    for k in kept:
        samples = samples_per_client[k]
        sides = cut(samples, max(1, int(train_fraction * len(samples))), seed, k)
        train.append(sides[0])
        test.append(sides[1])
    return Partition(tuple(clients[k] for k in kept), tuple(train), tuple(test))
