"""The structures: who is in which group, who is in several, and what is refused."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from fedpapers import groups
from fedpapers.errors import InputError
from fedpapers.groups import Groups

quick = settings(max_examples=60, deadline=None)
sizes = st.integers(1, 8)
counts = st.integers(1, 7)


def check_sharing(made: Groups, size: int, shared: int, neighbours: Iterable[tuple[int, int]]) -> None:
    """All groups have `size` workers; neighbours have `shared` of them in common, others none."""
    members = [set(workers) for workers in made.members.values()]
    assert [len(workers) for workers in made.members.values()] == [size] * len(members)
    expected = {frozenset(pair) for pair in neighbours}
    for a, b in itertools.combinations(range(len(members)), 2):
        assert len(members[a] & members[b]) == (shared if frozenset((a, b)) in expected else 0), (a, b)
    # Nobody stands between more groups than two, and nobody's number is left out.
    assert len(made.workers) == len(members) * size - shared * len(expected)
    assert set(made.workers) == {str(n + 1) for n in range(len(made.workers))}


def built_or_refused(build: Callable[[], Groups], possible: bool) -> Groups:
    if not possible:
        with pytest.raises(InputError, match="cannot share"):
            build()
        assume(False)
    return build()


@quick
@given(counts, sizes, st.integers(0, 5))
def test_neighbours_in_a_string_share_workers(count: int, size: int, shared: int) -> None:
    sides = min(2, count - 1)
    made = built_or_refused(lambda: groups.string(count, size, shared), shared * sides <= size and shared != size)
    check_sharing(made, size, shared, itertools.pairwise(range(count)))


@quick
@given(st.integers(3, 8), sizes, st.integers(0, 5))
def test_neighbours_in_a_ring_share_workers(count: int, size: int, shared: int) -> None:
    made = built_or_refused(lambda: groups.ring(count, size, shared), 2 * shared <= size)
    check_sharing(made, size, shared, [(m, (m + 1) % count) for m in range(count)])


@quick
@given(counts, st.integers(1, 14), st.integers(0, 4))
def test_the_middle_of_a_star_shares_workers(count: int, size: int, shared: int) -> None:
    possible = shared * (count - 1) <= size and shared != size
    made = built_or_refused(lambda: groups.star(count, size, shared), possible)
    check_sharing(made, size, shared, [(0, m) for m in range(1, count)])


@quick
@given(st.integers(1, 4), st.integers(1, 4), st.integers(1, 9), st.integers(0, 3))
def test_neighbours_on_a_grid_share_workers(rows: int, columns: int, size: int, shared: int) -> None:
    sides = min(2, rows - 1) + min(2, columns - 1)
    made = built_or_refused(lambda: groups.grid(rows, columns, size, shared), shared * sides <= size and shared != size)
    cells = list(itertools.product(range(rows), range(columns)))
    neighbours = [
        (i, j) for i, (r, c) in enumerate(cells) for j, to in enumerate(cells) if to in ((r, c + 1), (r + 1, c))
    ]
    check_sharing(made, size, shared, neighbours)
    assert made.names == tuple(f"G{r + 1}.{c + 1}" for r, c in cells)


@quick
@given(counts, sizes)
def test_disjoint_groups_share_nobody(count: int, size: int) -> None:
    check_sharing(groups.disjoint(count, size), size, 0, [])


@quick
@given(st.integers(1, 20))
def test_a_single_group_has_everybody(workers: int) -> None:
    assert groups.single(workers).members == {"A": tuple(str(n + 1) for n in range(workers))}


@quick
@given(counts, sizes, st.integers(1, 30), st.integers(0, 2**40))
def test_random_groups_leave_nobody_out(count: int, size: int, workers: int, seed: int) -> None:
    if count * size < workers or size > workers:
        with pytest.raises(InputError, match="structure random"):
            groups.random(count, size, workers, seed)
        return
    made = groups.random(count, size, workers, seed)
    assert [len(members) for members in made.members.values()] == [size] * count
    assert set(made.workers) == {str(n + 1) for n in range(workers)}
    assert groups.random(count, size, workers, seed) == made


def test_random_groups_depend_on_the_seed() -> None:
    assert len({groups.random(4, 5, 12, seed).workers for seed in range(20)}) == 20


def test_figure_1b() -> None:
    expected = {"A": "1 2", "B": "2 3 4", "C": "4 5", "D": "5 6 7", "E": "3 6"}
    assert groups.overlapping().members == {name: tuple(workers.split()) for name, workers in expected.items()}
    assert groups.overlapping().workers == tuple("1234567")


@quick
@given(st.integers(1, 6))
def test_copies_of_figure_1b_stand_side_by_side(copies: int) -> None:
    figure, made = groups.overlapping().membership, groups.overlapping(copies)
    assert set(made.workers) == {str(n + 1) for n in range(7 * copies)}
    column = [int(worker) - 1 for worker in made.workers]
    assert np.array_equal(made.membership, figure[:, [w // copies for w in column]])


# Any groups

workers_of_a_group = st.lists(st.sampled_from("abcdefghij"), min_size=1, max_size=6, unique=True).map(tuple)
any_groups = st.dictionaries(st.text("GHIJ", min_size=1, max_size=3), workers_of_a_group, min_size=1).map(Groups)


@quick
@given(any_groups)
def test_every_way_of_grouping_keeps_the_order_of_the_workers(given_groups: Groups) -> None:
    # A worker's index is part of the address of its draws, and names its samples.
    for made in (given_groups.merged(), given_groups.separated(), given_groups.disjoint()):
        assert made.workers == given_groups.workers


@quick
@given(any_groups)
def test_membership_is_what_the_groups_say(given_groups: Groups) -> None:
    for m, name in enumerate(given_groups.names):
        members = [w for n, w in enumerate(given_groups.workers) if given_groups.membership[m, n]]
        assert sorted(members) == sorted(given_groups.members[name])
    assert given_groups.membership.any(axis=0).all()


@quick
@given(any_groups)
def test_merged_separated_and_disjoint(given_groups: Groups) -> None:
    workers = given_groups.workers
    assert given_groups.merged().members == {"all": workers}
    assert given_groups.separated().members == {worker: (worker,) for worker in workers}
    apart = given_groups.disjoint()
    first = {w: next(g for g, members in given_groups.members.items() if w in members) for w in workers}
    assert {w: [g for g, members in apart.members.items() if w in members] for w in workers} == {
        w: [group] for w, group in first.items()
    }
    assert apart.disjoint() == apart


def test_names_may_be_numbers() -> None:
    assert groups.from_mapping({1: [1, "b"], "two": ["1"]}).members == {"1": ("1", "b"), "two": ("1",)}


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: Groups({}), "there is no group"),
        (lambda: Groups({"A": ("1",), "B": ()}), "groups.B: the group is empty"),
        (lambda: Groups({"A": ("1", "2", "1")}), "groups.A: worker '1' is listed twice"),
        (lambda: groups.from_mapping({"A": [1, "1"]}), "groups.A: worker '1' is listed twice"),
        (lambda: groups.single(0), "groups.A: the group is empty"),
        (lambda: groups.ring(2, 4, 1), "structure ring: groups is 2; expected at least 3"),
        (lambda: groups.string(3, 4, -1), "cannot share -1"),
        (lambda: groups.random(2, 3, 7), "2 groups of 3 have no place for 7 workers"),
        (lambda: groups.random(2, 8, 7), "a group of 8 of 7 workers"),
    ],
)
def test_refused(build: Callable[[], Groups], message: str) -> None:
    with pytest.raises(InputError) as caught:
        build()
    assert message in str(caught.value) and "\n" not in str(caught.value)
