"""Every random draw, addressed by what it is for.

A draw depends on (seed, purpose, round, group, client) and on nothing else: not on what ran before, on how clients
are batched, on how training is cut into segments, or on what runs beside it. There is no global generator.

NumPy's PCG64 makes all draws, the noise of the mechanisms included. PyTorch's CPU generator takes 32 bits of a
seed only, so two of its streams would coincide after some ten thousand, and two equal noise vectors cancel out of
the difference of two releases. The generators are for simulation; none is cryptographically secure.
"""

from __future__ import annotations

from enum import IntEnum

import numpy as np


class Purpose(IntEnum):
    """What a draw is for. The numbers are part of every result: append, never renumber."""

    PARTITION = 1
    STRUCTURE = 2
    INIT = 3
    COHORT = 4
    BATCHES = 5
    NOISE = 6
    LAYOUT = 7
    LABELS = 8
    CHANNEL = 9
    SEEDS = 10
    REFERENCE = 12
    DATA = 20
    PERSONALISE = 30
    AUDIT = 40
    DEVICES = 50
    COMPRESSION = 51
    OVERSAMPLING = 52
    GAN = 53
    CLASSIFIER = 54
    GENERATED = 55


def generator(seed: int, purpose: Purpose, *, round: int = 0, group: int = 0, client: int = 0) -> np.random.Generator:
    """The generator of one address.

    Args:
        seed: The run's seed, 0 or more.
        purpose: What the draws are for; the noise has a stream of its own.
        round: Epoch t of the draw, from 1; 0 where there is none.
        group: Index of the group, from 0.
        client: Index of the client, from 0.
    """
    key = (int(purpose), round, group, client)
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed, spawn_key=key)))
