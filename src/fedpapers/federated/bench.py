"""How fast the engine is, beside the least that its arithmetic costs."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from torch.nn.functional import cross_entropy

from fedpapers.errors import InputError, nearest
from fedpapers.federated.clients import Clients
from fedpapers.federated.cohort import Learner
from fedpapers.federated.rounds import Federation, next_release
from fedpapers.groups import ring, single
from fedpapers.memory import peak_memory_mib
from fedpapers.models import MODELS, Layout, build
from fedpapers.privacy.mechanism import Mechanism
from fedpapers.randomness import Purpose, generator

# Name -> network, shape of an image, classes.
CASES: Mapping[str, tuple[str, tuple[int, ...], int]] = {
    "femnist": ("femnist-cnn", (28, 28), 62),
    "celeba": ("celeba-cnn", (84, 84, 3), 2),
    "mnist": ("mnist-cnn", (28, 28), 10),
}
_RATE = 0.05
_WARM_UP = 3  # rounds: from the second one on there is an old model beside the new one
_MOST_SAMPLES, _MOST_THREADS = 10_000_000, 1_024


def bench_cohort(model: str, clients: int, steps: int, batch: int, threads: int, rounds: int = 7) -> dict[str, Any]:
    """Time rounds of DPFedAvg in which all clients take part, in turn with the bound.

    A round is local training, clipping, noise and update, without evaluation. The bound is plain SGD of one network
    on one batch of all the cohort's samples for each local step.

    Args:
        model: `femnist`, `celeba` or `mnist`.
        clients: K.
        steps: L, local steps.
        batch: Samples of a client's mini-batch.
        threads: Of PyTorch.
        rounds: Rounds to time, after some to warm up.

    Returns:
        `{"ms_per_round": {"median", "min", "max"}, "bound_ms", "peak_memory_mib"}`; the memory is that of the rounds
        and their data, above what the imports take.

    Raises:
        InputError: A number is below 1, or the model is not known.
    """
    numbers = {"clients": clients, "steps": steps, "batch": batch, "threads": threads, "rounds": rounds}
    for name, number in numbers.items():
        if number < 1:
            raise InputError(f"--{name} is {number}; expected 1 or more")
    if clients * steps * batch > _MOST_SAMPLES:
        raise InputError(f"--clients × --steps × --batch is above {_MOST_SAMPLES:,}; expected what fits into memory")
    if threads > _MOST_THREADS:
        raise InputError(f"--threads is {threads}; expected at most {_MOST_THREADS}")
    if model not in CASES:
        raise InputError(f"--model: '{model}' is not known; {nearest(model, CASES)}")
    torch.set_num_threads(threads)
    before = peak_memory_mib()
    federation = benched(model, clients, steps, batch)
    state = federation.initial_state()
    for _ in range(_WARM_UP):
        state, _ = next_release(federation, state)
    peak = peak_memory_mib() - before
    bound = plain_sgd(federation, model)
    _milliseconds(bound)
    ours, plain = [], []
    for _ in range(rounds):
        ours.append(_milliseconds(lambda: next_release(federation, state)))
        plain.append(_milliseconds(bound))
    return {
        "ms_per_round": {"median": statistics.median(ours), "min": min(ours), "max": max(ours)},
        "bound_ms": statistics.median(plain),
        "peak_memory_mib": peak,
    }


def format_bench(report: Mapping[str, Any]) -> str:
    """The report as a line for people."""
    spent, bound = report["ms_per_round"], report["bound_ms"]
    return (
        f"{spent['median']:.1f} ms a round ({spent['min']:.1f} to {spent['max']:.1f}),"
        f" {spent['median'] / bound:.2f} x the bound of {bound:.1f} ms; {report['peak_memory_mib']:.0f} MiB"
    )


def benched(model: str, clients: int, steps: int, batch: int, overlapping: bool = False) -> Federation:
    """A federation of random pixels in which everybody takes part, with as many samples as a round uses.

    Args:
        model: One of CASES.
        clients: K.
        steps: L, local steps.
        batch: Samples of a client's mini-batch.
        overlapping: Five groups in a ring, in place of one, with K participations in all: each shares two members
            with the next one.
    """
    name, image, classes = CASES[model]
    groups = ring(5, clients // 5, 2) if overlapping else single(clients)
    draw = generator(0, Purpose.DATA)
    workers = len(groups.workers)
    pixels = draw.integers(0, 256, (workers * steps * batch, *image), dtype=np.uint8)
    own = tuple(np.split(np.arange(len(pixels)), workers))
    network = build(name, classes)
    return Federation(
        seed=0,
        groups=groups,
        clients=Clients(pixels, draw.integers(0, classes, len(pixels)), own, own, torch.device("cpu")),
        learner=Learner(network, Layout.of(network), _RATE),
        mechanism=Mechanism(sampling_rate=1.0, clipping_norm=0.5, noise_multiplier=1.0),
        local_steps=steps,
        batch_size=batch,
    )


def plain_sgd(federation: Federation, model: str) -> Callable[[], None]:
    """The bound: plain SGD on the samples of a round, which are loaded beforehand."""
    data = federation.clients
    samples = np.concatenate([own.reshape(federation.local_steps, -1) for own in data.train], axis=1)
    batches = [data.load(now) for now in samples]
    name, _, classes = CASES[model]
    network = MODELS[name](classes)
    torch.nn.utils.vector_to_parameters(federation.initial_state().shared[0], network.parameters())
    sgd = torch.optim.SGD(network.parameters(), lr=_RATE)

    def train() -> None:
        for images, labels in batches:
            sgd.zero_grad()
            torch.autograd.backward(cross_entropy(network(images), labels))
            sgd.step()

    return train


def _milliseconds(work: Callable[[], Any]) -> float:
    started = time.perf_counter()
    work()
    return 1000 * (time.perf_counter() - started)
