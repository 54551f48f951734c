"""DPFedMTL: its data, accuracy by method and by noise; Tables 1, 2 and 3, and Figure 4."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from fedpapers.files import read_sealed
from fedpapers.reporting import published
from fedpapers.reporting.collect import read_histogram
from fedpapers.reporting.figures import accuracy_axis, legend_below, palette
from fedpapers.reporting.runs import heading
from fedpapers.reporting.tables import NOT_AVAILABLE, mean_and_sd

METHODS = {"local": "Local", "fedavg": "FedAvg", "fedmtl": "FedMTL", "dpfedavg": "DPFedAvg", "dpfedmtl": "DPFedMTL"}
TWINS = {"dpfedavg": "fedavg", "dpfedmtl": "fedmtl"}
"""Private method -> the same without clipping and noise."""

_NOT_RUN = "not run"
_NONE = "–"
_SAME = {"run", "grid", "title", "seed", "accuracy", "accuracy_by_sample", "accuracy_unpersonalised", "loss",
         "constant_accuracy", "clients"}  # fmt: skip
_SETTING = ["dataset", "algorithm", "noise_multiplier"]
_PERSONAL = {"fedmtl", "dpfedmtl"}
_FAMILY = {"local": "local", "fedavg": "one model", "dpfedavg": "one model"}


def count_clients(partitions: Iterable[Mapping[str, Any]]) -> pd.DataFrame:
    """One row a data set: what its clients hold, training and test together.

    Data with a title are a user's own: they are called by it, never as published data are, and only classes of which
    there are samples count.

    Args:
        partitions: For each data set its name in the configuration (`dataset`), the folder of a partition, and its
            title or None.
    """
    return pd.DataFrame([_counts(one["dataset"], Path(one["folder"]), one["title"]) for one in partitions])


def read_names(path: str) -> dict[str, str]:
    """Data set -> how it is called, from the file that `count_clients` fills."""
    counts = pd.read_csv(path)
    return dict(zip(counts["dataset"], counts["data"], strict=True))


def clients_table(counts: pd.DataFrame) -> pd.DataFrame:
    """Table 1: ours, then what LEAF says of the real data.

    Args:
        counts: As `count_clients` gives it.
    """
    ours = [
        _clients_row(row | {"kind": "generated" if row["generated"] else "real"}) for row in counts.to_dict("records")
    ]
    leaf = [_clients_row(asdict(row) | {"kind": "real, as LEAF counts it"}) for row in published.LEAF]
    return pd.DataFrame([*ours, *leaf])


def read_results(path: str) -> pd.DataFrame:
    """The runs' table, with the column `variant`: in what runs of one method and σ differ, apart from the seed.

    Columns that not all configurations have are there, empty.
    """
    frame = pd.read_csv(path, keep_default_na=False, na_values=[""])
    frame = frame.reindex(
        columns=list(dict.fromkeys([*frame.columns, "noise_multiplier", "sampling_rate", "accuracy_unpersonalised"]))
    )
    parts = [part.assign(variant=_variant(part)) for _, part in frame.groupby(_SETTING, sort=False, dropna=False)]
    return pd.concat(parts).sort_index()


@dataclass(frozen=True)
class Shown:
    """How a data set is called, and what is published for what it stands for.

    Attributes:
        dataset: Its name in the configuration.
        name: The name that is shown.
        generated: Whether it is not the real data.
    """

    dataset: str
    name: str
    generated: bool

    @classmethod
    def of(cls, dataset: str, counts: pd.DataFrame) -> Shown:
        """The data set of a name in the configuration."""
        own = counts[counts["dataset"] == dataset]
        return cls(dataset, str(own["data"].iloc[0]), bool(own["generated"].iloc[0]))

    def published(self, algorithm: str, sigma: float | None) -> str:
        """The published accuracy, for a cell."""
        found = published.accuracy(self.name, algorithm, sigma)
        return NOT_AVAILABLE if found is None else self._apart(f"{found.accuracy:.2f}")

    def published_drop(self, algorithm: str, sigma: float | None) -> str:
        """The published loss of accuracy, for a cell."""
        found = published.accuracy(self.name, algorithm, sigma)
        if found is None or found.drop is None:
            return NOT_AVAILABLE
        return self._apart(f"{found.drop:.2f} from {found.accuracy + found.drop:.2f} %")

    def _apart(self, value: str) -> str:
        """A published value, marked where our data are other data."""
        real = published.REAL[published.of_paper(self.name) or ""]
        return f"{value} ({real}; ours is generated)" if self.generated else value


@dataclass(frozen=True, eq=False)
class Results:
    """Accuracies by setting and seed.

    Attributes:
        runs: As `read_results` gives it.
        counts: As `count_clients` gives it: what the data sets are called, and whether they are generated.
    """

    runs: pd.DataFrame
    counts: pd.DataFrame

    @property
    def datasets(self) -> list[str]:
        """The data sets, in the order of the configuration."""
        return list(dict.fromkeys(self.runs["dataset"]))

    def shown(self, dataset: str) -> Shown:
        """How a data set is called."""
        return Shown.of(dataset, self.counts)

    def sigmas(self, dataset: str) -> list[float]:
        """The noise multipliers of a data set's runs, ascending."""
        own = self.runs.loc[self.runs["dataset"] == dataset, "noise_multiplier"]
        return sorted(own.dropna().unique().tolist())

    def headline(self, dataset: str) -> float | None:
        """The σ at which methods are compared: the paper's, else the smallest that was run; None without any."""
        sigmas = self.sigmas(dataset)
        of_paper = published.HEADLINE.get(published.of_paper(self.shown(dataset).name) or "")
        return of_paper if of_paper in sigmas or not sigmas else sigmas[0]

    def of(self, dataset: str, algorithm: str, sigma: float | None = None) -> pd.DataFrame:
        """The runs of a setting; empty if there are none. Methods without noise have no σ."""
        chosen = (self.runs["dataset"] == dataset) & (self.runs["algorithm"] == algorithm)
        if algorithm in TWINS:
            chosen &= self.runs["noise_multiplier"] == sigma
        return self.runs[chosen]

    def accuracy(self, dataset: str, algorithm: str, sigma: float | None = None) -> pd.Series[float]:
        """Accuracy by seed, of the first variant in the order of the configuration."""
        own = self.of(dataset, algorithm, sigma)
        own = own[own["variant"] == own["variant"].iloc[0]] if len(own) else own
        return own.set_index("seed")["accuracy"]


