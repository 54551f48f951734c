"""The search of hyper-parameters: what was tried, and what did best on the validation clients."""

from __future__ import annotations

import pandas as pd

from fedpapers.reporting.runs import heading
from fedpapers.reporting.tables import mean_and_sd

_CASE = ["dataset", "title", "noise_multiplier"]
_SEARCHED = ["learning_rate", "clipping_norm", "local_steps", "rounds", "cohort_size", "personalise_epochs"]


def tuning_table(runs: pd.DataFrame) -> pd.DataFrame:
    """One row a setting: accuracy on the validation clients, and whether it is the best one of its case.

    A case is a data set, an algorithm and a noise multiplier. Hyper-parameters that do not vary are left out.

    Args:
        runs: The runs of the search, as `read_runs` gives them.
    """
    case = [column for column in _CASE if column in runs]
    searched = [column for column in _SEARCHED if column in runs and runs[column].nunique() > 1]
    means = runs.groupby([*case, *searched], dropna=False, sort=False)["accuracy"]
    settings = means.agg(list).reset_index()
    settings["mean"] = means.mean().to_numpy()
    best = settings["mean"] == settings.groupby(case, dropna=False)["mean"].transform("max")
    return pd.DataFrame(
        {
            "Data set": settings["dataset"],
            "Algorithm": settings["title"],
            **{heading(column): settings[column].map(_shown) for column in [*case[2:], *searched]},
            "Accuracy (%)": [mean_and_sd(pd.Series(values)) for values in settings["accuracy"]],
            "Seeds": settings["accuracy"].map(len).map(str),
            "Best": best.map({True: "best", False: ""}),
        }
    )


def _shown(value: float) -> str:
    return "–" if pd.isna(value) else f"{value:g}"
