"""What a run has released so far: one ledger a run, written by training, read by the accountants."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from fedpapers.privacy.mechanism import Mechanism

if TYPE_CHECKING:
    from dp_accounting import DpEvent


Spent = frozenset[tuple[Mechanism, int]]


def spending_groups(groups: Mapping[str, Sequence[str]], mixing: str | None) -> list[tuple[str, ...]]:
    """For each worker the groups in which its data are released to others.

    What a worker alone in a group releases there stays with it, unless group models themselves are mixed
    (`mixing: model`): then its model goes unclipped into those of its other groups.

    Args:
        groups: Group -> its workers, as they train.
        mixing: `update` or `model`, or None where models never pass between groups.
    """
    seen = {name: workers for name, workers in groups.items() if len(workers) > 1 or mixing == "model"}
    workers = dict.fromkeys(worker for members in groups.values() for worker in members)
    return [tuple(name for name, members in seen.items() if worker in members) for worker in workers]


@dataclass
class Ledger:
    """The releases of each group.

    Attributes:
        releases: Group name and mechanism -> number of releases.
    """

    releases: dict[tuple[str, Mechanism], int] = field(default_factory=dict)

    def record(self, groups: Iterable[str], mechanism: Mechanism) -> None:
        """Enter one release of each group."""
        for group in groups:
            self.releases[group, mechanism] = self.releases.get((group, mechanism), 0) + 1

    def of_groups(self, groups: Iterable[str]) -> Spent:
        """The mechanisms by which some groups have released, and how often; equal ones together."""
        wanted = set(groups)
        spent: dict[Mechanism, int] = {}
        for (group, mechanism), times in self.releases.items():
            if group in wanted:
                spent[mechanism] = spent.get(mechanism, 0) + times
        return frozenset(spent.items())

    def event(self, groups: Iterable[str]) -> DpEvent:
        """All releases of some groups as one event: what a worker in all of them has spent.

        The groups' cohorts and noises are drawn independently, and each round's mechanisms may depend on all
        earlier releases, so that adaptive composition bounds what anybody learns who sees all of them.
        """
        import dp_accounting

        spent = sorted(self.of_groups(groups), key=repr)
        return dp_accounting.ComposedDpEvent(
            [dp_accounting.SelfComposedDpEvent(mechanism.event(), times) for mechanism, times in spent]
        )

    def describe(self) -> list[dict[str, Any]]:
        """The ledger as plain values."""
        return [
            {"group": group, "mechanism": mechanism.describe(), "releases": count}
            for (group, mechanism), count in self.releases.items()
        ]

    @classmethod
    def of(cls, entries: Iterable[Mapping[str, Any]]) -> Ledger:
        """The ledger from plain values."""
        return cls({(entry["group"], Mechanism.of(entry["mechanism"])): entry["releases"] for entry in entries})
