"""Accuracy against ε."""

from typing import TYPE_CHECKING, Any

import pandas as pd

from fedpapers.reporting import figures
from fedpapers.reporting.accuracy import plot_accuracy_by_epsilon
from fedpapers.reporting.runs import read_runs
from fedpapers.stamps import stamp

if TYPE_CHECKING:
    snakemake: Any

figures.start()
figure = plot_accuracy_by_epsilon(
    read_runs(snakemake.input.runs),
    pd.read_csv(snakemake.input.privacy),
    snakemake.params.accountants[0],
    snakemake.params.scale,
)
figures.save(figure, snakemake.output.png, snakemake.output.pdf)
stamp(snakemake)
