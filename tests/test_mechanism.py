"""The mechanism does what its event says: one worker's influence, the noise, the cohorts."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from dp_accounting import GaussianDpEvent, NonPrivateDpEvent, PoissonSampledDpEvent
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from numpy.typing import NDArray
from scipy import stats
from torch import Tensor

from fedpapers.federated import rounds as engine
from fedpapers.federated.cohort import CohortResult, Participation, Update, train_cohort
from fedpapers.federated.rounds import Federation, State, next_release
from fedpapers.groups import overlapping, single
from fedpapers.privacy.events import KnownCohortDpEvent
from fedpapers.privacy.mechanism import Mechanism


def norm(vector: Tensor) -> float:
    """The L2 norm; each square is exact in float64 and their sum is rounded once."""
    return math.sqrt(math.fsum(x * x for x in vector.double().tolist()))


# Influence of one worker


def tolerance(terms: int, clipping_norm: float) -> float:
    """By how much the difference of two float32 sums may exceed C, the one of K terms, the other of K − 1.

    A float32 sum of K terms x is off by at most γ Σ|x| in each coordinate, γ = Ku / (1 − Ku), u = 2⁻²⁴ (Higham,
    Accuracy and Stability of Numerical Algorithms, Section 4.2), hence by γ Σ‖x‖ ≤ γKC in norm; there are two sums.
    """
    gamma = terms * 2.0**-24 / (1 - terms * 2.0**-24)
    return 2 * gamma * terms * clipping_norm


def check_influence(learner: Any, cohort: list[Participation], mechanism: Mechanism) -> CohortResult:
    """Leave out each participation in turn: its group's sum moves by at most C, the other sums not at all."""
    like = torch.zeros(max(one.group for one in cohort) + 1, learner.layout.shared_size)
    clip = mechanism.clip
    full = train_cohort(learner, cohort, clip, like)
    assert torch.isfinite(full.sums).all()
    for k, one in enumerate(cohort):
        alone = train_cohort(learner, [one], clip, like).sums
        assert norm(alone[one.group]) <= mechanism.clipping_norm
        moved = full.sums.double() - train_cohort(learner, cohort[:k] + cohort[k + 1 :], clip, like).sums.double()
        group_size = sum(other.group == one.group for other in cohort)
        assert norm(moved[one.group]) <= mechanism.clipping_norm + tolerance(group_size, mechanism.clipping_norm)
        moved[one.group] = 0
        assert not moved.any()
    return full


class Scripted:
    """A learner whose local training adds what stands in the place of its batches."""

    wide = None

    def __init__(self, size: int) -> None:
        self.layout = SimpleNamespace(size=size, shared_size=size)

    def twins(self, count: int) -> list[Scripted]:
        return [self] * count

    def update(self, one: Participation) -> Update:
        return Update(one.start + one.batches() - one.start, one.private, 0.0)


any_float32 = st.floats(width=32) | st.sampled_from([3e38, -3e38, 1e-45, math.nan, math.inf, -math.inf])
update_tables = arrays.arrays(
    np.float32, st.tuples(st.integers(1, 5), st.integers(1, 12)), elements=any_float32, fill=st.floats(-1, 1, width=32)
)
norms = st.floats(1e-6, 1e6)


@settings(max_examples=200, deadline=None)
@given(update_tables, norms)
@example(np.full((2, 3), 3e38, np.float32), 1.3e-3)  # the factor C / ‖update‖ is subnormal in float32
@example(np.full((2, 3), 1e-45, np.float32), 1e-6)
def test_one_worker_moves_the_sum_by_at_most_the_clipping_norm(updates: NDArray[np.float32], bound: float) -> None:
    rows, size = updates.shape
    cohort = [
        Participation(0, n, torch.zeros(size), torch.zeros(0), lambda n=n: torch.from_numpy(updates[n]))
        for n in range(rows)
    ]
    check_influence(Scripted(size), cohort, Mechanism(1.0, bound, 1.0))


@settings(max_examples=200, deadline=None)
@given(update_tables, norms)
@example(np.full((1, 3), 3e38, np.float32), 1.3e-3)
def test_clipping_keeps_short_updates_and_the_direction_of_long_ones(
    updates: NDArray[np.float32], bound: float
) -> None:
    for update in torch.from_numpy(updates):
        clipped, before = Mechanism(1.0, bound, 1.0).clip(update)
        if not torch.isfinite(update).all():
            assert not math.isfinite(before) and not clipped.any()
        elif norm(update) <= bound * (1 - 1e-12):
            assert torch.equal(clipped, update)
        else:
            assert before == pytest.approx(norm(update), rel=1e-12)
            expected = update.double() * min(1.0, bound / norm(update))
            assert norm(clipped.double() - expected) <= 1e-6 * bound


