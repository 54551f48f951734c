"""The search of hyper-parameters, as CSV, Markdown, LaTeX and HTML."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from fedpapers.reporting.runs import read_runs
from fedpapers.reporting.tables import write_table
from fedpapers.reporting.tuning import tuning_table

if TYPE_CHECKING:
    snakemake: Any

table = tuning_table(read_runs(snakemake.input.runs), pd.read_csv(snakemake.input.history))
write_table(table, *(Path(snakemake.output[kind]) for kind in ("csv", "md", "tex", "html")))
