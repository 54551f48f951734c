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
import operator
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, special

from fedpapers.errors import InputError, nearest

if TYPE_CHECKING:
    from dp_accounting import DpEvent
    from dp_accounting.pld import PLDAccountant

UNIT = "client"
RELATION = "add-or-remove-one"
KNOWN_COHORT_RELATION = "zero-out"
ADVERSARY = "whoever sees the released models, not the server"

FloatArray = NDArray[np.float64]
RdpCurve = Callable[[FloatArray], FloatArray]

BASE_ORDERS: FloatArray = np.array([1 + k / 10 for k in range(1, 100)] + [*range(11, 64), 128, 256], dtype=np.float64)
"""The Rényi orders that are always tried: 1.1 to 10.9 by 0.1, 11 to 63, 128, 256."""

_LARGER_ORDERS = [float(round(256 * 2 ** (k / 2))) for k in range(1, 25)]  # up to 2^20
_SMALLER_ORDERS = [1 + 0.1 * 2 ** (-k / 2) for k in range(1, 41)]  # down to 1 + 1e-7

# Below this δ the rounding errors of the Fourier transforms in PLD and PRV can exceed what their pessimism adds:
# measured against the closed form at q ≈ 1, PLD is 6e-5 too low at 1e-11.
_SMALLEST_FOURIER_DELTA = 1e-10
_PLD_SPACING = 1e-4  # dp-accounting's default, in nats
_MOST_PLD_POINTS = 2e7  # about 15 s and 1 GiB
_MOST_CURVE_POINTS = 3e5  # dp-accounting reads off a whole curve in a loop over all points: about 1 s
_MOST_PRV_POINTS = 5e6  # about 5 s and 1 GiB
_LARGEST_PRV_LOSS = 700  # Opacus takes exp of the privacy loss
_LARGEST_PRV_NOISE = 1000  # above it, the series of Opacus needs minutes for q near 1/2
_LARGEST_MU = 1e15  # above it, -ε/μ + μ/2 is lost in rounding
_MOST_STEPS = 2**53
_MOST_PLD_STEPS = 10**6  # its time, unlike its memory, grows with them whatever σ and q


class Release(NamedTuple):
    """`times` releases with the same sampling rate (1 = everybody takes part) and noise multiplier."""

    sampling_rate: float
    noise_multiplier: float
    times: int
    known_cohort: bool = False


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


class _FailedError(Exception):
    """An accountant cannot answer; the text says why."""


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
    _check_delta(delta)
    _check_accountant(accountant)
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
            _check_fourier_use(ledger, 1.0)
            spacing = _PLD_SPACING * max(1.0, _pld_points(ledger) / _MOST_CURVE_POINTS)
            return np.asarray(_composed(ledger, spacing).get_delta(epsilons), dtype=np.float64)
        except (_FailedError, ArithmeticError, RuntimeError, ValueError, MemoryError):
            return _rdp_deltas(ledger, epsilons)


def _rdp_deltas(ledger: tuple[Release, ...], epsilons: FloatArray) -> FloatArray:
    orders = np.concatenate([_SMALLER_ORDERS, BASE_ORDERS])
    exponents = (orders - 1) * (_total_rdp(ledger, orders) - epsilons[:, None] + np.log1p(-1 / orders))
    return np.asarray(np.exp(np.minimum((exponents - np.log(orders)).min(axis=1), 0.0)))


def releases(event: DpEvent) -> tuple[Release, ...]:
    """The releases of an event, equal ones counted together, in a fixed order.

    Raises:
        InputError: A sampling rate outside (0, 1] or a noise multiplier that is negative or not finite.
        dp_accounting.UnsupportedEventError: An event other than Gaussian ones, sampled or not, and their compositions.
    """
    counts: Counter[Release] = Counter()
    for release in _flat(event, 1):
        _check_sampling_rate(release.sampling_rate)
        _check_noise_multiplier(release.noise_multiplier)
        counts[release._replace(times=1)] += release.times
    return tuple(kind._replace(times=count) for kind, count in sorted(counts.items()) if count > 0)


def sampled_gaussian(noise_multiplier: float, sampling_rate: float, steps: int) -> DpEvent:
    """The event of `steps` Gaussian releases to Poisson-sampled cohorts."""
    import dp_accounting

    gaussian = dp_accounting.GaussianDpEvent(noise_multiplier)
    return dp_accounting.SelfComposedDpEvent(dp_accounting.PoissonSampledDpEvent(sampling_rate, gaussian), steps)


