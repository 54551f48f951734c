"""What DPFedMTL (arXiv 2011.07179) claims about privacy, and what can be certified: tables, nothing is trained.

The paper adds the noise at each client and accounts for the Poisson-subsampled Gaussian, which needs noise added once
to the sum. So every setting is accounted for with the noise in both places, each with the relation and the adversary
for which its numbers hold: docs/noise-placement.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import dp_accounting
import numpy as np

from fedpapers.privacy import accounting, tradeoff
from fedpapers.privacy.accounting import Epsilon, epsilon
from fedpapers.privacy.cohort_size import cohort_size_epsilon
from fedpapers.privacy.events import KnownCohortDpEvent
from fedpapers.privacy.gdp import gaussian_epsilon
from fedpapers.privacy.rdp import FloatArray
from fedpapers.privacy.releases import sampled_gaussian

EPSILONS = (
    "setting", "dataset", "clients", "sampling_rate", "rounds", "noise_multiplier", "claimed_epsilon",
    "formula_noise_multiplier", "release_epsilon", "noise", "accountant", "delta", "epsilon", "approximation", "note",
    "unit", "relation", "adversary",
)  # fmt: skip
CURVES = ("setting", "dataset", "sampling_rate", "rounds", "noise_multiplier", "curve", "type_1", "type_2")

CLAIMED = {0.11: 45.0, 0.65: 8.0, 2.42: 2.0, 9.69: 0.5}
"""σ as the paper prints it -> the ε that it claims for it."""

CLIENT_ADVERSARY = "the server, who sees each noisy update and its sender, and whoever sees the models"

_UNIT = "all data of one client"
_TYPE_1: FloatArray = np.linspace(0, 1, 101)


class Setting(NamedTuple):
    """Where a noise multiplier is used.

    Attributes:
        setting: `paper` or `ours`.
        dataset: Name of the data set.
        sampling_rate: q (the paper's p): the probability that a client takes part in a round.
        rounds: T.
        noise_multiplier: σ.
        clients: M where it is known.
    """

    setting: str
    dataset: str
    sampling_rate: float
    rounds: int
    noise_multiplier: float
    clients: int | None = None


PAPER = tuple(
    Setting("paper", dataset, cohort / clients, rounds, sigma, clients)
    for dataset, clients, cohort, rounds in (("celeba", 9343, 20, 400), ("femnist", 178, 3, 1000))
    for sigma in CLAIMED
)
"""The paper's own settings: all of CelebA, and LEAF's 5 % subset of FEMNIST."""


def settings_of_runs(planned: Iterable[Mapping[str, Any]], clients: Mapping[str, int]) -> list[Setting]:
    """The settings of our own runs.

    Args:
        planned: `dataset`, `rounds`, `noise_multiplier`, and `sampling_rate` or `cohort_size` (K, with q = K/M).
        clients: Data set -> M.
    """
    return [
        Setting(
            setting="ours",
            dataset=one["dataset"],
            sampling_rate=one.get("sampling_rate") or one["cohort_size"] / clients[one["dataset"]],
            rounds=one["rounds"],
            noise_multiplier=one["noise_multiplier"],
            clients=clients[one["dataset"]],
        )
        for one in planned
    ]


def formula_noise_multiplier(epsilon: float, delta: float) -> float:
    """σ = √(2 ln(1.25/δ))/ε, by which the paper chooses σ; proven for one release with ε < 1 only."""
    return math.sqrt(2 * math.log(1.25 / delta)) / epsilon


def epsilons(settings: Iterable[Setting], delta: float) -> Iterator[dict[str, Any]]:
    """One row a setting, place of the noise and accountant; columns `EPSILONS`.

    Central noise: `pld`, `prv`, `rdp`, and `gdp`, the limit, which is an approximation. Noise at the clients: `rdp`
    and `exact`, the composition in closed form, under zero-out; and `cohort-size`, where M is known: a lower bound on
    every ε under add-or-remove, by a test on the size of the cohorts.

    Args:
        settings: What to account for.
        delta: δ.
    """
    for one in settings:
        sigma, claimed = one.noise_multiplier, CLAIMED.get(one.noise_multiplier)
        head = one._asdict() | {
            "delta": delta,
            "claimed_epsilon": claimed,
            "formula_noise_multiplier": formula_noise_multiplier(claimed, delta) if claimed else None,
            "release_epsilon": gaussian_epsilon(1 / sigma, delta) if sigma else math.inf,
            "unit": _UNIT,
        }
        for name in accounting.ACCOUNTANTS:
            yield head | _central(name, epsilon(_event(one), delta, name))
        client = {"noise": "client", "adversary": CLIENT_ADVERSARY}
        for name, answer in _at_clients(one, delta).items():
            yield head | client | _answer(name, answer)
        if one.clients and one.sampling_rate < 1:
            lower = cohort_size_epsilon(one.clients, one.sampling_rate, one.rounds, delta)
            note = "a lower bound: no guarantee with a smaller ε holds"
            yield head | client | _answer("cohort-size", Epsilon(lower, note=note))


def curves(settings: Iterable[Setting]) -> Iterator[dict[str, Any]]:
    """One row a setting, curve and type I error; columns `CURVES`.

    `limit`: G_μ of the central limit, as in the paper; an approximation. `central`: certified for noise on the sum,
    add-or-remove. `client`: certified for noise at each client, zero-out.
    """
    for one in settings:
        for name, type_2 in _curves_of(one).items():
            head = {key: value for key, value in one._asdict().items() if key != "clients"} | {"curve": name}
            points = zip(_TYPE_1.tolist(), type_2.tolist(), strict=True)
            yield from (head | {"type_1": a, "type_2": b} for a, b in points)


def _curves_of(one: Setting) -> dict[str, FloatArray]:
    mu = epsilon(_event(one), 0.5, "gdp").mu
    assert mu is not None, "the limit always says its μ"
    at_clients = tradeoff.known_cohort_deltas(one.sampling_rate, one.noise_multiplier, one.rounds, tradeoff.EPSILONS)
    certified = accounting.certified_deltas(_event(one), tradeoff.EPSILONS)
    return {
        "limit": tradeoff.gaussian_tradeoff(mu, _TYPE_1),
        "central": tradeoff.tradeoff(tradeoff.EPSILONS, certified, _TYPE_1),
        "client": tradeoff.tradeoff(tradeoff.EPSILONS, at_clients, _TYPE_1),
    }


def _event(one: Setting) -> dp_accounting.DpEvent:
    return sampled_gaussian(one.noise_multiplier, one.sampling_rate, one.rounds)


def _at_clients(one: Setting, delta: float) -> dict[str, Epsilon]:
    release = KnownCohortDpEvent(one.sampling_rate, dp_accounting.GaussianDpEvent(one.noise_multiplier))
    exact = tradeoff.known_cohort_epsilon(one.sampling_rate, one.noise_multiplier, one.rounds, delta)
    return {
        "rdp": epsilon(dp_accounting.SelfComposedDpEvent(release, one.rounds), delta, "rdp"),
        "exact": Epsilon(exact, relation=accounting.KNOWN_COHORT_RELATION),
    }


def _central(name: str, answer: Epsilon) -> dict[str, Any]:
    return {"noise": "central", "adversary": accounting.ADVERSARY} | _answer(name, answer)


def _answer(name: str, answer: Epsilon) -> dict[str, Any]:
    return {
        "accountant": name,
        "epsilon": answer.value,
        "approximation": answer.approximation,
        "note": answer.note or "",
        "relation": answer.relation,
    }
