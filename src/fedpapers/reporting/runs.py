"""What tells the runs of a paper apart, in words."""

from __future__ import annotations

from functools import partial

import pandas as pd

_RESULTS = {
    "run", "grid", "title", "seed", "accuracy", "accuracy_unpersonalised", "accuracy_by_sample", "loss",
    "constant_accuracy", "clients",
    "delta", "in_group_max", "in_group_mean", "out_of_group_max", "out_of_group_mean", "claimed_out_of_group_max",
}  # fmt: skip
_NAMES = {
    "noise_multiplier": "σ",
    "clipping_norm": "C",
    "sampling_rate": "q",
    "cohort_size": "K",
    "learning_rate": "η",
    "local_steps": "L",
    "batch_size": "batch",
    "interval": "S",
    "rounds": "T",
}
_GROUPS = {
    "single": "one group",
    "each": "each worker alone",
    "overlapping": "overlapping groups",
    "disjoint": "disjoint groups",
}


def read_runs(path: str) -> pd.DataFrame:
    """The runs' table, with the columns `groups` (who trains together) and `method` (title and groups)."""
    frame = pd.read_csv(path, keep_default_na=False, na_values=[""])
    frame["groups"] = [_GROUPS[grouping] for grouping in frame["grouping"]]
    frame["method"] = frame["title"] + ", " + frame["groups"]
    return frame


def varying(frame: pd.DataFrame) -> list[str]:
    """The hyper-parameters in which runs differ, before them the noise multiplier if any run has one."""
    known = _RESULTS | {"algorithm", "grouping", "groups", "method", "evaluate_every"}
    columns = [column for column in frame.columns if column not in known]
    differ = [column for column in columns if frame[column].nunique() > 1]
    first = ["noise_multiplier"] if private(frame).any() else []
    return first + [column for column in differ if column not in first]


def heading(column: str) -> str:
    """A hyper-parameter's name as it is shown."""
    return _NAMES.get(column, column.replace("_", " "))


def add_series(frame: pd.DataFrame) -> pd.DataFrame:
    """Add the columns `kind` (who trains together, what varies besides noise and seed) and `series` (with the title).

    A method and its twin without noise are of one kind.
    """
    kind = frame["groups"].copy()
    for column in varying(frame):
        if column != "noise_multiplier":
            kind += frame[column].map(partial(_part, column))
    return frame.assign(kind=kind, series=frame["title"] + ", " + kind)


def swept(frame: pd.DataFrame) -> pd.DataFrame:
    """The runs of series that have as many noise multipliers as any of their method: single ones say no trend."""
    if not private(frame).any():
        return frame
    others = [column for column in varying(frame) if column not in ("noise_multiplier", "seed")]
    by_series = frame.groupby(["method", *others], dropna=False)["noise_multiplier"].transform("nunique")
    most = by_series.groupby(frame["method"]).transform("max")
    return frame[by_series == most]


def _part(column: str, value: str | float) -> str:
    """What a hyper-parameter adds to a label; nothing where a run does not have it."""
    if pd.isna(value):
        return ""
    if column == "structure":
        return f", {value}"
    if column == "mixing":
        return f", mixing {value}s"
    return f", {heading(column)} = {value:g}" if isinstance(value, float) else f", {heading(column)} = {value}"


def private(frame: pd.DataFrame) -> pd.Series[bool]:
    """Which runs have a noise multiplier at all."""
    has = "noise_multiplier" in frame
    return frame["noise_multiplier"].notna() if has else pd.Series(False, index=frame.index)
