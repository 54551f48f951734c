"""What each run's ledger costs its workers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from fedpapers.experiment.store import read_record_of_run
from fedpapers.privacy.accounting import epsilon
from fedpapers.privacy.ledger import Ledger, spending_groups

COLUMNS = (
    "run", "accountant", "delta", "epsilon_max", "epsilon_mean", "unit", "relation", "adversary",
    "approximation", "note",
)  # fmt: skip

ADVERSARY = "any other worker, who sees every model of its groups"


def account(table: Iterable[Mapping[str, Any]], delta: float, accountants: Sequence[str]) -> list[dict[str, Any]]:
    """One row a run and accountant: ε of the worker that has spent most, and the mean over workers.

    A worker spends in each group whose releases others see; ε bounds what anyone learns who sees all models of all
    these groups, so it holds against each other worker.

    Args:
        table: The run table of the workflow; of each run the last state is read.
        delta: δ.
        accountants: Names of accountants.
    """
    return [
        row
        for planned in table
        for row in _account_run(planned["run"], read_record_of_run(Path(planned["states"][-1])), delta, accountants)
    ]


def _account_run(run: str, record: Mapping[str, Any], delta: float, accountants: Sequence[str]) -> list[dict[str, Any]]:
    ledger = Ledger.of(record["ledger"])
    memberships = spending_groups(record["groups"], record["run"].get("mixing"))
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