def sampled_gaussian_rdp(sampling_rate: float, noise_multiplier: float, orders: FloatArray) -> FloatArray:
    """RDP of one Poisson-sampled Gaussian release under add-or-remove-one, at each of `orders`.

    Mironov, Talwar, Zhang (arXiv 1908.10530), section 3.3: log A_α / (α − 1). Opacus sums the series of a fractional
    order term by term, which takes seconds, and dp-accounting gives up on some orders; here the alternating tail is
    summed by acceleration, so that each order costs about α + 24 terms.

    Args:
        sampling_rate: q in (0, 1].
        noise_multiplier: σ ≥ 0, in units of the sensitivity.
        orders: α > 1, of shape (orders,).

    Returns:
        The RDP in nats, of the shape of `orders`; infinite where it overflows.
    """
    if noise_multiplier == 0:
        return np.full(len(orders), np.inf)
    inverse_variance = _square(1 / noise_multiplier)
    if sampling_rate == 1:
        return np.asarray(orders * (inverse_variance / 2))
    with np.errstate(all="ignore"):
        log_moments = [_log_moment(sampling_rate, noise_multiplier, float(order)) for order in orders]
    return np.array(log_moments) / (orders - 1)


def known_cohort_rdp(sampling_rate: float, noise_multiplier: float, orders: FloatArray) -> FloatArray:
    """RDP of one Gaussian release whose Poisson-sampled cohort the adversary sees, under zero-out.

    It is log(1 − q + q exp(α(α − 1) / 2σ²)) / (α − 1): a client that is not drawn reveals nothing, one that is drawn
    shows its noised update. Arguments and result as for `sampled_gaussian_rdp`.
    """
    if noise_multiplier == 0:
        return np.full(len(orders), np.inf)
    with np.errstate(all="ignore"):
        exponents = orders * (orders - 1) / 2 * _square(1 / noise_multiplier)
        log_growth = exponents + np.log(-np.expm1(-exponents))
        return np.asarray(np.logaddexp(0, math.log(sampling_rate) + log_growth) / (orders - 1))


def rdp_to_epsilon(curve: RdpCurve, delta: float) -> Epsilon:
    """The best (ε, δ) that an RDP curve gives, and its order.

    Where the best of `BASE_ORDERS` is the first or last of them, more orders are tried beyond it until ε rises again.

    Args:
        curve: From orders α > 1 to the RDP in nats of everything composed.
        delta: δ in (0, 1).
    """
    values = epsilon_at_orders(BASE_ORDERS, curve(BASE_ORDERS), delta)
    best = int(np.argmin(values))
    value, order = float(values[best]), float(BASE_ORDERS[best])
    beyond = {0: _SMALLER_ORDERS, len(BASE_ORDERS) - 1: _LARGER_ORDERS}.get(best, [])
    for candidate in beyond if value > 0 else []:
        orders = np.array([candidate])
        found = float(epsilon_at_orders(orders, curve(orders), delta)[0])
        if not found < value:
            break
        value, order = found, candidate
    return Epsilon(max(0.0, value), order=order if math.isfinite(value) else None)


def epsilon_report(
    noise_multiplier: float, sampling_rate: float, steps: int, delta: float, accountants: str | Iterable[str]
) -> dict[str, Any]:
    """What `fedpapers epsilon --json` prints: JSON-safe, infinity is the string "inf".

    Args:
        noise_multiplier: σ ≥ 0, in units of the sensitivity.
        sampling_rate: q in (0, 1].
        steps: T ≥ 0, the number of releases.
        delta: δ in (0, 1).
        accountants: Names, or one text with commas between them.

    Raises:
        InputError: A value is out of its range, or an accountant is unknown.
    """
    names = accountants.split(",") if isinstance(accountants, str) else accountants
    names = list(dict.fromkeys(name.strip() for name in names))
    for name in names:
        _check_accountant(name)
    _check_noise_multiplier(noise_multiplier)
    _check_sampling_rate(sampling_rate)
    _check_steps(steps)
    _check_delta(delta)
    answers = all_epsilons(sampled_gaussian(noise_multiplier, sampling_rate, steps), delta, names)
    return {
        "noise_multiplier": noise_multiplier,
        "sampling_rate": sampling_rate,
        "steps": steps,
        "delta": delta,
        "unit": UNIT,
        "relation": RELATION,
        "adversary": ADVERSARY,
        "accountants": {name: _answer_json(name, answer) for name, answer in answers.items()},
        "warnings": _warnings(answers),
    }


