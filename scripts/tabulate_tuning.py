"""The search of hyper-parameters, as CSV, Markdown, LaTeX and HTML."""

from typing import TYPE_CHECKING, Any

import pandas as pd

from fedpapers.reporting.runs import read_runs
from fedpapers.reporting.tables import write_table
from fedpapers.reporting.tuning import tuning_table
from fedpapers.stamps import made_by, stamp

if TYPE_CHECKING:
    snakemake: Any

table = tuning_table(read_runs(snakemake.input.runs), pd.read_csv(snakemake.input.history))
write_table(table, snakemake.output, made_by(snakemake))
stamp(snakemake)
