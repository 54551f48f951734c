"""What each run's ledger costs its workers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from fedpapers.experiment.store import read_record
from fedpapers.privacy.accounting import epsilon
from fedpapers.privacy.ledger import Ledger

COLUMNS = (
    "run", "accountant", "delta", "epsilon_max", "epsilon_mean", "unit", "relation", "adversary",
    "approximation", "note",
)  # fmt: skip

ADVERSARY = "any other worker, who sees every model of its groups"


def account(table: Iterable[Mapping[str, Any]], delta: float, accountants: Sequence[str]) -> list[dict[str, Any]]:
    """One row a run and accountant: ε of the worker that has spent most, and the mean over workers.

    A worker spends in each of its groups that the ledger has; ε bounds what anyone learns who sees all of these
    groups' models, so it holds against each other worker.

    Args:
        table: The run table of the workflow; of each run the last state is read.
        delta: δ.
        accountants: Names of accountants.
    """
    return [
        row
        for planned in table
        for row in _account_run(planned["run"], read_record(Path(planned["states"][-1])), delta, accountants)
    ]


def _account_run(run: str, record: Mapping[str, Any], delta: float, accountants: Sequence[str]) -> list[dict[str, Any]]:
    ledger = Ledger.of(record["ledger"])
    memberships = _memberships(record["groups"])
    rows = []
    for accountant in accountants:
        answers = [epsilon(ledger.event(groups), delta, accountant) for groups in memberships]
        worst = max(answers, key=lambda answer: answer.value)
        rows.append(
            {
                "run": run,
                "accountant": accountant,
                "delta": delta,
                "epsilon_max": worst.value,
                "epsilon_mean": float(np.mean([answer.value for answer in answers])),
                "unit": "all data of one worker",
                "relation": worst.relation,
                "adversary": ADVERSARY,
                "approximation": worst.approximation,
                "note": worst.note or "",
            }
        )
    return rows


def _memberships(groups: Mapping[str, Sequence[str]]) -> list[tuple[str, ...]]:
    """The groups of each worker."""
    workers = dict.fromkeys(worker for members in groups.values() for worker in members)
    return [tuple(name for name, members in groups.items() if worker in members) for worker in workers]
