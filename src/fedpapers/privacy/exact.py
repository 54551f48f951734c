"""What DP-OGL and DP-OGL+ leak exactly in linear-quadratic runs: a reference that every bound must stay above.

Models are numbers, losses quadratic, everybody takes part (π = 1), clipping norms are 1. Local training takes a worker
from φ to φ - Λ(φ - b), so models are affine in what the source sends and in the noise; clipping is inactive for all
others. Derivation and counterexample: docs/leakage-proofs.md.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls

from fedpapers.groups import Groups
from fedpapers.privacy.gdp import gaussian_epsilon
from fedpapers.privacy.group_mechanisms import Training
from fedpapers.privacy.quadrature import Array

_DEPENDENT = 1e-10  # singular values below this share of the largest are zero
_OUT_OF_RANGE = 1e-8  # so far from the range of the noise, relative, is not rounding
_MOST_SIGNS = 13  # for so many inputs every combination of signs is tried
_SWEEPS = 50


@dataclass(frozen=True, eq=False)
class LinearRun:
    """A linear-quadratic run and the worker whose data leak.

    Attributes:
        structure: Who is in which group.
        training: Epochs T, interval S, and `dp-ogl` or `dp-ogl-plus`.
        response: Λ of each worker: the share of the way to its own optimum that its local training covers.
        noise: Each group's noise multiplier, above 0, in the order of the groups.
        source: The worker.
        stays: Whether the source trains in both worlds with other optima (replace-one), rather than that it sends
            clipped updates in one world and nothing in the other (add-or-remove-one).
    """

    structure: Groups
    training: Training
    response: Mapping[str, float]
    noise: Sequence[float]
    source: str
    stays: bool = False

    def transfer(self, observer: str) -> Array | None:
        """W with D_α = α/2 · |W x|² for the source's updates x, |x| ≤ 1; None if the noise does not cover them.

        The observer's models are C_x x + C_ξ ξ with standard normal ξ, and W x is the shortest v with C_ξ v = C_x x.
        Columns are the source's groups and epochs, x[m · T + t]. In DP-OGL+ an input is 1/√S of an update, so that
        an interval's updates add up to at most √S.
        """
        by_input, by_noise = self._view(observer)
        u, size, v = np.linalg.svd(by_noise, full_matrices=False)
        kept = size > _DEPENDENT * size.max(initial=0)
        transfer = v[kept].T @ ((u[:, kept].T @ by_input) / size[kept, None])
        missed = np.abs(by_noise @ transfer - by_input).max(initial=0)
        return None if missed > _OUT_OF_RANGE * np.abs(by_input).max(initial=0) else np.asarray(transfer)

    def divergence(self, observer: str, inputs: Array | float = 1.0) -> float:
        """D_2 of the observer's view for given updates of the source; D_α is α/2 times it."""
        transfer = self.transfer(observer)
        if transfer is None:
            return np.inf
        return float(np.sum((transfer @ np.broadcast_to(inputs, transfer.shape[1])) ** 2))

    def worst_divergence(self, observer: str) -> float:
        """The largest D_2 over updates of norm at most 1; beyond a few inputs a local maximum.

        A convex function is largest where every input is ±1.
        """
        transfer = self.transfer(observer)
        if transfer is None:
            return np.inf
        form = transfer.T @ transfer
        inputs = len(form)
        if inputs <= _MOST_SIGNS:
            signs = np.array([(1.0, *rest) for rest in product((-1.0, 1.0), repeat=inputs - 1)])
            return float(np.einsum("si,ij,sj->s", signs, form, signs, optimize=True).max())
        signs = np.where(np.linalg.eigh(form)[1][:, -1] < 0, -1.0, 1.0)
        for _ in range(_SWEEPS):
            signs = np.where(form @ signs < 0, -1.0, 1.0)
        return float(max(signs @ form @ signs, form.sum()))

    def epsilon(self, observer: str, delta: float) -> float:
        """ε at δ for the source's worst updates that were found: exact, as by the Gaussian trade-off function.

        The observer's models have two normal laws with one covariance, whose means differ by μ² = D_2.
        """
        mu = math.sqrt(self.worst_divergence(observer))
        hidden = mu / math.sqrt(2 * math.pi) <= delta  # δ(0) = 2 Φ(μ/2) − 1 is at most that
        return 0.0 if hidden else math.inf if math.isinf(mu) else gaussian_epsilon(mu, delta)

    def shift_plan(self, observer: str) -> float:
        """A bound on D_2 whatever the source sends, from how fast training forgets (Proposition 4); DP-OGL only.

        A shadow system is shifted towards the true one by Z_{m,t} ≥ 0, nothing in the observer's groups; what remains
        of each step's drift is paid. Any Z gives a bound; the best is a non-negative least-squares problem.
        """
        M, T = len(self.structure.members), self.training.epochs
        hidden = np.flatnonzero(~self._in(observer))
        drift = np.zeros((T, M, T + 1, M))  # of (t, m) by shift (t', g); shifts start at 0
        for t in range(T):
            passed = np.abs(self._mixing()) if t % self.training.interval == 0 else np.zeros((M, M))
            np.fill_diagonal(passed, 1)
            drift[t, :, t] = passed
            drift[t, :, t + 1] -= np.eye(M)
        drift = drift[:, :, 1:, hidden].reshape(T * M, -1) * np.tile(self._precision, T)[:, None]
        push = np.tile(self._in(self.source) / self._sizes * self._precision, T)
        with_slack = np.hstack([drift, np.eye(T * M)])  # a drift below 0 costs nothing
        shifts = nnls(with_slack, -push, maxiter=100 * with_slack.shape[1])[0][: drift.shape[1]]
        return float(np.sum(np.maximum(drift @ shifts + push, 0) ** 2))

    def _view(self, observer: str) -> tuple[Array, Array]:
        """C_x and C_ξ: the observer's models after each epoch, by the source's updates and by the noise."""
        T, M = self.training.epochs, len(self.structure.members)
        own, seen = np.flatnonzero(self._in(self.source)), self._in(observer)
        inputs = len(own) * T
        models = np.zeros((M, inputs + M * T))
        rows = [models[:0]]
        for t in range(T):
            models = models + self._training(models, inter_group=t % self.training.interval == 0)
            share, variance = self._release(t)
            models[own, np.arange(len(own)) * T + t] += share / self._sizes[own]
            models[np.arange(M), inputs + np.arange(M) * T + t] += np.sqrt(variance) / self._precision
            rows.append(models[seen])
        view = np.concatenate(rows)
        return view[:, :inputs], view[:, inputs:]

    def _release(self, t: int) -> tuple[float, int]:
        """The size of an input of epoch t (from 0) and the variance, in units of σ², of the noise at its end."""
        if not self.training.unnoised_inside:
            return 1.0, 1
        start = t - t % self.training.interval
        length = min(self.training.interval, self.training.epochs - start)
        return 1 / np.sqrt(length), length if t + 1 == start + length else 0

    def _training(self, models: Array, inter_group: bool) -> Array:
        """What the workers' pull towards their optima changes in each group's model."""
        if inter_group:
            return self._mixing() @ models
        return np.asarray(-(self._pull().sum(axis=1) / self._sizes)[:, None] * models)

    def _mixing(self) -> Array:
        """The same as a matrix at inter-group epochs, where each worker starts from the mean of its groups' models."""
        membership = self.structure.membership
        return np.asarray(-(self._pull() / self._sizes[:, None]) @ (membership / membership.sum(axis=0)).T)

    def _pull(self) -> Array:
        """Λ of the workers who train (columns) in each group (row)."""
        response = np.array([self.response[worker] for worker in self.structure.workers])
        if not self.stays:
            response[self.structure.workers.index(self.source)] = 0
        return np.asarray(self.structure.membership * response)

    @property
    def _sizes(self) -> Array:
        return np.asarray(self.structure.membership.sum(axis=1), dtype=np.float64)

    @property
    def _precision(self) -> Array:
        """One over the standard deviation of each group's noise in its model."""
        return np.asarray(self._sizes / np.asarray(self.noise))

    def _in(self, worker: str) -> NDArray[np.bool_]:
        """Whether each group has the worker."""
        return np.asarray(self.structure.membership[:, self.structure.workers.index(worker)])


