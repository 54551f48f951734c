"""Latency and arrivals over hops, as CSV, Markdown, LaTeX and HTML."""

from typing import TYPE_CHECKING, Any

from fedpapers.reporting.relay_study import hops_table, read_curves
from fedpapers.reporting.tables import write_table
from fedpapers.stamps import made_by, stamp

if TYPE_CHECKING:
    snakemake: Any

latency, arrivals = (read_curves(snakemake.input[name]) for name in ("latency", "arrivals"))
table = hops_table(latency, arrivals, snakemake.params.study["deadlines"])
write_table(table, snakemake.output, made_by(snakemake))
stamp(snakemake)