def format_report(report: dict[str, Any]) -> str:
    """The text of an `epsilon_report` for people, without a line break at its end."""
    lines = [
        f"σ = {report['noise_multiplier']:g}, q = {report['sampling_rate']:g}, T = {report['steps']}, "
        f"δ = {report['delta']:g}",
        f"unit: one {report['unit']} with all its data; neighbouring relation: {report['relation']}",
        f"adversary: {report['adversary']}",
    ]
    private = report["noise_multiplier"] > 0 or report["steps"] == 0
    lines += [_answer_text(name, answer, private) for name, answer in report["accountants"].items()]
    lines += [f"warning: {warning}" for warning in report["warnings"]]
    return "\n".join(lines)


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
    return _or_rdp("pld", _pld_value, ledger, delta)


def _prv(ledger: tuple[Release, ...], delta: float) -> Epsilon:
    return _or_rdp("prv", _prv_value, ledger, delta)


def _rdp(ledger: tuple[Release, ...], delta: float) -> Epsilon:
    bound = rdp_to_epsilon(lambda orders: _total_rdp(ledger, orders), delta)
    if math.isfinite(bound.value):
        return bound
    return _unbounded("rdp", f"rdp: the Rényi divergence overflows at every order ({_where(ledger, delta)})")


def _gdp(ledger: tuple[Release, ...], delta: float) -> Epsilon:
    """The central limit: μ² = Σ q² T (exp(1/σ²) − 1), and ε of G_μ at δ."""
    if any(release.known_cohort for release in ledger):
        return _unbounded("gdp", f"gdp: no limit for a cohort that is known ({_where(ledger, delta)})")
    growth = [np.sqrt(np.expm1(_square(1 / release.noise_multiplier))) for release in ledger]
    parts = [r.sampling_rate * math.sqrt(r.times) * g for r, g in zip(ledger, growth, strict=True)]
    mu = math.hypot(*parts)
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
            raise _FailedError(f"it answers {value}")
        return Epsilon(float(value))
    except (_FailedError, ArithmeticError, RuntimeError, ValueError, MemoryError) as error:
        text = str(error.args[-1]) if error.args else ""
        reason = text.splitlines()[0].rstrip(".") if text else type(error).__name__
    bound = _epsilon(ledger, delta, "rdp")
    instead = f"the RDP bound at order {bound.order:.8g} stands in" if bound.order else "the RDP bound is infinite, too"
    return Epsilon(bound.value, order=bound.order, note=f"{name} failed: {reason} ({_where(ledger, delta)}); {instead}")


def _pld_value(ledger: tuple[Release, ...], delta: float) -> float:
    """The pessimistic estimate of dp-accounting at its defaults."""
    _check_fourier_use(ledger, delta)
    _check_points(_pld_points(ledger), _MOST_PLD_POINTS)
    return float(_composed(ledger, _PLD_SPACING).get_epsilon(delta))


def _composed(ledger: tuple[Release, ...], spacing: float) -> PLDAccountant:
    """dp-accounting's accountant, with the ledger composed on a grid of privacy losses."""
    import dp_accounting
    from dp_accounting.pld import PLDAccountant

    steps = sum(release.times for release in ledger if release.sampling_rate < 1)
    if steps > _MOST_PLD_STEPS:
        raise _FailedError(f"{steps} sampled releases, more than {_MOST_PLD_STEPS:.0e}, may take it minutes")
    accountant = PLDAccountant(value_discretization_interval=spacing)
    for q, sigma, times, _ in ledger:
        gaussian = dp_accounting.GaussianDpEvent(sigma)
        # Without sampling, a Gaussian event composes in closed form instead of by a Fourier transform.
        accountant.compose(gaussian if q == 1 else dp_accounting.PoissonSampledDpEvent(q, gaussian), times)
    return accountant


def _pld_points(ledger: Sequence[Release]) -> float:
    """About how many points dp-accounting will hold in all its convolutions: the sum over them of their lengths."""
    total = work = 0.0
    for release in ledger:
        total += _pld_points_of(release)
        work += total
    return work