@pytest.mark.parametrize(
    ("model", "learning_rate", "diverges"),
    [("linear", 1e-3, False), ("linear", 0.5, False), ("linear", 1e36, False), ("mnist-cnn", 0.2, False),
     ("mnist-cnn", 1e12, True)],
)  # fmt: skip
def test_one_worker_moves_the_sum_of_real_training_by_at_most_the_clipping_norm(
    monkeypatch: pytest.MonkeyPatch,
    make_federation: Callable[..., Federation],
    model: str,
    learning_rate: float,
    diverges: bool,
) -> None:
    federation = make_federation(
        overlapping(), model=model, learning_rate=learning_rate, clipping_norm=0.05, noise_multiplier=1.0, local_steps=3
    )
    seen = record_cohorts(monkeypatch)
    next_release(federation, federation.initial_state())
    monkeypatch.undo()
    assert len(seen[0]) == 12  # the places of Figure 1b
    cohort = [replace(one, batches=partial(list, one.batches())) for one in seen[0]]
    result = check_influence(federation.learner, cohort, federation.mechanism)
    assert any(not math.isfinite(value) for value in result.norms) == diverges
    assert any(value > 0.05 for value in result.norms if math.isfinite(value)) or learning_rate < 0.01


# What the engine draws


def record_cohorts(monkeypatch: pytest.MonkeyPatch) -> list[list[Participation]]:
    """From now on rounds train nobody; the list grows by each round's cohort."""
    seen: list[list[Participation]] = []

    def train_nobody(_learner: Any, cohort: list[Participation], _clip: Any, like: Tensor) -> CohortResult:
        seen.append(cohort)
        idle = [0.0] * len(cohort)
        return CohortResult(torch.zeros_like(like), [one.private for one in cohort], idle, idle)

    monkeypatch.setattr(engine, "train_cohort", train_nobody)
    return seen


@dataclass
class Drawn:
    """What the engine drew in T rounds: noise of each release [T, M, P], participation [T, places in groups]."""

    noise: NDArray[np.float32]
    joined: NDArray[np.bool_]
    place_of_group: NDArray[np.int64]

    def cohort_sizes(self, m: int) -> NDArray[np.int64]:
        return self.joined[:, self.place_of_group == m].sum(1)


def draw_rounds(
    monkeypatch: pytest.MonkeyPatch, federation: Federation, count: int, *, keep_noise: bool = True
) -> Drawn:
    """Rounds of the engine in which no update is anything but zero: what remains is cohorts and noise."""
    membership = federation.groups.membership
    place = {(m, n): k for k, (m, n) in enumerate(np.argwhere(membership).tolist())}
    divisor = federation.mechanism.sampling_rate * membership.sum(1)[:, None]
    noise, joined = [], np.zeros((count, len(place)), dtype=bool)
    start = federation.initial_state()
    zero = torch.zeros_like(start.shared)
    seen = record_cohorts(monkeypatch)
    for t in range(count):
        after, _ = next_release(federation, State(t, zero, start.private))
        if keep_noise:
            noise.append(after.shared.numpy() * divisor)
        joined[t, [place[one.group, one.client] for one in seen[-1]]] = True
    monkeypatch.undo()
    return Drawn(np.array(noise), joined, np.array([m for m, _ in place]))


def check_uncorrelated(vectors: NDArray[Any]) -> None:
    """No two rows [rows, P] are correlated.

    For independent rows a coefficient is close to normal with standard deviation 1/√P. A million pairs stay within
    6 of these with probability 0.998.
    """
    coefficients = np.corrcoef(vectors)[np.triu_indices(len(vectors), 1)]
    assert len(coefficients) < 1e6
    assert np.abs(coefficients).max() < 6 / math.sqrt(vectors.shape[1])


def check_gaussian(noise: NDArray[Any], scale: float) -> None:
    """The sample's standard deviation is within 2 % of `scale`, and its distribution is the normal one."""
    sample = noise.ravel()
    assert 5 / math.sqrt(2 * sample.size) < 0.02, "five standard errors of the estimate are to be below 2 %"
    assert np.std(sample) == pytest.approx(scale, rel=0.02)
    assert stats.kstest(sample[:200_000] / scale, "norm").pvalue > 1e-4


