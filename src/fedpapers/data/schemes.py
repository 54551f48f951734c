"""Samples dealt by label: in shards, or in proportions drawn from a Dirichlet distribution.

Each scheme is a pure function of its arguments that gives, for each client, the indices of its samples in ascending
order. No sample ever belongs to two clients.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedpapers.data.draws import Indices, Samples, Step, ascending, check_at_least, indices_by_label, step_generator
from fedpapers.errors import InputError


def by_shards(labels: NDArray[np.integer[Any]], clients: int, shards_per_client: int, seed: int) -> Samples:
    """Sort by label, cut into equal shards, deal each client as many (McMahan et al., arXiv 1602.05629, Section 3).

    Args:
        labels: Integers, shape [n].
        clients: Number of clients K.
        shards_per_client: Shards dealt to each; shards differ by at most one sample.
        seed: Of the deal.

    Returns:
        K index arrays; each sample is in exactly one.

    Raises:
        InputError: A number is below 1, or there are more shards than samples.
    """
    check_at_least("shards", 1, clients=clients, shards_per_client=shards_per_client)
    count = clients * shards_per_client
    if count > len(labels):
        raise InputError(
            f"partition shards: {clients} clients with {shards_per_client} shards each of {len(labels)} samples; "
            f"expected clients · shards_per_client ≤ {len(labels)}"
        )
    shards = np.array_split(np.argsort(np.asarray(labels), kind="stable"), count)
    deal = step_generator(Step.DEAL, seed).permutation(count).reshape(clients, shards_per_client)
    return tuple(ascending([shards[shard] for shard in hand]) for hand in deal)


def by_dirichlet(
    labels: NDArray[np.integer[Any]], clients: int, alpha: float, minimum: int, attempts: int, seed: int
) -> Samples:
    """Divide each label over the clients in proportions drawn from Dirichlet(α) (Hsu et al., arXiv 1909.06335).

    The draw is repeated until every client has `minimum` samples; what is accepted is thus a little less skewed
    than the Dirichlet distribution itself.

    Args:
        labels: Integers, shape [n].
        clients: Number of clients K.
        alpha: Concentration α of the symmetric distribution over K clients; small means skewed.
        minimum: Samples that each client must have.
        attempts: Draws made at most.
        seed: Of the draws.

    Returns:
        K index arrays; each sample is in exactly one.

    Raises:
        InputError: α is not positive and finite, another number is below 1 (`minimum`: below 0), or no attempt gave
            every client its minimum.
    """
    check_at_least("dirichlet", 1, clients=clients, attempts=attempts)
    check_at_least("dirichlet", 0, minimum=minimum)
    if not 0 < alpha < float("inf"):
        raise InputError(f"partition dirichlet: alpha is {alpha}; expected a positive number")
    draw = step_generator(Step.DEAL, seed)
    by_label = indices_by_label(np.asarray(labels))
    best = 0
    # Without enough samples for everybody no draw can succeed.
    for _ in range(attempts if clients * minimum <= len(labels) else 0):
        samples = _dirichlet_draw(by_label, clients, alpha, draw)
        smallest = min(map(len, samples))
        if smallest >= minimum:
            return samples
        best = max(best, smallest)
    reached = (
        f"the smallest client had at best {best} in {attempts} attempts"
        if clients * minimum <= len(labels)
        else f"there are {len(labels)} in all"
    )
    raise InputError(
        f"partition dirichlet: alpha {alpha}, {clients} clients: {reached}; expected a minimum of {minimum} samples "
        f"each within {attempts} attempts; raise alpha or attempts, or lower minimum or clients"
    )


def _dirichlet_draw(
    by_label: Sequence[Indices], clients: int, alpha: float, draw: np.random.Generator
) -> tuple[Indices, ...]:
    hands: list[list[Indices]] = [[] for _ in range(clients)]
    for indices in by_label:
        ends = np.cumsum(_proportions(clients, alpha, draw)) * len(indices)
        parts = np.split(draw.permutation(indices), np.rint(ends[:-1]).astype(np.int64))
        for hand, part in zip(hands, parts, strict=True):
            hand.append(part)
    return tuple(ascending(hand) for hand in hands)


def _proportions(clients: int, alpha: float, draw: np.random.Generator) -> NDArray[np.float64]:
    """One draw of Dirichlet(α, …, α), shape [clients].

    As Gamma(α) underflows to 0 for small α, it is drawn by its logarithm: log G(α) = log G(α + 1) − E / α, E
    exponential. Beyond 1e±300 α is its limit for all that a float can tell.
    """
    alpha = min(max(alpha, 1e-300), 1e300)
    logs = np.log(draw.standard_gamma(alpha + 1, clients)) - draw.standard_exponential(clients) / alpha
    weights = np.exp(logs - logs.max())
    return np.asarray(weights / weights.sum(), dtype=np.float64)