def methods_table(results: Results) -> pd.DataFrame:
    """Table 2: accuracy of every method, the private ones at the σ of the paper's comparison."""
    rows = []
    for dataset in results.datasets:
        sigma, shown = results.headline(dataset), results.shown(dataset)
        for algorithm, title in METHODS.items():
            own_sigma = sigma if algorithm in TWINS else None
            for variant, own in _variants(results.of(dataset, algorithm, own_sigma)):
                rows.append(
                    {
                        "Data": shown.name,
                        "Method": f"{title}{variant}",
                        "σ": _NONE if own_sigma is None else f"{own_sigma:g}",
                        "Accuracy (%)": _cell(own["accuracy"], _NOT_RUN),
                        "Without personalisation (%)": _without_personalisation(algorithm, own),
                        "Seeds": str(len(own)),
                        "Published, on the real data (%)": shown.published(algorithm, own_sigma),
                    }
                )
    return pd.DataFrame(rows)


def noise_table(results: Results) -> pd.DataFrame:
    """Table 3: accuracy of the private methods by σ, and the points that they lose against their twin without noise.

    Drops are paired by seed: mean ± sd of the differences.
    """
    rows = []
    for dataset in results.datasets:
        shown = results.shown(dataset)
        for sigma in results.sigmas(dataset):
            for algorithm, twin in TWINS.items():
                base = results.accuracy(dataset, twin)
                for variant, own in _variants(results.of(dataset, algorithm, sigma)):
                    drop = (base - own.set_index("seed")["accuracy"]).dropna()
                    rows.append(
                        {
                            "Data": shown.name,
                            "σ": f"{sigma:g}",
                            "Method": f"{METHODS[algorithm]}{variant}",
                            "Accuracy (%)": _cell(own["accuracy"], _NOT_RUN),
                            f"Drop from {' or '.join(METHODS[name] for name in TWINS.values())} (points)": _cell(
                                drop, _NONE
                            ),
                            "Seeds": str(len(own)),
                            "Published, on the real data (%)": shown.published(algorithm, sigma),
                            "Published drop (points)": shown.published_drop(algorithm, sigma),
                        }
                    )
    return pd.DataFrame(rows)


