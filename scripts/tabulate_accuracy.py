"""Accuracy and ε of each method, as CSV, Markdown and LaTeX."""

from typing import TYPE_CHECKING, Any

import pandas as pd

from fedpapers.reporting.accuracy import accuracy_table
from fedpapers.reporting.runs import read_runs
from fedpapers.reporting.tables import write_table
from fedpapers.stamps import made_by, stamp

if TYPE_CHECKING:
    snakemake: Any

runs = read_runs(snakemake.input.runs)
privacy = pd.read_csv(snakemake.input.privacy)
table = accuracy_table(runs, privacy, snakemake.params.accountants)
write_table(table, snakemake.output, made_by(snakemake))
stamp(snakemake)
