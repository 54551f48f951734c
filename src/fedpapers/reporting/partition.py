"""The picture of a partition: who holds how many samples of which label."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import pandas as pd
import seaborn as sns
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

_MOST_NAMED = 40


def plot_partition(
    histogram: pd.DataFrame, classes: Sequence[str], groups: Mapping[str, Sequence[str]], data: str
) -> Figure:
    """A heat map of samples by client and label, and beside it which client is in which group.

    Args:
        histogram: Columns client, split, label, samples.
        classes: Names of the labels.
        groups: Group -> its workers; empty where there are none.
        data: Name of the data set.
    """
    order = list(dict.fromkeys(histogram["client"]))
    counts = histogram.pivot_table(index="client", columns="label", values="samples", aggfunc="sum", fill_value=0)
    counts = counts.reindex(index=order, columns=range(len(classes)), fill_value=0)
    wide = min(12.0, 4 + 0.11 * len(order))
    figure, (above, below) = plt.subplots(
        2, 1, sharex=True, figsize=(wide, 4.6), layout="constrained",
        gridspec_kw={"height_ratios": [len(classes), max(1, len(groups))]},
    )  # fmt: skip
    sns.heatmap(
        counts.T,
        ax=above,
        cmap="viridis",
        cbar_kws={"label": "samples", "ticks": MaxNLocator(integer=True)},
        xticklabels=False,
    )
    above.set(ylabel="label", xlabel="", title=f"{data}: samples of each worker by label")
    above.set_yticklabels(classes, rotation=0)
    member = pd.DataFrame(
        {name: [client in set(workers) for client in order] for name, workers in groups.items()}, index=order
    )
    if groups:
        sns.heatmap(member.T.astype(int), ax=below, cmap="Greys", vmin=0, vmax=1.4, cbar=False, linewidths=0.2)
        below.set(ylabel="group", xlabel="worker")
        below.set_yticklabels(groups, rotation=0)
        every = 1 if len(order) <= _MOST_NAMED else 5
        places = range(0, len(order), every)
        below.set_xticks([place + 0.5 for place in places], [order[place] for place in places], rotation=90)
    else:
        below.remove()
    return figure