def _pld_points_of(release: Release) -> float:
    """The same for one release composed `times` times, both directions of the relation together.

    One loss distribution spans what 10 standard deviations of noise can reveal. Its composition is cut by the Chernoff
    bound of `dp_accounting.pld.common.compute_self_convolve_bounds`, whose moments are those of RDP.
    """
    q, sigma, times, _ = release
    if q == 1:
        sigma = sigma / math.sqrt(times)
        return 2 * 2 * (0.5 / sigma + 10) / sigma / _PLD_SPACING
    inside, outside = math.log(q), math.log1p(-q)
    widest = (0.5 / sigma + 10) / sigma
    span = float(np.logaddexp(outside, inside + widest) - np.logaddexp(outside, inside - widest))
    tail = math.log(2e15)
    exponents = np.minimum(np.array([1.0, 5.0, 20.0]) / span, 1000.0)
    moments = exponents * sampled_gaussian_rdp(q, sigma, 1 + exponents)
    long_side = min(float(np.min((times * moments + tail) / exponents)), times * span)
    without_drift = tail * max(1.0, span / 20)
    short_side = min(without_drift, -times * outside)  # a client's absence reveals at most −log(1 − q) each time
    return (2 * span + long_side + min(long_side, without_drift) + 2 * short_side) / _PLD_SPACING


def _prv_value(ledger: tuple[Release, ...], delta: float) -> float:
    """The upper bound of Opacus at its default errors (0.01 in ε, δ/1000 in δ)."""
    _check_fourier_use(ledger, delta)
    if max(release.noise_multiplier for release in ledger) > _LARGEST_PRV_NOISE:
        raise _FailedError(f"its series is too slow for σ > {_LARGEST_PRV_NOISE}")
    loss = _prv_largest_loss(ledger, delta / 1000)
    if not loss < _LARGEST_PRV_LOSS:
        raise _FailedError(f"privacy losses up to {loss:.3g} overflow")
    steps = sum(release.times for release in ledger)
    spacing = 0.01 / math.sqrt(steps * math.log(12 / (delta / 1000)) / 2)
    _check_points(2 * loss / spacing * len(ledger), _MOST_PRV_POINTS)

    from opacus.accountants import PRVAccountant  # seconds: it imports all of Opacus

    accountant = PRVAccountant()
    accountant.history = [(sigma, q, times) for q, sigma, times, _ in ledger]
    return float(accountant.get_epsilon(delta))


def _prv_largest_loss(ledger: tuple[Release, ...], delta_error: float) -> float:
    """The half width that Opacus will choose (Gopi, Lee, Wutschitz, arXiv 2106.02848, remark 5.6)."""
    steps = sum(release.times for release in ledger)
    singles = [(_total_rdp([r._replace(times=1)], BASE_ORDERS), delta_error / (8 * steps)) for r in ledger]
    bounds = [(_total_rdp(ledger, BASE_ORDERS), delta_error / 4), *singles]
    return 3 + max(float(epsilon_at_orders(BASE_ORDERS, rdp, delta).min()) for rdp, delta in bounds)


def _total_rdp(ledger: Iterable[Release], orders: FloatArray) -> FloatArray:
    total = np.zeros(len(orders))
    for q, sigma, times, known_cohort in ledger:
        total += times * (known_cohort_rdp if known_cohort else sampled_gaussian_rdp)(q, sigma, orders)
    return total


def epsilon_at_orders(orders: FloatArray, rdp: FloatArray, delta: float) -> FloatArray:
    """ε at each order by proposition 12 of Canonne, Kamath, Steinke (arXiv 2004.00010); below 0 means 0.

    Equals `dp_accounting.rdp.compute_epsilon`, which refuses the orders below 1.01 that a huge ε needs.
    """
    values = rdp + np.log1p(-1 / orders) - (math.log(delta) + np.log(orders)) / (orders - 1)
    # The total variation distance is at most sqrt(1 − exp(−KL)); so here (0, δ) holds already.
    values = np.where(rdp < -np.log1p(-(delta**2)), 0.0, values)
    return np.where(np.isnan(values), np.inf, values)  # overflow on both sides of a difference: no guarantee


def _log_moment(q: float, sigma: float, order: float) -> float:
    """An upper bound of log A_α, tight to about 1e-14: A_α is the mean of (1 − q + q exp((2z − 1) / 2σ²))^α."""
    if order.is_integer():
        return _log_moment_integer(q, sigma, int(order))
    below = math.floor(order)
    # log A is convex in α. Its chord has no rounding error where A − 1 is tiny, the series is sharper elsewhere.
    left = _log_moment_integer(q, sigma, below)
    chord = left + (order - below) * (_log_moment_integer(q, sigma, below + 1) - left)
    series = _log_moment_fractional(q, sigma, order)
    return min(chord, series + 1e-14) if math.isfinite(series) else chord