def test_central_noise_of_real_rounds(make_federation: Callable[..., Federation]) -> None:
    # A learning rate of 0: clients train, and their updates are exactly zero.
    federation = make_federation(
        overlapping(), learning_rate=0.0, sampling_rate=0.5, clipping_norm=0.7, noise_multiplier=1.3
    )
    divisor = 0.5 * federation.groups.membership.sum(1)[:, None]
    states = [federation.initial_state()]
    for _ in range(12):
        states.append(next_release(federation, states[-1])[0])
    noise = np.array([(b.shared - a.shared).double().numpy() * divisor for a, b in pairwise(states)])
    check_gaussian(noise, 0.7 * 1.3)
    for m in range(5):
        check_gaussian(noise[:, m], 0.7 * 1.3)
    check_uncorrelated(noise.reshape(12 * 5, -1))


@pytest.mark.parametrize("placement", ["central", "client"])
def test_noise_of_different_rounds_and_groups_is_independent(
    monkeypatch: pytest.MonkeyPatch, make_federation: Callable[..., Federation], placement: str
) -> None:
    federation = make_federation(overlapping(), clipping_norm=1.0, noise_multiplier=1.0, noise=placement)
    noise = draw_rounds(monkeypatch, federation, 40).noise
    check_uncorrelated(noise.reshape(40 * 5, -1))


def test_noise_of_different_clients_is_independent(
    monkeypatch: pytest.MonkeyPatch, make_federation: Callable[..., Federation]
) -> None:
    federation = make_federation(single(30), clipping_norm=0.2, noise_multiplier=3.0, noise="client")
    addresses = [engine._noise_draws(federation, t, 0, [n]) for t in (1, 2) for n in range(30)]
    zero = torch.zeros(federation.learner.layout.shared_size)
    noise = np.array([federation.mechanism.add_noise(zero.clone(), draws).numpy() for draws in addresses])
    check_gaussian(noise, 0.6)
    check_uncorrelated(noise)
    # These are the parts of which a round's release is made.
    release = draw_rounds(monkeypatch, federation, 1).noise[0, 0]
    np.testing.assert_allclose(release, noise[:30].sum(0), atol=1e-5)


def test_client_noise_grows_with_the_root_of_the_cohort(
    monkeypatch: pytest.MonkeyPatch, make_federation: Callable[..., Federation]
) -> None:
    federation = make_federation(single(12), sampling_rate=0.2, clipping_norm=0.5, noise_multiplier=2.0, noise="client")
    drawn = draw_rounds(monkeypatch, federation, 120)
    sizes = drawn.cohort_sizes(0)
    assert sizes.min() == 0 and sizes.max() >= 5
    for size, release in zip(sizes, drawn.noise[:, 0], strict=True):
        # Five standard errors of a standard deviation from P values; an empty cohort adds nothing at all.
        assert np.std(release) == pytest.approx(math.sqrt(size), rel=5 / math.sqrt(2 * release.size), abs=0)


def test_an_empty_cohort_is_a_pure_noise_step_when_noise_is_central(
    monkeypatch: pytest.MonkeyPatch, make_federation: Callable[..., Federation]
) -> None:
    federation = make_federation(single(3), sampling_rate=1e-3, clipping_norm=0.5, noise_multiplier=2.0)
    drawn = draw_rounds(monkeypatch, federation, 20)
    assert not drawn.joined.any()
    check_gaussian(drawn.noise, 1.0)


def test_cohorts_are_poisson_samples(
    monkeypatch: pytest.MonkeyPatch, make_federation: Callable[..., Federation]
) -> None:
    groups, q, count = overlapping(copies=2), 0.3, 2000
    drawn = draw_rounds(monkeypatch, make_federation(groups, sampling_rate=q), count, keep_noise=False)
    for m, members in enumerate(groups.members.values()):
        sizes = np.bincount(drawn.cohort_sizes(m), minlength=len(members) + 1)
        expected = count * stats.binom.pmf(np.arange(len(members) + 1), len(members), q)
        rare = expected < 5  # a chi-square test wants no rarer classes; they are counted together
        if rare.any():
            sizes, expected = (np.append(x[~rare], x[rare].sum()) for x in (sizes, expected))
        assert stats.chisquare(sizes, expected).pvalue > 1e-4
    # Each place in a group is taken with probability q (five standard errors), whoever else takes part, in this
    # group or another, in this round or the one before.
    assert np.abs(drawn.joined.mean(0) - q).max() < 5 * math.sqrt(q * (1 - q) / count)
    now_and_before = np.hstack([drawn.joined[1:], drawn.joined[:-1]]).T.astype(float)
    coefficients = np.corrcoef(now_and_before)
    places = drawn.joined.shape[1]
    later = coefficients[:places, places:]
    together = coefficients[:places, :places][np.triu_indices(places, 1)]
    assert max(np.abs(later).max(), np.abs(together).max()) < 5 / math.sqrt(count)  # some 900 coefficients


