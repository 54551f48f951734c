"""The engine: one round of any algorithm, as a pure function of (state, round).

Notation of arXiv 2503.04054: groups m with models θ_m, clients n, epochs t = 1, 2, … (here: rounds), inter-group
epochs t ≡ 1 (mod S), personal models φ_n, the mean of θ_m over the groups of n.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from fedpapers.federated.clients import Batch, Clients
from fedpapers.federated.cohort import CohortResult, Learner, Participation, Update, clipped_sums, train_cohort
from fedpapers.groups import Groups
from fedpapers.memory import LARGE, room
from fedpapers.models import initial_vector
from fedpapers.privacy.mechanism import Mechanism
from fedpapers.randomness import Purpose, generator


@dataclass(frozen=True)
class State:
    """All that a run carries from round to round.

    Attributes:
        round: Rounds done.
        shared: Model θ_m of each group, shape [M, P].
        private: Private parameters of each client, shape [N, size − P].
    """

    round: int
    shared: Tensor
    private: Tensor


@dataclass(frozen=True)
class Federation:
    """Everything that stays as it is during a run.

    Attributes:
        seed: The run's seed.
        groups: The groups that train; clients are their workers, in this order.
        clients: The clients' samples.
        learner: The network and how a client trains it.
        mechanism: How each group releases its sum.
        local_steps: L, mini-batch steps of a client in a round.
        batch_size: Samples of a mini-batch.
        interval: S, rounds between inter-group epochs.
        mixing: What a group's update is added to: its own model (`update`, as in the paper) or the mean of the
            models that its members start from (`model`).
        release_every: Rounds from one release to the next: 1, or S for mechanisms that release once an interval.
        exchanges: Whether members exchange models, unclipped and without noise, in the rounds between.
    """

    seed: int
    groups: Groups
    clients: Clients
    learner: Learner
    mechanism: Mechanism
    local_steps: int
    batch_size: int
    interval: int = 1
    mixing: Literal["update", "model"] = "update"
    release_every: int = 1
    exchanges: bool = False

    def __post_init__(self) -> None:
        if self.exchanges and self.release_every > 1 and not self.mechanism.exposed:
            raise ValueError("members see sums without noise, and the mechanism's event does not say so")

    @cached_property
    def patterns(self) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
        """The distinct sets of groups that clients belong to, shape [U, M], and for each client which one it is."""
        patterns, index = np.unique(self.groups.membership.T, axis=0, return_inverse=True)
        return patterns, index.reshape(-1)

    def initial_state(self) -> State:
        """The public start: the same model θ_m^1 in every group, and the same private layers in every client."""
        layout = self.learner.layout
        vector = initial_vector(layout, generator(self.seed, Purpose.INIT)).to(self.clients.device)
        shared, private = vector[: layout.shared_size], vector[layout.shared_size :].clone()  # a view would keep both
        return State(
            round=0,
            shared=shared.expand(len(self.groups.names), -1),
            private=private.expand(len(self.groups.workers), -1),
        )

    def expected_cohort(self, group: int) -> float:
        """π_m·|N_m|, the public number by which a group's sum is divided."""
        return self.mechanism.sampling_rate * int(self.groups.membership[group].sum())

    def personal_models(self, state: State) -> list[Tensor]:
        """For each pattern of memberships the mean of its groups' models [P]: φ_n of all clients that have it."""
        return [mean_of(state.shared, np.flatnonzero(pattern)) for pattern in self.patterns[0]]


@dataclass(frozen=True)
class RoundSummary:
    """What happened in a round, for people; no part of the next one.

    Attributes:
        cohort: Participations.
        diverged: Updates that were not finite and counted as zero.
        clipped: Share of the updates that were longer than the clipping norm; None if there were none.
        update_norm: Median norm of the updates before clipping; None if there were none.
        loss: Mean loss of the participants before they trained; None if there were none.
    """

    cohort: int = 0
    diverged: int = 0
    clipped: float | None = None
    update_norm: float | None = None
    loss: float | None = None


def rounds(federation: Federation, state: State, last: int) -> Iterator[tuple[State, RoundSummary]]:
    """Go on from `state` to round `last`, giving the state after each release.

    Raises:
        ValueError: No release falls on `last`.
    """
    if (last - state.round) % federation.release_every:
        raise ValueError(f"rounds {state.round} to {last} are no multiple of {federation.release_every}")
    while state.round < last:
        state, summary = next_release(federation, state)
        yield state, summary


def next_release(federation: Federation, state: State) -> tuple[State, RoundSummary]:
    """Start models, cohorts, local training, release of each group's sum, update: one round, or one interval."""
    t = state.round + 1
    starts = _start_models(federation, state, t)
    blocks = _blocks(state.shared)
    several = len(blocks) > 1
    # a single block replaces it by its sums; the old state is never written to
    shared = room(*state.shared.shape, like=state.shared) if several else state.shared
    private = state.private.clone() if state.private.numel() else state.private
    norms: list[float] = []
    losses: list[float] = []
    for groups in blocks:
        bases = [_base(federation, state, starts[m], m) for m in groups]
        cohort = [one for m in groups for one in _participations(federation, state, t, m, starts[m], groups)]
        if federation.release_every == 1:
            like = state.shared[groups.start : groups.stop]
            result = train_cohort(federation.learner, cohort, federation.mechanism.clip, like)
        else:
            result = _train_interval(federation, groups, cohort, bases, t)
        _release(federation, t, groups, cohort, result.sums, bases)
        if several:
            shared[groups.start : groups.stop] = result.sums
        else:  # the sums are the new models: of wide networks every copy counts
            shared = result.sums
        for one, new in zip(cohort, result.private, strict=True):
            private[one.client] = new
        norms += result.norms
        losses += result.losses
    summary = _summary(norms, losses, federation.mechanism)
    return State(state.round + federation.release_every, shared, private), summary


