"""The search of hyper-parameters: what was tried, and what did best on the validation clients."""

from __future__ import annotations

import pandas as pd

from fedpapers.reporting.runs import heading
from fedpapers.reporting.tables import mean_and_sd

_CASE = ["dataset", "title", "noise_multiplier"]
_SEARCHED = ["learning_rate", "clipping_norm", "local_steps", "cohort_size", "personalise_epochs", "round"]


def tuning_table(runs: pd.DataFrame, history: pd.DataFrame) -> pd.DataFrame:
    """One row a setting: accuracy on the validation clients, and whether it is the best one of its case.

    A case is a data set, an algorithm and a noise multiplier. A round of a run is a setting too, as a shorter run is
    the beginning of a longer one. Hyper-parameters that do not vary are left out.

    Args:
        runs: The runs of the search, as `read_runs` gives them.
        history: One row an evaluation of a run.
    """
    later = history.loc[history["round"] > 0, ["run", "round", "accuracy"]]
    tried = runs.drop(columns="accuracy").merge(later, on="run")
    case = [column for column in _CASE if column in tried]
    searched = [column for column in _SEARCHED if column in tried and tried[column].nunique() > 1]
    by_setting = tried.groupby([*case, *searched], dropna=False, sort=False)["accuracy"]
    settings = by_setting.agg(["mean", list]).reset_index()
    best = settings["mean"] == settings.groupby(case, dropna=False)["mean"].transform("max")
    return pd.DataFrame(
        {
            "Data set": settings["dataset"],
            "Algorithm": settings["title"],
            **{heading(column): settings[column].map(_shown) for column in [*case[2:], *searched]},
            "Accuracy (%)": [mean_and_sd(pd.Series(values)) for values in settings["list"]],
            "Seeds": settings["list"].map(len).map(str),
            "Best": best.map({True: "best", False: ""}),
        }
    )


def _shown(value: float) -> str:
    return "–" if pd.isna(value) else f"{value:g}"
