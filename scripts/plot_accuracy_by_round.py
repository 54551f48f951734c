"""Accuracy against rounds."""

from typing import TYPE_CHECKING, Any

import pandas as pd

from fedpapers.reporting import figures
from fedpapers.reporting.accuracy import plot_accuracy_by_round
from fedpapers.reporting.runs import read_runs
from fedpapers.stamps import stamp

if TYPE_CHECKING:
    snakemake: Any

figures.start()
history = pd.read_csv(snakemake.input.history)
figure = plot_accuracy_by_round(read_runs(snakemake.input.runs), history, snakemake.params.scale)
figures.save(figure, snakemake.output.png, snakemake.output.pdf)
stamp(snakemake)
