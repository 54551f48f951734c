"""Verdicts on what MultFAug claims about its radio, as CSV, Markdown, LaTeX and HTML."""

from typing import TYPE_CHECKING, Any

from fedpapers.reporting.relay_study import read_curves
from fedpapers.reporting.relay_verdicts import relay_verdicts
from fedpapers.reporting.tables import write_table
from fedpapers.reporting.verdicts import verdict_table
from fedpapers.stamps import made_by, stamp

if TYPE_CHECKING:
    snakemake: Any

names = ("latency", "arrivals", "sample_privacy", "payload")
latency, arrivals, sample_privacy, payload = (read_curves(snakemake.input[name]) for name in names)
verdicts = relay_verdicts(latency, arrivals, sample_privacy, payload, snakemake.params.study["deadlines"])
write_table(verdict_table(verdicts), snakemake.output, made_by(snakemake))
stamp(snakemake)
