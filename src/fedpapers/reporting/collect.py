"""From the folders of runs to tidy tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd

from fedpapers.errors import InputError
from fedpapers.files import read_sealed, sha256

Row = Mapping[str, Any]


def runs(table: Iterable[Row]) -> pd.DataFrame:
    """One row a run: its parameters, its last accuracy, and that of the best constant answer.

    Args:
        table: The run table of the workflow.
    """
    return pd.DataFrame([_run(row) for row in table])


def history(table: Iterable[Row]) -> pd.DataFrame:
    """One row an evaluation of a run: columns `run` and those of its metrics files."""
    parts = [_metrics(row).assign(run=row["run"]) for row in table]
    frame = pd.concat(parts, ignore_index=True)
    return frame[["run", *frame.columns.drop("run")]]


def constant_accuracy(histogram: Path) -> float:
    """Mean over clients of the accuracy of the best constant answer: the most frequent label of each test set.

    It knows the test samples, so that no answer that ignores the image does better.
    """
    counts = read_histogram(histogram)
    by_client = counts[counts["split"] == "test"].groupby("client")["samples"]
    return float((by_client.max() / by_client.sum()).mean())


_constant_of = cache(constant_accuracy)


@cache
def _clients_of(histogram: Path) -> int:
    """M: the number of clients of a partition."""
    return int(read_histogram(histogram)["client"].nunique())


def read_histogram(path: Path) -> pd.DataFrame:
    """The histogram of a partition: columns `client`, `split`, `label`, `samples`.

    Raises:
        InputError: It is not the one of which `about.json` beside it has the checksum.
    """
    about = path.with_name("about.json")
    if not path.is_file() or sha256(path) != read_sealed(about).get("histogram_sha256"):
        raise InputError(f"{path}: not the file that was written; delete it to make the partition again")
    return pd.read_csv(path, dtype={"client": str}, keep_default_na=False)


def _run(row: Row) -> dict[str, Any]:
    parameters = {key: value for key, value in row.items() if key not in ("states", "partition_folder")}
    last = _metrics(row).iloc[-1]
    histogram = Path(row["partition_folder"]) / "histogram.csv"
    if "cohort_size" in parameters:
        parameters["sampling_rate"] = parameters["cohort_size"] / _clients_of(histogram)
    return parameters | {
        "accuracy": last["accuracy"],
        "accuracy_unpersonalised": last["accuracy_unpersonalised"],
        "accuracy_by_sample": last["accuracy_by_sample"],
        "loss": last["loss"],
        "constant_accuracy": _constant_of(histogram),
        "clients": _clients_of(histogram),
    }


def _metrics(row: Row) -> pd.DataFrame:
    files = [Path(state).with_suffix(".metrics.csv") for state in row["states"]]
    return pd.concat([pd.read_csv(file) for file in files], ignore_index=True)