@dataclass(frozen=True)
class Counterexample:
    """One interval of DP-OGL+ in which one worker moves the others' clipped updates.

    Attributes:
        present: The clipped accumulated updates with the worker, its own first, in units of c.
        absent: The others' without it.
        gap: The distance of the two sums in units of √S·c; the description of the mechanism implies 1.
    """

    present: tuple[float, ...]
    absent: tuple[float, ...]
    gap: float

    def divergence(self, order: float, noise_multiplier: float) -> float:
        """D_α of the interval's noised sum: the √S of gap and noise cancel."""
        return order * self.gap**2 / (2 * noise_multiplier**2)


COUNTEREXAMPLE_WORKERS = {"1": (5.681784, 2.986755), "2": (0.5, 1.697056), "3": (0.5, 1.697056)}
"""Λ and optimum b of the workers of the counterexample's group; worker 1 leaks."""


def plus_counterexample(interval: int = 2) -> Counterexample:
    """A group of three in which the sum of DP-OGL+ moves by 5·√S·c when one worker is taken away.

    Worker 1 pushes the un-noised model so far that the two others, who train on from it, are clipped on the other
    side. All losses are quadratic, everybody takes part, the model starts at 0.
    """
    present = interval_updates(COUNTEREXAMPLE_WORKERS, interval, divisor=3)
    others = {name: worker for name, worker in COUNTEREXAMPLE_WORKERS.items() if name != "1"}
    absent = interval_updates(others, interval, divisor=3)
    gap = abs(sum(present) - sum(absent)) / np.sqrt(interval)
    return Counterexample(present, absent, float(gap))


def interval_updates(
    workers: Mapping[str, tuple[float, float]], interval: int, divisor: int, start: float = 0.0
) -> tuple[float, ...]:
    """Each worker's accumulated update over one interval of DP-OGL+, clipped to √S.

    Args:
        workers: (Λ, b) of the sampled workers.
        interval: S, the epochs of the interval.
        divisor: π·|N_m|, public and the same in both worlds.
        start: The group's model at the beginning.
    """
    model, total = start, np.zeros(len(workers))
    for _ in range(interval):
        updates = np.array([-response * (model - optimum) for response, optimum in workers.values()])
        total += updates
        model += updates.sum() / divisor
    return tuple(np.clip(total, -np.sqrt(interval), np.sqrt(interval)).tolist())