# What it says of itself


@pytest.mark.parametrize("placement", ["central", "client"])
@pytest.mark.parametrize(("q", "clipping_norm", "sigma"), [(0.3, 2.0, 0.8), (0.7, 0.25, 3.0), (1.0, 1.0, 0.1)])
def test_the_event_is_what_was_done(
    monkeypatch: pytest.MonkeyPatch,
    make_federation: Callable[..., Federation],
    q: float,
    clipping_norm: float,
    sigma: float,
    placement: str,
) -> None:
    federation = make_federation(
        single(20), sampling_rate=q, clipping_norm=clipping_norm, noise_multiplier=sigma, noise=placement
    )
    drawn = draw_rounds(monkeypatch, federation, 60)
    event = federation.mechanism.event()
    assert isinstance(event, PoissonSampledDpEvent if placement == "central" else KnownCohortDpEvent)
    assert isinstance(event.event, GaussianDpEvent)
    found_q = drawn.joined.mean()
    assert event.sampling_probability == pytest.approx(found_q, abs=5 * math.sqrt(q * (1 - q) / drawn.joined.size))
    sources = np.ones(60) if placement == "central" else drawn.cohort_sizes(0)
    found_sigma = np.std(drawn.noise[:, 0] / np.sqrt(sources)[:, None]) / clipping_norm
    assert event.event.noise_multiplier == pytest.approx(found_sigma, rel=0.01)


def test_without_noise_the_event_is_not_private() -> None:
    assert isinstance(Mechanism(0.5, 1.0, 0.0).event(), NonPrivateDpEvent)
    assert isinstance(Mechanism(0.5).event(), NonPrivateDpEvent)


@pytest.mark.parametrize("placement", ["central", "client"])
def test_neither_clipping_nor_noise(make_federation: Callable[..., Federation], placement: str) -> None:
    federation = make_federation(overlapping(), clipping_norm=math.inf, noise_multiplier=0.0, noise=placement)
    total = torch.tensor([1.0, -2.0])
    draws = [np.random.default_rng(0)]
    assert torch.equal(federation.mechanism.add_noise(total.clone(), draws), total)
    long = torch.tensor([3e38, -3e38])
    clipped, before = federation.mechanism.clip(long)
    assert torch.equal(clipped, long) and before == norm(long)
    after, summary = next_release(federation, federation.initial_state())
    assert torch.isfinite(after.shared).all() and not torch.equal(after.shared, federation.initial_state().shared)
    assert summary.clipped == 0


def test_noise_needs_a_finite_clipping_norm() -> None:
    with pytest.raises(ValueError, match="infinite clipping norm"):
        Mechanism(0.5, math.inf, 0.1)


@given(
    st.floats(0, 1, exclude_min=True),
    st.floats(0, exclude_min=True),
    st.floats(0, allow_infinity=False),
    st.sampled_from(["central", "client"]),
)
def test_description_round_trip(q: float, clipping_norm: float, sigma: float, placement: Any) -> None:
    mechanism = Mechanism(q, clipping_norm, 0.0 if math.isinf(clipping_norm) else sigma, placement)
    text = json.dumps(mechanism.describe(), allow_nan=False)
    assert Mechanism.of(json.loads(text)) == mechanism


def test_noise_of_long_vectors_does_not_depend_on_threads_and_is_gaussian() -> None:
    mechanism, size = Mechanism(0.5, 2.0, 1.5), 2**21 + 5
    try:
        made = []
        for threads in (1, 2):
            torch.set_num_threads(threads)
            made.append(mechanism.add_noise(torch.zeros(size), [np.random.default_rng(4)]))
    finally:
        torch.set_num_threads(1)
    assert torch.equal(*made)
    blocks = torch.split(made[0], 2**20)
    assert [block.std().item() for block in blocks[:2]] == pytest.approx([3.0, 3.0], rel=0.01)
    assert abs(torch.corrcoef(torch.stack(blocks[:2]))[0, 1].item()) < 0.005