@lru_cache(maxsize=1024)
def _log_moment_integer(q: float, sigma: float, order: int) -> float:
    """Without cancellation: A − 1 = Σ_{i ≥ 2} C(α, i) qⁱ (1 − q)^(α − i) (exp((i² − i)/2σ²) − 1), for α ≥ 1."""
    if order == 1:
        return 0.0
    i = np.arange(2, order + 1, dtype=np.float64)
    exponent = (i * i - i) / 2 * _square(1 / sigma)
    log_growth = exponent + np.log(-np.expm1(-exponent))
    terms = _log_binomial(order, i) + i * math.log(q) + (order - i) * math.log1p(-q) + log_growth
    return float(np.logaddexp(0, special.logsumexp(terms)))


def _log_moment_fractional(q: float, sigma: float, order: float) -> float:
    """Two integrals, below and above z₀, where both branches of the mixture are equal.

    Each is a binomial series whose terms alternate from the first i > α on. Those terms are moments of a positive
    measure, for which the weights of Cohen, Rodriguez Villegas, Zagier (2000, algorithm 1) err by less than 5.8^−24.
    """
    first_alternating = math.ceil(order)
    weights = np.concatenate([np.ones(first_alternating), _ALTERNATING_WEIGHTS])
    i = np.arange(len(weights), dtype=np.float64)
    j = order - i
    inside, outside = math.log(q), math.log1p(-q)
    half = _square(1 / sigma) / 2
    z0 = _square(sigma) * (outside - inside) + 0.5
    log_binomial = _log_binomial(order, i)
    below = log_binomial + i * inside + j * outside + (i * i - i) * half + special.log_ndtr((z0 - i) / sigma)
    above = log_binomial + j * inside + i * outside + (j * j - j) * half + special.log_ndtr((j - z0) / sigma)
    return float(special.logsumexp(np.concatenate([below, above]), b=np.concatenate([weights, weights])))


def _alternating_weights(terms: int) -> FloatArray:
    """The w for which Σ w_k a_k ≈ Σ (−1)^k a_k."""
    d = (3 + math.sqrt(8)) ** terms
    d = (d + 1 / d) / 2
    b, c = -1.0, -d
    weights = []
    for k in range(terms):
        c = b - c
        weights.append(c / d)
        b *= (k + terms) * (k - terms) / ((k + 0.5) * (k + 1))
    return np.array(weights)


_ALTERNATING_WEIGHTS = _alternating_weights(24)


def _log_binomial(n: float, k: FloatArray) -> FloatArray:
    """The logarithm of |C(n, k)|, also of a fractional n."""
    return np.asarray(special.gammaln(n + 1) - special.gammaln(k + 1) - special.gammaln(n - k + 1))


def gaussian_epsilon(mu: float, delta: float) -> float:
    """ε of the Gaussian trade-off function G_μ at δ: δ(ε) = Φ(−ε/μ + μ/2) − e^ε Φ(−ε/μ − μ/2).

    With a = −ε/μ + μ/2 and Mills' ratio M(x) = Φ(−x)/φ(x), this is φ(a) (M(−a) − M(μ − a)): nothing overflows.
    """

    def log_excess(a: float) -> float:
        gap = special.erfcx(-a / math.sqrt(2)) - special.erfcx((mu - a) / math.sqrt(2))
        return float(np.log(gap / 2) - a * a / 2 - math.log(delta))

    highest = min(mu / 2, 30.0)  # μ/2 means ε = 0; at 30, δ(ε) is 1
    if log_excess(highest) <= 0:
        return 0.0
    a = float(optimize.bisect(log_excess, special.ndtri(delta) - 1, highest, xtol=1e-14, maxiter=200))
    return max(0.0, mu * (mu / 2 - a))


def _flat(event: DpEvent, count: int) -> Iterator[Release]:
    import dp_accounting

    from fedpapers.privacy.events import KnownCohortDpEvent

    match event:
        case dp_accounting.NoOpDpEvent():
            return
        case dp_accounting.NonPrivateDpEvent():
            yield Release(1.0, 0.0, count)
        case dp_accounting.GaussianDpEvent():
            yield Release(1.0, float(event.noise_multiplier), count)
        case dp_accounting.PoissonSampledDpEvent(event=dp_accounting.GaussianDpEvent()):
            yield Release(float(event.sampling_probability), float(event.event.noise_multiplier), count)
        case KnownCohortDpEvent(event=dp_accounting.GaussianDpEvent()):
            yield Release(float(event.sampling_probability), float(event.event.noise_multiplier), count, True)
        case dp_accounting.SelfComposedDpEvent():
            yield from _flat(event.event, count * event.count)
        case dp_accounting.ComposedDpEvent():
            for part in event.events:
                yield from _flat(part, count)
        case _:
            raise dp_accounting.UnsupportedEventError(f"no accountant here knows {event}")


