"""Accuracy of each method against rounds."""

from typing import TYPE_CHECKING, Any

import pandas as pd

from fedpapers.reporting import figures
from fedpapers.reporting.dpfedmtl import Results, plot_convergence, read_results
from fedpapers.stamps import stamp

if TYPE_CHECKING:
    snakemake: Any

figures.start()
results = Results(read_results(snakemake.input.runs), pd.read_csv(snakemake.input.clients))
figure = plot_convergence(results, pd.read_csv(snakemake.input.history), snakemake.params.scale)
figures.save(figure, snakemake.output.png, snakemake.output.pdf)
stamp(snakemake)
