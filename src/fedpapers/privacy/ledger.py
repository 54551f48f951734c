"""What a run has released so far: one ledger a run, written by training, read by the accountants."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from fedpapers.privacy.mechanism import Mechanism

if TYPE_CHECKING:
    from dp_accounting import DpEvent


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

    def event(self, groups: Iterable[str]) -> DpEvent:
        """All releases of some groups as one event: what a worker in all of them has spent.

        The groups' cohorts and noises are drawn independently, and each round's mechanisms may depend on all
        earlier releases, so that adaptive composition bounds what anybody learns who sees all of them.
        """
        import dp_accounting

        wanted = set(groups)
        return dp_accounting.ComposedDpEvent(
            [
                dp_accounting.SelfComposedDpEvent(mechanism.event(), count)
                for (group, mechanism), count in sorted(self.releases.items(), key=lambda item: item[0][0])
                if group in wanted
            ]
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
