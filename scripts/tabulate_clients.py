"""Clients and samples of each data set, as CSV, Markdown, LaTeX and HTML."""

from typing import TYPE_CHECKING, Any

import pandas as pd

from fedpapers.reporting.dpfedmtl import clients_table
from fedpapers.reporting.tables import write_table
from fedpapers.stamps import made_by, stamp

if TYPE_CHECKING:
    snakemake: Any

table = clients_table(pd.read_csv(snakemake.input[0]))
write_table(table, snakemake.output, made_by(snakemake))
stamp(snakemake)
