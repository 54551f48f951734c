"""Runs in which every worker does its worst to tell whether one of them took part.

Workers are stateless, as the bounds assume, but otherwise free. The source always pushes in one direction. A worker
whose nearest group is ℓ hops from the source's reads coordinate ℓ of the model that it starts from, and sends its sign,
amplified, in the next coordinate, which the next link reads. In DP-OGL+ it also answers in the coordinate that it
reads: members react to the source's un-noised update within an interval, as in the counterexample of
docs/leakage-proofs.md. All lengths are in units of the clipping norm.

The engine is the slow way (`engine_views`); `views` does the same for many runs at once, and knows DP-OGL+ too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

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
from fedpapers.privacy.divergence import ORDERS, epsilon
from fedpapers.privacy.exact import LinearRun
from fedpapers.privacy.group_graph import FAR, GroupGraph
from fedpapers.privacy.group_mechanisms import Training
from fedpapers.privacy.leakage import Leakage, Source
from fedpapers.privacy.mechanism import Mechanism
from fedpapers.randomness import Purpose, generator

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

_GAIN = 100.0  # large: an update's sign is all that clipping leaves of it
_AT_ONCE = 20_000  # runs
_BOUNDS = ("naive", "delay", "cut", "percolation", "paper")
_RESPONSE = 1.0  # of the linear reference: local training ends at a worker's own optimum


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

    @property
    def played(self) -> Training:
        """The run as the simulation plays it: DP-OGL+ as it is, all else as the DP-OGL run with the same releases."""
        return self.training if self.training.unnoised_inside else self.training.plain()

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
        cohort: Epoch -> who is sampled, shape [runs, M, N].
        noise: Epoch -> standard normal values for each release, shape [runs, M, P].
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
    """The models of each group after each epoch in many runs, shape [runs, T, M, P]."""
    parts = []
    for block, first in enumerate(range(0, runs, _AT_ONCE)):
        size = min(_AT_ONCE, runs - first)
        draw = generator(seed, Purpose.AUDIT, round=block, group=int(present))
        parts.append(play(setting, present, Draws.of(setting, size, draw)))
    return np.concatenate(parts)


def play(setting: Setting, present: bool, draws: Draws) -> Floats:
    """A batch of runs with given draws, shape [runs, T, M, P]; all models start at zero."""
    step = _interval if setting.training.unnoised_inside else _epoch
    epochs = setting.played.epochs if step is _epoch else setting.played.intervals
    models, seen = np.zeros((1, len(setting.structure.names), setting.coordinates)), []
    for number in range(1, epochs + 1):
        after = step(setting, present, draws, models, number)
        models = after[-1]
        seen += after
    return np.stack(seen, axis=1)


def _epoch(setting: Setting, present: bool, draws: Draws, models: Floats, t: int) -> list[Floats]:
    """The models after epoch t of DP-OGL."""
    cohort = draws.cohort(t) & _trains(setting, present)
    update = _updates(setting, models, (t - 1) % setting.played.interval == 0) * cohort
    total = _sum(setting, np.clip(update, -1, 1)) + setting.noise_multiplier * draws.noise(t)
    return [models + _share(setting) * total]


def _interval(setting: Setting, present: bool, draws: Draws, models: Floats, number: int) -> list[Floats]:
    """The models after each epoch of an interval of DP-OGL+: un-noised but for the last, which is the release."""
    first = (number - 1) * setting.training.interval + 1
    last = min(number * setting.training.interval, setting.training.epochs)
    cohort = draws.cohort(first) & _trains(setting, present)
    start, sent, seen = models, np.zeros(cohort.shape), []
    for t in range(first, last + 1):
        update = _updates(setting, models, t == first) * cohort
        sent = sent + update
        models = models + _share(setting) * _sum(setting, update)
        seen.append(models)
    norm = np.sqrt(last - first + 1)
    total = _sum(setting, np.clip(sent, -norm, norm)) + norm * setting.noise_multiplier * draws.noise(last)
    return [*seen[:-1], start + _share(setting) * total]


def _trains(setting: Setting, present: bool) -> Bools:
    """Whether a worker, if sampled, sends anything in a group, shape [M, N]."""
    there = np.array(setting.structure.workers) != setting.source
    return np.asarray(setting.structure.membership & (there | present))


def _share(setting: Setting) -> Floats:
    """What each group multiplies its sum by, 1 / (q |N_m|), shape [M, 1]; the same with the source and without."""
    return np.asarray(1 / (setting.sampling_rate * setting.structure.membership.sum(axis=1, keepdims=True)))


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


def lower_bound_to(setting: Setting, observer: str, absent: Floats, present: Floats, delta: float) -> LowerBound:
    """What the models of an observer's groups prove about ε.

    Args:
        setting: The run.
        observer: A worker.
        absent: `views` of many runs without the source.
        present: The same with it.
        delta: δ of the statement.
    """
    own = np.flatnonzero(setting.structure.membership[:, setting.structure.workers.index(observer)])
    without, with_source = (seen[:, :, own].reshape(len(seen), -1) for seen in (absent, present))
    return lower_bound(without, with_source, delta)


def comparison(setting: Setting, observers: Sequence[str], runs: int, seed: int, delta: float) -> list[dict[str, Any]]:
    """All that is known of ε from the source to some observers, as rows of a table.

    Args:
        setting: The run.
        observers: Workers, in the order of the rows.
        runs: Simulated runs with the source, and as many without.
        seed: Of the simulation.
        delta: δ of all ε.

    Returns:
        `algorithm`, `observer`, `distance` (hops, FAR if there is no path), `quantity` and `epsilon`. Quantities: the
        upper bounds of `fedpapers leakage`; `audit`, a lower bound with 95 % confidence each; with q = 1 also `exact`,
        the linear-quadratic reference.
    """
    structure = setting.structure
    absent, present = (views(setting, there, runs, seed) for there in (False, True))
    each = len(structure.names)
    whole = Leakage(
        structure, [setting.noise_multiplier] * each, [setting.sampling_rate] * each, setting.training, delta
    )
    class_of = dict(zip(structure.workers, whole.graph.class_of.tolist(), strict=True))
    source = Source(whole, class_of[setting.source])
    bounds = source.bounds()
    rows = []
    for observer in observers:
        known = {name: float(bounds[name][class_of[observer]]) for name in _BOUNDS if name in bounds}
        known["audit"] = lower_bound_to(setting, observer, absent, present, delta).epsilon
        if setting.sampling_rate == 1:
            known["exact"] = _exact(setting, observer, delta)
        where = {"observer": observer, "distance": int(source.distance[class_of[observer]])}
        rows += [
            {"algorithm": setting.training.algorithm, **where, "quantity": name, "epsilon": value}
            for name, value in known.items()
        ]
    return rows


def _exact(setting: Setting, observer: str, delta: float) -> float:
    """ε of the linear-quadratic run, by the same conversion from Rényi divergences as the bounds."""
    structure = setting.structure
    response = dict.fromkeys(structure.workers, _RESPONSE)
    noise = [setting.noise_multiplier] * len(structure.names)
    run = LinearRun(structure, setting.played, response, noise, setting.source)
    return float(epsilon(ORDERS / 2 * run.worst_divergence(observer), delta))


def engine_views(setting: Setting, present: bool, runs: int, seed: int) -> Floats:
    """The same as `views`, by the engine itself: one federation of many copies of the structure.

    Raises:
        ValueError: The algorithm is not DP-OGL or equal to it.
    """
    if setting.played.algorithm != "dp-ogl":
        raise ValueError(f"the engine plays DP-OGL; got '{setting.training.algorithm}'")
    federation = _federation(setting, present, runs, seed)
    groups, workers = len(federation.groups.names), len(federation.groups.workers)
    start = State(0, torch.zeros(groups, setting.coordinates, dtype=torch.float64), torch.zeros(workers, 0))
    seen = [state.shared.numpy() for state, _ in rounds(federation, start, setting.played.epochs)]
    return np.stack(seen).reshape(len(seen), runs, -1, setting.coordinates).swapaxes(0, 1)


def _federation(setting: Setting, present: bool, copies: int, seed: int) -> Federation:
    """Copies of the structure side by side; a worker's only sample holds its place and whether it is there."""
    structure, count = setting.structure, len(setting.structure.workers)
    groups = Groups(
        {f"{c}/{m}": tuple(f"{c}/{n}" for n in own) for c in range(copies) for m, own in structure.members.items()}
    )
    there = np.ones(count, dtype=np.uint8)
    there[structure.workers.index(setting.source)] = present
    samples = np.tile(np.stack([np.arange(count, dtype=np.uint8), there], axis=1)[:, None], (copies, 1, 1))
    each = tuple(np.array([n]) for n in range(len(samples)))
    clients = Clients(samples, np.zeros(len(samples), dtype=np.int64), each, each, torch.device("cpu"))
    layout = Layout({"model": torch.Size([setting.coordinates])}, setting.coordinates)
    learner = _Worst(nn.Identity(), layout, 1.0, setting)
    mechanism = Mechanism(setting.sampling_rate, 1.0, setting.noise_multiplier)
    return Federation(seed, groups, clients, learner, mechanism, 1, 1, setting.played.interval)


@dataclass(frozen=True)
class _Worst(Learner):
    """Local training that sends what a setting's workers send."""

    setting: Setting

    def train(self, vector: Tensor, batches: Sequence[Batch]) -> tuple[Tensor, float]:
        """The start model moved by the update of the worker that the sample names, if it is there."""
        place, there = (batches[0][0].double() * 255).round().flatten().int().tolist()
        far = self.setting.reads[place] @ vector.numpy() + self.setting.push[place]
        return vector + there * far * torch.from_numpy(self.setting.direction[place]), 0.0
