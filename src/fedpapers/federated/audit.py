"""Runs in which every worker does its worst to tell whether one of them took part.

Workers are stateless, as the bounds assume, but otherwise free. The source always pushes in one direction. A worker
whose nearest group is ℓ hops from the source's reads coordinate ℓ of the model that it starts from, and sends its sign,
amplified, in the next coordinate, which the next link reads. In DP-OGL+ it also answers in the coordinate that it
reads: members react to the source's un-noised update within an interval, as in the counterexample of
docs/leakage-proofs.md. All lengths are in units of the clipping norm.

`engine_views` lets the engine play such runs; `views` plays many at once, and shows un-noised models too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from fedpapers.errors import InputError, nearest
from fedpapers.federated.clients import Batch, Clients
from fedpapers.federated.cohort import Learner
from fedpapers.federated.rounds import Federation, State, rounds
from fedpapers.groups import Groups
from fedpapers.models import Layout
from fedpapers.privacy.audit import LowerBound, lower_bound
from fedpapers.privacy.group_graph import FAR, GroupGraph
from fedpapers.privacy.group_mechanisms import Training
from fedpapers.privacy.mechanism import Mechanism
from fedpapers.randomness import Purpose, generator

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

_GAIN = 100.0  # large: an update's sign is all that clipping leaves of it
_AT_ONCE = 20_000  # runs


@dataclass(frozen=True, eq=False)
class Setting:
    """A run that is to be audited.

    Attributes:
        structure: Who is in which group.
        training: Epochs T, interval S, and the algorithm.
        noise_multiplier: σ > 0 of every group.
        sampling_rate: q of every group.
        source: The worker that is in or out.
    """

    structure: Groups
    training: Training
    noise_multiplier: float
    sampling_rate: float
    source: str

    def __post_init__(self) -> None:
        if self.noise_multiplier <= 0 or not 0 < self.sampling_rate <= 1:
            raise InputError("audit: expected a noise multiplier above 0 and a sampling rate in (0, 1]")
        if self.source not in self.structure.workers:
            raise InputError(
                f"audit: there is no worker '{self.source}'; {nearest(self.source, self.structure.workers)}"
            )

    @cached_property
    def releases(self) -> list[range]:
        """The epochs, from 1, that end in each release: one by one in DP-OGL, an interval in the others."""
        length = 1 if self.training.algorithm == "dp-ogl" else self.training.interval
        return [
            range(first, min(first + length, self.training.epochs + 1))
            for first in range(1, self.training.epochs + 1, length)
        ]

    @cached_property
    def level(self) -> NDArray[np.int64]:
        """Hops of each worker from the source, without the source's own links, shape [N]; FAR if nothing gets there."""
        graph = GroupGraph.of(self.structure)
        of_class = int(graph.class_of[self.structure.workers.index(self.source)])
        alone = of_class if graph.links_alone(of_class) else None
        hops = graph.hops(graph.groups_of(of_class), alone).min(axis=0)
        return graph.nearest(hops)[graph.class_of]

    @property
    def coordinates(self) -> int:
        """P: one for each level that has workers, and one for the last of them to write in."""
        return int(self.level[self.level < FAR].max()) + 2

    @cached_property
    def reads(self) -> Floats:
        """Each worker's update before clipping is direction · (reads · start + push); zero for who is out of reach."""
        table = np.zeros((len(self.structure.workers), self.coordinates))
        for n in self._relays:
            table[n, self.level[n]] = _GAIN
        return table

    @cached_property
    def push(self) -> Floats:
        """What a worker sends however it starts, shape [N]: much from the source, a little against it from others."""
        table = np.zeros(len(self.structure.workers))
        if self.training.unnoised_inside:  # else the reactions to nothing would be the same as to the source's absence
            table[self._relays] = -1.0
        table[self._place] = _GAIN
        return table

    @cached_property
    def direction(self) -> Floats:
        """The unit vector along which each worker's updates lie, shape [N, P]."""
        table = np.zeros((len(self.structure.workers), self.coordinates))
        for n in self._relays:
            table[n, self.level[n] + 1] = 1
            table[n, self.level[n]] = self.training.unnoised_inside
        table[self._place] = np.eye(self.coordinates)[0]
        return np.asarray(table / np.maximum(np.linalg.norm(table, axis=1, keepdims=True), 1))

    @property
    def _place(self) -> int:
        return self.structure.workers.index(self.source)

    @property
    def _relays(self) -> list[int]:
        return [n for n, level in enumerate(self.level) if level < FAR and n != self._place]


@dataclass(frozen=True, eq=False)
class Draws:
    """Everything random in a batch of runs.

    Attributes:
        cohort: First epoch of a release -> who is sampled, shape [runs, M, N].
        noise: The same -> standard normal values of the release, shape [runs, M, P].
    """

    cohort: Callable[[int], Bools]
    noise: Callable[[int], Floats]

    @classmethod
    def of(cls, setting: Setting, runs: int, draw: np.random.Generator) -> Draws:
        """Draws from one generator, in the order in which they are asked for."""
        groups, workers = setting.structure.membership.shape
        return cls(
            cohort=lambda t: draw.random((runs, groups, workers), dtype=np.float32) < setting.sampling_rate,
            noise=lambda t: draw.standard_normal((runs, groups, setting.coordinates)),
        )


def views(setting: Setting, present: bool, runs: int, seed: int) -> Floats:
    """The models of each group that its members see after the start, in many runs, shape [runs, times, M, P]."""
    parts = []
    for block, first in enumerate(range(0, runs, _AT_ONCE)):
        size = min(_AT_ONCE, runs - first)
        draw = generator(seed, Purpose.AUDIT, round=block, group=int(present))
        parts.append(play(setting, present, Draws.of(setting, size, draw)))
    return np.concatenate(parts)


