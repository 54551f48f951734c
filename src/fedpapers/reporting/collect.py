"""From the folders of runs to tidy tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd

Row = Mapping[str, Any]


def runs(table: Iterable[Row]) -> pd.DataFrame:
    """One row a run: its parameters, its last accuracy, and that of the majority class.

    Args:
        table: The run table of the workflow.
    """
    return pd.DataFrame([_run(row) for row in table])


def history(table: Iterable[Row]) -> pd.DataFrame:
    """One row an evaluation of a run: columns `run` and those of its metrics files."""
    parts = [_metrics(row).assign(run=row["run"]) for row in table]
    frame = pd.concat(parts, ignore_index=True)
    return frame[["run", *frame.columns.drop("run")]]


def majority_accuracy(histogram: Path) -> float:
    """Mean over clients of the accuracy of always answering the client's most frequent training label."""
    counts = pd.read_csv(histogram, dtype={"client": str})
    wide = counts.pivot_table(index=["client", "label"], columns="split", values="samples", fill_value=0)
    majority = wide["train"].groupby("client").idxmax()
    right = wide["test"].loc[majority.to_list()].droplevel("label")
    return float((right / wide["test"].groupby("client").sum()).mean())


_majority_of = cache(majority_accuracy)


def _run(row: Row) -> dict[str, Any]:
    parameters = {key: value for key, value in row.items() if key not in ("states", "partition_folder")}
    last = _metrics(row).iloc[-1]
    return parameters | {
        "accuracy": last["accuracy"],
        "accuracy_by_sample": last["accuracy_by_sample"],
        "loss": last["loss"],
        "majority_accuracy": _majority_of(Path(row["partition_folder"]) / "histogram.csv"),
    }


def _metrics(row: Row) -> pd.DataFrame:
    files = [Path(state).with_suffix(".metrics.csv") for state in row["states"]]
    return pd.concat([pd.read_csv(file) for file in files], ignore_index=True)
