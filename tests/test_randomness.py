"""Addresses of random draws: different ones are unrelated, equal ones are the same, whatever happened before."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedpapers.randomness import Purpose, generator

Address = tuple[int, Purpose, int, int, int]

SEEDS = (0, 1, 2**31, 2**32 - 1, 2**32, 2**40, 2**63 - 1)
# What is likely to be taken for something else: zeros at an end, one more word, the same number at another place.
PLACES = [*itertools.product((0, 1, 2, 5), repeat=3), (2**32, 0, 0), (0, 2**32, 0), (0, 0, 2**32), (2**31, 0, 0),
          (2**32 - 1, 0, 0), (2**32 + 1, 0, 0), (2**64, 0, 0)]  # fmt: skip


def draws(address: Address, count: int = 2) -> tuple[int, ...]:
    seed, purpose, t, m, n = address
    drawn = generator(seed, purpose, round=t, group=m, client=n).integers(2**63, size=count)
    return tuple(drawn.tolist())


def all_different(addresses: list[Address]) -> bool:
    # By chance two of 10⁴ streams share a first draw of 63 bits with probability 5·10⁻¹².
    first = {draws(address)[0] for address in addresses}
    return len(first) == len(set(addresses))


def test_no_two_addresses_share_a_stream() -> None:
    assert all_different([(seed, p, *place) for seed in SEEDS for p in Purpose for place in PLACES])


def test_no_two_addresses_of_a_long_run_share_a_stream() -> None:
    assert all_different([(1, Purpose.NOISE, t, m, n) for t in range(1, 201) for m in range(5) for n in range(8)])


addresses = st.tuples(
    st.integers(0, 2**63 - 1),
    st.sampled_from(Purpose),
    st.integers(0, 2**32 - 1),
    st.integers(0, 2**32 - 1),
    st.integers(0, 2**32 - 1),
)


@settings(max_examples=100, deadline=None)
@given(addresses, addresses)
def test_streams_differ_exactly_when_their_addresses_do(one: Address, other: Address) -> None:
    before = draws(one, 5)
    same = draws(other, 5) == before
    assert same == (one == other)
    np.random.default_rng(0).random()
    assert draws(one, 5) == before


@settings(max_examples=100, deadline=None)
@given(addresses, st.permutations(range(3)))
def test_round_group_and_client_are_not_interchangeable(address: Address, order: list[int]) -> None:
    seed, purpose, *place = address
    swapped = [place[i] for i in order]
    assert (draws(address) == draws((seed, purpose, *swapped))) == (swapped == place)


def test_numpy_integers_are_the_same_address() -> None:
    ours = generator(3, Purpose.COHORT, round=np.int64(2), group=np.int64(1), client=np.int32(4))
    assert ours.random() == generator(3, Purpose.COHORT, round=2, group=1, client=4).random()


def test_streams_of_neighbouring_addresses_are_uncorrelated() -> None:
    size = 4000
    near = [(s, p, t, m, n) for s in (0, 1) for p in (Purpose.COHORT, Purpose.NOISE) for t, m, n in PLACES[:27]]
    rows = np.array([generator(s, p, round=t, group=m, client=n).standard_normal(size) for s, p, t, m, n in near])
    coefficients = np.corrcoef(rows)[np.triu_indices(len(rows), 1)]
    # Standard deviation 1/√size each; six of them are passed by one of 5,778 pairs with probability 1e-5.
    assert np.abs(coefficients).max() < 6 / np.sqrt(size)


def test_purposes_keep_their_numbers() -> None:
    # They are part of every result: append below, never renumber.
    known = {"PARTITION": 1, "STRUCTURE": 2, "INIT": 3, "COHORT": 4, "BATCHES": 5, "NOISE": 6}
    assert {p.name: p.value for p in Purpose if p.name in known} == known
    assert len({p.value for p in Purpose}) == len(list(Purpose.__members__))


def test_a_negative_seed_is_refused() -> None:
    with pytest.raises(ValueError, match="non-negative"):
        generator(-1, Purpose.INIT)
