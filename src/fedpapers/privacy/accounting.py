"""The (ε, δ) of a run, from the releases that its ledger holds.

The unit is one client with its whole data set. The neighbouring relation is add-or-remove-one; once a release shows its
cohort (`KnownCohortDpEvent`, noise from the clients) it is zero-out, under which the other releases cost the same.
Releases are `dp_accounting` events: a Gaussian release, or one whose cohort was Poisson sampled, in any nesting.

Four accountants answer. `pld` (dp-accounting), `prv` (Opacus) and `rdp` give upper bounds. `gdp` is the central limit
of DPFedMTL (arXiv 2011.07179), an approximation that can understate ε. Where an accountant cannot answer (memory,
time, overflow), the RDP bound takes its place and a note says why.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from fedpapers.errors import InputError, nearest
from fedpapers.privacy.gdp import gaussian_epsilon, limit_mu
from fedpapers.privacy.loss_distributions import CannotAnswerError, pld_deltas, pld_epsilon, prv_epsilon
from fedpapers.privacy.rdp import FloatArray, rdp_deltas, rdp_to_epsilon, total_rdp
from fedpapers.privacy.releases import Release, releases

if TYPE_CHECKING:
    from dp_accounting import DpEvent

UNIT = "client"
RELATION = "add-or-remove-one"
KNOWN_COHORT_RELATION = "zero-out"
ADVERSARY = "whoever sees the released models, not the server"

_LARGEST_MU = 1e15  # above it, -ε/μ + μ/2 is lost in rounding
_FAILURES = (CannotAnswerError, ArithmeticError, RuntimeError, ValueError, MemoryError)


@dataclass(frozen=True)
class Epsilon:
    """What one accountant says.

    Attributes:
        value: ε in nats, at least 0; infinite where no finite guarantee could be computed.
        order: The Rényi order at which an RDP bound was taken.
        mu: μ of the Gaussian limit.
        approximation: True where `value` is not a proven upper bound.
        note: Why `value` is infinite, or what stands in for an accountant that failed.
        relation: The neighbouring relation.
    """

    value: float
    order: float | None = None
    mu: float | None = None
    approximation: bool = False
    note: str | None = None
    relation: str = RELATION


def epsilon(event: DpEvent, delta: float, accountant: str) -> Epsilon:
    """ε of the composition `event` at `delta`. Equal questions are answered once per process.

    Args:
        event: Gaussian releases, Poisson sampled or not, with a secret or a known cohort, composed in any nesting.
        delta: δ in (0, 1).
        accountant: `pld`, `prv`, `rdp` or `gdp`.

    Raises:
        InputError: A value is out of its range, or the accountant is unknown.
        dp_accounting.UnsupportedEventError: `event` holds something else.
    """
    check_delta(delta)
    check_accountant(accountant)
    ledger = releases(event)
    relation = KNOWN_COHORT_RELATION if any(release.known_cohort for release in ledger) else RELATION
    return replace(_epsilon(ledger, float(delta), accountant), relation=relation)


def rdp_epsilon(ledger: Iterable[Release], delta: float) -> Epsilon:
    """ε by RDP of releases that are known without their events, which spares the import of dp-accounting.

    Args:
        ledger: Releases, composed.
        delta: δ in (0, 1).
    """
    return _epsilon(tuple(sorted(ledger)), float(delta), "rdp")


def all_epsilons(event: DpEvent, delta: float, accountants: Iterable[str] | None = None) -> dict[str, Epsilon]:
    """`epsilon` by each of `accountants` (all four if None), in their order."""
    return {name: epsilon(event, delta, name) for name in (ACCOUNTANTS if accountants is None else accountants)}


def certified_deltas(event: DpEvent, epsilons: FloatArray) -> FloatArray:
    """An upper bound on δ(ε), the hockey-stick divergence in the worse direction, at each ε.

    By PLD, on a coarser grid than in `epsilon` where that needs many points; where PLD cannot answer, by RDP as in
    `epsilon_at_orders`. Errors as for `epsilon`.

    Args:
        event: Releases; for a known cohort `tradeoff.known_cohort_deltas` is exact.
        epsilons: ε ≥ 0, ascending, shape (points,).
    """
    ledger = releases(event)
    if not ledger:
        return np.zeros(len(epsilons))
    if any(release.noise_multiplier == 0 for release in ledger):
        return np.ones(len(epsilons))
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            return pld_deltas(ledger, epsilons)
        except _FAILURES:
            return rdp_deltas(ledger, epsilons)


def check_accountant(name: str) -> None:
    """Refuse what is not one of `ACCOUNTANTS`."""
    if name not in _BY_NAME:
        raise InputError(f"--accountant {name!r}: expected a list of {', '.join(_BY_NAME)}; {nearest(name, _BY_NAME)}")


def check_delta(delta: float) -> None:
    """Refuse a δ outside (0, 1)."""
    if not 0 < delta < 1:
        raise InputError(f"--delta {delta:g}: expected a number above 0 and below 1")


@lru_cache(maxsize=4096)
def _epsilon(ledger: tuple[Release, ...], delta: float, accountant: str) -> Epsilon:
    if not ledger:
        return Epsilon(0.0, mu=0.0, approximation=True) if accountant == "gdp" else Epsilon(0.0)
    if any(release.noise_multiplier == 0 for release in ledger):
        note = f"{accountant}: a release without noise is not private ({_where(ledger, delta)})"
        return _unbounded(accountant, note, math.inf)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return _BY_NAME[accountant](ledger, delta)


def _pld(ledger: tuple[Release, ...], delta: float) -> Epsilon:
    return _or_rdp("pld", pld_epsilon, ledger, delta)


def _prv(ledger: tuple[Release, ...], delta: float) -> Epsilon:
    return _or_rdp("prv", prv_epsilon, ledger, delta)


def _rdp(ledger: tuple[Release, ...], delta: float) -> Epsilon:
    value, order = rdp_to_epsilon(lambda orders: total_rdp(ledger, orders), delta)
    if math.isfinite(value):
        return Epsilon(value, order=order)
    return _unbounded("rdp", f"rdp: the Rényi divergence overflows at every order ({_where(ledger, delta)})")


def _gdp(ledger: tuple[Release, ...], delta: float) -> Epsilon:
    if any(release.known_cohort for release in ledger):
        return _unbounded("gdp", f"gdp: no limit for a cohort that is known ({_where(ledger, delta)})")
    mu = limit_mu(ledger)
    if mu > _LARGEST_MU:
        note = f"gdp: μ = {mu:.2g} is too large for the limit to be evaluated ({_where(ledger, delta)})"
        return _unbounded("gdp", note, mu)
    return Epsilon(gaussian_epsilon(mu, delta), mu=mu, approximation=True)


_BY_NAME: dict[str, Callable[[tuple[Release, ...], float], Epsilon]] = {
    "pld": _pld,
    "prv": _prv,
    "rdp": _rdp,
    "gdp": _gdp,
}
ACCOUNTANTS = tuple(_BY_NAME)
"""The names of the accountants, in the order in which they are shown."""


def _or_rdp(
    name: str, compute: Callable[[tuple[Release, ...], float], float], ledger: tuple[Release, ...], delta: float
) -> Epsilon:
    """What `compute` says or, should it fail, the RDP bound with a note."""
    try:
        value = compute(ledger, delta)
        if not 0 <= value < math.inf:
            raise CannotAnswerError(f"it answers {value}")
        return Epsilon(float(value))
    except _FAILURES as error:
        text = str(error.args[-1]) if error.args else ""
        reason = text.splitlines()[0].rstrip(".") if text else type(error).__name__
    bound = _epsilon(ledger, delta, "rdp")
    instead = f"the RDP bound at order {bound.order:.8g} stands in" if bound.order else "the RDP bound is infinite, too"
    return Epsilon(bound.value, order=bound.order, note=f"{name} failed: {reason} ({_where(ledger, delta)}); {instead}")


def _unbounded(accountant: str, note: str, mu: float | None = None) -> Epsilon:
    if accountant == "gdp":
        return Epsilon(math.inf, mu=mu, approximation=True, note=note)
    return Epsilon(math.inf, note=note)


def _where(ledger: tuple[Release, ...], delta: float) -> str:
    """The parameters that a note names; of a long ledger the first three kinds of release."""
    parts = [f"q={q:g}, σ={sigma:g}, T={times}" for q, sigma, times, _ in ledger[:3]]
    more = [f"{len(ledger) - 3} more"] if len(ledger) > 3 else []
    return f"{'; '.join(parts + more)}, δ={delta:g}"
