"""MultFAug's learning as tidy tables, and the table for people."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from fedpapers.files import read_sealed
from fedpapers.reporting.tables import NOT_AVAILABLE, mean_and_sd

MEASURES = ("precision", "recall", "f1", "recognised", "recognised_of_real", "own_map_privacy", "common_map_privacy")
DEADLINES = ("tight", "loose")


def collect_cells(cells: Iterable[Mapping[str, Any]], files: Iterable[str]) -> pd.DataFrame:
    """One row a cell: its setting, what arrived, and accuracy before and after, over all labels and on the target.

    Args:
        cells: The cells of the plan.
        files: `{classifier}.json` of every network that they name.

    Raises:
        InputError: A file is missing or not one of a network.
    """
    results = {Path(file).stem: read_sealed(Path(file)) for file in files}
    rows = []
    for cell in cells:
        accuracy = {}
        for state in ("alone", "augmented"):
            accuracy[f"accuracy_{state}"] = results[cell[state]]["accuracy"]
            accuracy[f"target_accuracy_{state}"] = results[cell[state]]["target_accuracy"]
        rows.append({**cell, **accuracy, "generated": results[cell["augmented"]]["generated"]})
    return pd.DataFrame(rows)


def collect_quality(cells: Iterable[Mapping[str, Any]], files: Iterable[str]) -> pd.DataFrame:
    """One row a cell in which compression rates are compared: its setting, what arrived, `MEASURES`.

    Raises:
        InputError: A file is missing or not a judgement.
    """
    results = {Path(file).parent.name: read_sealed(Path(file)) for file in files}
    rows = [{**cell, **{measure: results[cell["gan"]][measure] for measure in MEASURES}} for cell in cells]
    return pd.DataFrame(rows, columns=None if rows else ["compression", "deadline", "seed", *MEASURES])


def at_first_compression(cells: pd.DataFrame) -> pd.DataFrame:
    """The cells of accuracy over hops: those at the compression rate of the first."""
    found: pd.DataFrame = cells[cells["compression"] == cells["compression"].iloc[0]]
    return found


def deadline_name(rows: pd.DataFrame) -> str:
    """A deadline as it is shown, from rows that have one."""
    tau = rows["tau"].iloc[0]
    return f"{rows['deadline'].iloc[0]}: " + ("none" if pd.isna(tau) else f"{tau:g} slots")


def augmentation_table(cells: pd.DataFrame) -> pd.DataFrame:
    """One row a number of devices, deadline and number of hops; mean ± sd over seeds."""
    rows = []
    for (devices, _, hops), group in at_first_compression(cells).groupby(["devices", "deadline", "hops"]):
        gain = group["target_accuracy_augmented"] - group["target_accuracy_alone"]
        rows.append(
            {
                "N": devices,
                "Deadline": deadline_name(group),
                "M": hops,
                "Repetitions": len(group),
                "Seeds": mean_and_sd(group["seeds"], 1),
                "Labels": mean_and_sd(group["labels"], 1),
                "Seeds of the target label": mean_and_sd(group["target_seeds"], 1),
                "Target label covered (%)": mean_and_sd((group["target_seeds"] > 0).astype(float), digits=0),
                "Label privacy": mean_and_sd(group["label_privacy"], 1, 3),
                "Accuracy alone (%)": mean_and_sd(group["accuracy_alone"]),
                "Accuracy augmented (%)": mean_and_sd(group["accuracy_augmented"]),
                "Target label alone (%)": mean_and_sd(group["target_accuracy_alone"]),
                "Target label augmented (%)": mean_and_sd(group["target_accuracy_augmented"]),
                "Gain on the target label": mean_and_sd(gain),
                "Published": NOT_AVAILABLE,
            }
        )
    return pd.DataFrame(rows)
