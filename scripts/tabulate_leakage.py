"""Accuracy and leakage of each method, as CSV, Markdown, LaTeX and HTML."""

from typing import TYPE_CHECKING, Any

from fedpapers.reporting.leakage_of_runs import leakage_table, read_leaking_runs
from fedpapers.reporting.tables import write_table
from fedpapers.stamps import made_by, stamp

if TYPE_CHECKING:
    snakemake: Any

table = leakage_table(read_leaking_runs(snakemake.input.runs, snakemake.input.leakage))
write_table(table, snakemake.output, made_by(snakemake))
stamp(snakemake)