def _release(
    federation: Federation, t: int, groups: range, cohort: list[Participation], sums: Tensor, bases: list[Tensor]
) -> None:
    """Turn each group's sum into its new model, in place: with noise, divided by the expected cohort, on its base."""
    for row, m in enumerate(groups):
        drawn = [one.client for one in cohort if one.group == row]
        release = federation.mechanism.add_noise(sums[row], _noise_draws(federation, t, m, drawn))
        torch.add(release.div_(federation.expected_cohort(m)), bases[row], out=sums[row])


def _blocks(models: Tensor) -> list[range]:
    """The groups, as many at a time as have room in memory for their sums."""
    count, size = models.shape
    step = max(1, LARGE // max(1, size * models.itemsize))
    return [range(first, min(first + step, count)) for first in range(0, count, step)]


def _train_interval(
    federation: Federation, groups: range, cohort: list[Participation], bases: list[Tensor], t: int
) -> CohortResult:
    """The S rounds of an interval with one cohort: each participant's updates add up and are clipped as one.

    In between the group's model takes the unclipped updates without noise and is the next start (DP-OGL+), or each
    participant goes on from where it is (`exchanges` off).
    """
    models, now = torch.stack(bases), cohort
    total = torch.zeros(len(cohort), federation.learner.layout.shared_size, device=models.device)
    updates: list[Update] = []
    for epoch in range(t, t + federation.release_every):
        updates = [federation.learner.update(one) for one in now]
        for k, (one, update) in enumerate(zip(now, updates, strict=True)):
            total[k] += update.shared
            models[one.group] += update.shared / federation.expected_cohort(groups[one.group])
        means = [model.clone() for model in models]
        now = [
            replace(
                one,
                start=means[one.group] if federation.exchanges else one.start + update.shared,
                private=update.private,
                batches=_batches(federation, epoch + 1, groups[one.group], one.client),
            )
            for one, update in zip(now, updates, strict=True)
        ]
    summed = [replace(update, shared=total[k]) for k, update in enumerate(updates)]
    return clipped_sums(cohort, summed, federation.mechanism.clip, torch.stack(bases))


def mean_of(models: Tensor, rows: NDArray[np.int64]) -> Tensor:
    """The mean [P] of some rows of [M, P]; of a single row that row itself."""
    return models[int(rows[0])] if len(rows) == 1 else models[torch.from_numpy(rows)].mean(0)


def _start_models(federation: Federation, state: State, t: int) -> list[dict[int, Tensor]]:
    """For each group the model [P] that a client begins with, by the client's pattern of memberships."""
    patterns, _ = federation.patterns
    if (t - 1) % federation.interval == 0:
        personal = federation.personal_models(state)
        return [{u: personal[u] for u in np.flatnonzero(column).tolist()} for column in patterns.T]
    return [dict.fromkeys(np.flatnonzero(column).tolist(), state.shared[m]) for m, column in enumerate(patterns.T)]


def _participations(
    federation: Federation, state: State, t: int, m: int, starts: dict[int, Tensor], groups: range
) -> Iterator[Participation]:
    members = np.flatnonzero(federation.groups.membership[m])
    drawn = federation.mechanism.sample(len(members), generator(federation.seed, Purpose.COHORT, round=t, group=m))
    for n in members[drawn].tolist():
        yield Participation(
            group=groups.index(m),
            client=n,
            start=starts[federation.patterns[1][n]],
            private=state.private[n],
            batches=_batches(federation, t, m, n),
        )


def _batches(federation: Federation, t: int, m: int, n: int) -> Callable[[], list[Batch]]:
    """What loads a client's mini-batches of one epoch in one group; the same at each call."""

    def load() -> list[Batch]:
        draw = generator(federation.seed, Purpose.BATCHES, round=t, group=m, client=n)
        return federation.clients.batches(n, federation.local_steps, federation.batch_size, draw)

    return load


def _base(federation: Federation, state: State, starts: dict[int, Tensor], m: int) -> Tensor:
    """What a group's release is added to [P]: its model, or the mean of the models that its members start from."""
    return state.shared[m] if federation.mixing == "update" else _mean_start(federation, starts, m)


def _mean_start(federation: Federation, starts: dict[int, Tensor], m: int) -> Tensor:
    """The mean [P] over a group's members of the models that they start from."""
    members = np.flatnonzero(federation.groups.membership[m])
    share = np.bincount(federation.patterns[1][members]) / len(members)
    return sum((float(share[u]) * start for u, start in starts.items()), torch.zeros_like(starts[min(starts)]))


def _noise_draws(federation: Federation, t: int, m: int, drawn: list[int]) -> list[np.random.Generator]:
    """The generators of one release's noise: the master's, or one for each sampled client (from 1, not 0)."""
    address = partial(generator, federation.seed, Purpose.NOISE, round=t, group=m)
    if federation.mechanism.noise == "central":
        return [address()]
    return [address(client=n + 1) for n in drawn]


def _summary(norms: list[float], losses: list[float], mechanism: Mechanism) -> RoundSummary:
    if not norms:
        return RoundSummary()
    of_updates = np.array(norms)
    return RoundSummary(
        cohort=len(norms),
        diverged=int(np.sum(~np.isfinite(of_updates))),
        clipped=float(np.mean(of_updates > mechanism.clipping_norm)),
        update_norm=float(np.median(of_updates)),
        loss=float(np.mean(losses)),
    )
