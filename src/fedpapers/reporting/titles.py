"""Data of a user's own, which are called by the title that he gave them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

import pandas as pd

from fedpapers.reporting.collect import read_histogram


def entitled(counts: pd.DataFrame, partitions: Iterable[Mapping[str, str]]) -> pd.DataFrame:
    """The counts, with each titled data set called by its title, and the classes of which it has samples.

    A title is never the name of published data, so that nothing published is taken for theirs.

    Args:
        counts: As `dpfedmtl.count_clients` gives it.
        partitions: What that was given, with a `title` where a data set has one.
    """
    for one in partitions:
        if "title" in one:
            own = counts["dataset"] == one["dataset"]
            labels = read_histogram(Path(one["folder"]) / "histogram.csv")["label"]
            counts = counts.assign(
                data=counts["data"].mask(own, one["title"]), classes=counts["classes"].mask(own, labels.nunique())
            )
    return counts
