"""Accuracy of the private methods by noise multiplier, as CSV, Markdown, LaTeX and HTML."""

from typing import TYPE_CHECKING, Any

import pandas as pd

from fedpapers.reporting.dpfedmtl import Results, noise_table, read_results
from fedpapers.reporting.tables import write_table
from fedpapers.stamps import made_by, stamp

if TYPE_CHECKING:
    snakemake: Any

results = Results(read_results(snakemake.input.runs), pd.read_csv(snakemake.input.clients))
write_table(noise_table(results), snakemake.output, made_by(snakemake))
stamp(snakemake)