def _unbounded(accountant: str, note: str, mu: float | None = None) -> Epsilon:
    if accountant == "gdp":
        return Epsilon(math.inf, mu=mu, approximation=True, note=note)
    return Epsilon(math.inf, note=note)


def _where(ledger: tuple[Release, ...], delta: float) -> str:
    """The parameters that a note names; of a long ledger the first three kinds of release."""
    parts = [f"q={q:g}, σ={sigma:g}, T={times}" for q, sigma, times, _ in ledger[:3]]
    more = [f"{len(ledger) - 3} more"] if len(ledger) > 3 else []
    return f"{'; '.join(parts + more)}, δ={delta:g}"


def _square(x: float) -> float:
    return x * x  # infinite where x**2 would raise


def _answer_json(name: str, answer: Epsilon) -> dict[str, Any]:
    shown: dict[str, Any] = {"epsilon": _json_number(answer.value)}
    if name == "rdp" or answer.order is not None:
        shown["order"] = answer.order
    if answer.mu is not None:
        shown["mu"] = _json_number(answer.mu)
    if answer.approximation:
        shown["approximation"] = True
    if answer.note is not None:
        shown["note"] = answer.note
    return shown


def _json_number(value: float) -> float | str:
    return value if math.isfinite(value) else "inf"


def _answer_text(name: str, answer: dict[str, Any], private: bool) -> str:
    value = answer["epsilon"]
    shown = f"{value:.5g}" if value != "inf" else "inf" if private else "inf (not private)"
    details = []
    if answer.get("order") is not None:
        details.append(f"order {answer['order']:.8g}")
    if "mu" in answer:
        mu = answer["mu"]
        details.append(f"μ = {mu if mu == 'inf' else format(mu, '.5g')}")
    if answer.get("approximation"):
        details.append("approximation")
    if "note" in answer and private:
        details.append(answer["note"])
    return f"{name}  ε = {shown}" + (f"  ({'; '.join(details)})" if details else "")


def _warnings(answers: dict[str, Epsilon]) -> list[str]:
    """What a reader must know before using these ε."""
    if "gdp" not in answers:
        return []
    warning = "gdp is a central limit: an approximation that can understate ε"
    limit = answers["gdp"].value
    bounds = {name: answer.value for name, answer in answers.items() if name != "gdp" and answer.value < math.inf}
    best = min(bounds, key=lambda name: bounds[name], default=None)
    if best and limit < bounds[best]:
        warning += f"; here it says {limit:.4g} where the {best} bound is {bounds[best]:.4g}"
    return [warning]


def _check_fourier_use(ledger: tuple[Release, ...], delta: float) -> None:
    if any(release.known_cohort for release in ledger):
        raise _FailedError("it knows no release whose cohort the adversary sees")
    if delta < _SMALLEST_FOURIER_DELTA:
        raise _FailedError(f"its rounding errors are not small against a δ below {_SMALLEST_FOURIER_DELTA:g}")


def _check_points(points: float, most: float) -> None:
    if not points <= most:
        raise _FailedError(f"it would need about {points:.2g} points, more than {most:.2g}")


def _check_accountant(name: str) -> None:
    if name not in _BY_NAME:
        raise InputError(f"--accountant {name!r}: expected a list of {', '.join(_BY_NAME)}; {nearest(name, _BY_NAME)}")


def _check_noise_multiplier(sigma: float) -> None:
    if not 0 <= sigma < math.inf:
        raise InputError(f"--noise-multiplier {sigma:g}: expected a finite number of at least 0")


def _check_sampling_rate(q: float) -> None:
    if not 0 < q <= 1:
        raise InputError(f"--sampling-rate {q:g}: expected a number above 0 and at most 1")


def _check_steps(steps: int) -> None:
    try:
        whole = -1 if isinstance(steps, bool) else operator.index(steps)
    except TypeError:
        whole = -1
    if not 0 <= whole <= _MOST_STEPS:
        raise InputError(f"--steps {steps}: expected an integer from 0 to {_MOST_STEPS}")


def _check_delta(delta: float) -> None:
    if not 0 < delta < 1:
        raise InputError(f"--delta {delta:g}: expected a number above 0 and below 1")