def play(setting: Setting, present: bool, draws: Draws) -> Floats:
    """A batch of runs with given draws, shape [runs, times, M, P]; all models start at zero."""
    models, seen = np.zeros((1, len(setting.structure.names), setting.coordinates)), []
    for epochs in setting.releases:
        within, models = _release(setting, present, draws, models, epochs)
        seen += [*within, models]
    return np.stack(seen, axis=1)


def _release(
    setting: Setting, present: bool, draws: Draws, start: Floats, epochs: range
) -> tuple[list[Floats], Floats]:
    """The un-noised models that members of a group see, if any, and the released ones, from one release to the next."""
    exchanges, first = setting.training.unnoised_inside, epochs[0]
    membership = setting.structure.membership
    cohort = draws.cohort(first) & membership & _there(setting, present)
    share = 1 / (setting.sampling_rate * membership.sum(axis=1, keepdims=True))  # public, the source counted or not
    update = _updates(setting, start, (first - 1) % setting.training.interval == 0) * cohort
    sent, models, seen = update, start, []
    for _ in epochs[1:]:
        if exchanges:
            models = models + share * _sum(setting, update)
            seen.append(models)
            update = _updates(setting, models, inter_group=False) * cohort
        sent = sent + update  # nobody's own move changes the coordinate that it reads
    norm = np.sqrt(len(epochs))
    noise = norm * setting.noise_multiplier * draws.noise(first)
    return seen, start + share * (_sum(setting, np.clip(sent, -norm, norm)) + noise)


def _there(setting: Setting, present: bool) -> Bools:
    """Whether each worker is there, shape [N]."""
    return np.array([present or worker != setting.source for worker in setting.structure.workers])


def _updates(setting: Setting, models: Floats, inter_group: bool) -> Floats:
    """How far each worker goes along its direction in each group, before clipping, shape [runs, M, N]."""
    if not inter_group:
        return np.asarray(models @ setting.reads.T + setting.push)
    membership = setting.structure.membership
    personal = np.einsum("rmp,mn->rnp", models, membership / membership.sum(axis=0), optimize=True)
    answer = np.einsum("rnp,np->rn", personal, setting.reads) + setting.push
    return np.broadcast_to(answer[:, None, :], (len(models), *membership.shape))


def _sum(setting: Setting, update: Floats) -> Floats:
    """Each group's sum, shape [runs, M, P]."""
    return np.asarray(update @ setting.direction)


def lower_bound_to(
    setting: Setting, observer: str, absent: Floats, present: Floats, delta: float, confidence: float = 0.95
) -> LowerBound:
    """What the models of an observer's groups prove about ε.

    Args:
        setting: The run.
        observer: A worker.
        absent: `views` of many runs without the source.
        present: The same with it.
        delta: δ of the statement.
        confidence: Of this one statement.
    """
    own = np.flatnonzero(setting.structure.membership[:, setting.structure.workers.index(observer)])
    without, with_source = (seen[:, :, own].reshape(len(seen), -1) for seen in (absent, present))
    return lower_bound(without, with_source, delta, confidence)


def engine_views(setting: Setting, present: bool, runs: int, seed: int) -> Floats:
    """The released models, shape [runs, releases, M, P], by the engine: one federation of copies of the structure.

    Raises:
        ValueError: The epochs are no whole number of releases.
    """
    federation = _federation(setting, present, runs, seed)
    groups, workers = len(federation.groups.names), len(federation.groups.workers)
    start = State(0, torch.zeros(groups, setting.coordinates, dtype=torch.float64), torch.zeros(workers, 0))
    seen = [state.shared.numpy() for state, _ in rounds(federation, start, setting.training.epochs)]
    return np.stack(seen).reshape(len(seen), runs, -1, setting.coordinates).swapaxes(0, 1)


def _federation(setting: Setting, present: bool, copies: int, seed: int) -> Federation:
    """Copies of the structure side by side; a worker's only sample holds its place and whether it is there."""
    structure, count = setting.structure, len(setting.structure.workers)
    groups = Groups(
        {f"{c}/{m}": tuple(f"{c}/{n}" for n in own) for c in range(copies) for m, own in structure.members.items()}
    )
    samples = np.tile(
        np.stack([np.arange(count), _there(setting, present)], axis=1).astype(np.uint8)[:, None], (copies, 1, 1)
    )
    each = tuple(np.array([n]) for n in range(len(samples)))
    clients = Clients(samples, np.zeros(len(samples), dtype=np.int64), each, each, torch.device("cpu"))
    layout = Layout({"model": torch.Size([setting.coordinates])}, setting.coordinates)
    learner = _Worst(nn.Identity(), layout, 1.0, setting)
    rounds_a_release, exchanges = len(setting.releases[0]), setting.training.unnoised_inside
    mechanism = Mechanism(
        setting.sampling_rate, float(np.sqrt(rounds_a_release)), setting.noise_multiplier, exposed=exchanges
    )
    return Federation(
        seed, groups, clients, learner, mechanism,
        local_steps=1, batch_size=1, interval=setting.training.interval,
        release_every=rounds_a_release, exchanges=exchanges,
    )  # fmt: skip


@dataclass(frozen=True)
class _Worst(Learner):
    """Local training that sends what a setting's workers send."""

    setting: Setting

    def train(self, vector: Tensor, batches: Sequence[Batch]) -> float:
        """Move the start model by the update of the worker that the sample names, if it is there."""
        place, there = (batches[0][0].double() * 255).round().flatten().int().tolist()
        far = self.setting.reads[place] @ vector.numpy() + self.setting.push[place]
        vector += there * far * torch.from_numpy(self.setting.direction[place])
        return 0.0