def plot_convergence(results: Results, history: pd.DataFrame, scale: str) -> Figure:
    """Figure 4: accuracy against rounds, a panel for each data set, mean and ± one sd over seeds.

    Local, whose rounds are not those of the others, is a level: what its clients reach in the end.
    """
    colours = palette(["one model", "private layers", "local"])
    datasets = results.datasets
    figure, grid = plt.subplots(
        1, len(datasets), sharey=True, squeeze=False, layout="constrained", figsize=(4.2 * len(datasets) + 0.6, 4.0)
    )
    for axes, dataset in zip(grid[0], datasets, strict=True):
        sigma = results.headline(dataset)
        for algorithm, title in METHODS.items():
            for variant, own in _variants(results.of(dataset, algorithm, sigma)):
                colour = colours[_FAMILY.get(algorithm, "private layers")]
                curves = history[history["run"].isin(own["run"])]
                if algorithm == "local" and len(own):
                    axes.axhline(own["accuracy"].mean(), color=colour, ls=":", label=f"{title}{variant}, in the end")
                    continue
                _line(axes, curves, algorithm, f"{title}{variant}", colour)
        noise = "" if sigma is None else f", σ = {sigma:g}"
        axes.set(title=f"{results.shown(dataset).name}{noise}", xlabel="round")
        axes.xaxis.set_major_locator(MaxNLocator(6, integer=True))
        accuracy_axis(axes)
    grid[0][0].set_ylabel(f"mean test accuracy of clients\n({scale} scale)")
    legend_below(figure, grid[0], 5)
    return figure


def _counts(dataset: str, folder: Path, title: str | None) -> dict[str, Any]:
    table = read_histogram(folder / "histogram.csv")
    about = read_sealed(folder / "about.json")
    each = table.groupby("client")["samples"].sum()
    return {
        "dataset": dataset,
        "data": title or about["data"],
        "generated": about["generated"],
        "clients": len(each),
        "samples": each.sum(),
        "mean": each.mean(),
        "deviation": each.std(ddof=1),
        "classes": table["label"].nunique() if title else len(about["classes"]),
    }


def _clients_row(row: Mapping[Any, Any]) -> dict[str, str]:
    mean, deviation = row["mean"], row["deviation"]
    known = not math.isnan(deviation)
    return {
        "Data": row["data"],
        "Real or generated": row["kind"],
        "Clients": f"{row['clients']:,}",
        "Samples": f"{row['samples']:,}",
        "Samples per client, mean": f"{mean:.2f}",
        "Samples per client, sd": f"{deviation:.2f}" if known else _NONE,
        "sd/mean": f"{deviation / mean:.2f}" if known else _NONE,
        "Classes": str(row["classes"]),
    }


def _variant(part: pd.DataFrame) -> pd.Series[str]:
    """What tells apart the runs of one method and σ besides the seed: empty, or ` (C = 0.5)`."""
    differ = [column for column in part if column not in _SAME and part[column].nunique(dropna=False) > 1]
    if not differ:
        return pd.Series("", index=part.index)
    rows = part[differ].to_dict("records")
    texts = [", ".join(f"{heading(str(key))} = {_short(value)}" for key, value in row.items()) for row in rows]
    return pd.Series([f" ({text})" for text in texts], index=part.index)


def _short(value: object) -> str:
    if isinstance(value, float):
        return _NONE if math.isnan(value) else f"{value:g}"
    return str(value)


def _variants(own: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
    """The runs of a setting by variant; one empty table if there are none."""
    if own.empty:
        yield "", own
    for variant, part in own.groupby("variant", sort=False):
        yield str(variant), part


def _cell(values: pd.Series[float], missing: str) -> str:
    known = values.dropna()
    return mean_and_sd(known) if len(known) else missing


def _without_personalisation(algorithm: str, own: pd.DataFrame) -> str:
    return _cell(own["accuracy_unpersonalised"], _NONE) if algorithm in _PERSONAL else _NONE


def _line(axes: Axes, own: pd.DataFrame, algorithm: str, label: str, colour: Sequence[float]) -> None:
    if own.empty:
        return
    by_round = own.groupby("round")["accuracy"]
    mean, sd = by_round.mean(), by_round.std(ddof=1).fillna(0)
    style = "--" if algorithm in TWINS else "-"
    axes.plot(mean.index, mean, color=colour, ls=style, label=label)
    axes.fill_between(mean.index, mean - sd, mean + sd, color=colour, alpha=0.2, lw=0)
