# ruff: noqa: E402
"""The task with fedpapers' engine, and what stands around it: the bound, and groups that overlap."""

from __future__ import annotations

import sys

from fedpapers.process import set_up_training

set_up_training()  # as every training job does; before PyTorch is loaded

from collections.abc import Callable
from dataclasses import replace

import torch

from benchmarks.task import CLIPPING_NORM, NOISE_MULTIPLIER, RATE, Turns
from fedpapers.federated.bench import benched, plain_sgd
from fedpapers.federated.rounds import Federation, next_release
from fedpapers.privacy.mechanism import Mechanism


def rounds(federation: Federation) -> Callable[[], None]:
    """Play one round after the other."""
    now = federation.initial_state()

    def play() -> None:
        nonlocal now
        now, _ = next_release(federation, now)

    return play


def main() -> None:
    """Play rounds when the driver says so."""
    turns = Turns()
    what, model, clients, steps, batch, threads, checked = sys.argv[1:]
    torch.set_num_threads(int(threads))
    federation = benched(model, int(clients), int(steps), int(batch), overlapping=what == "groups")
    assert federation.mechanism == Mechanism(1.0, CLIPPING_NORM, NOISE_MULTIPLIER)
    assert federation.learner.learning_rate == RATE
    quiet = replace(federation, mechanism=Mechanism(1.0, CLIPPING_NORM))
    first, _ = next_release(quiet, quiet.initial_state())
    turns.checked(first.shared[0], checked)
    play = plain_sgd(federation, model) if what == "bound" else rounds(federation)
    while turns.begin():
        play()
        turns.end()


if __name__ == "__main__":
    main()
