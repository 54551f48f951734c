"""Verdicts on what DP-OGL's paper states, as CSV, Markdown, LaTeX and HTML."""

from typing import TYPE_CHECKING, Any

from fedpapers.reporting.dpogl_verdicts import verdict_of_audit, verdicts_of_runs, verdicts_of_study
from fedpapers.reporting.leakage_of_runs import read_leaking_runs
from fedpapers.reporting.leakage_study import read_leakage
from fedpapers.reporting.tables import write_table
from fedpapers.reporting.verdicts import verdict_table
from fedpapers.stamps import made_by, stamp

if TYPE_CHECKING:
    snakemake: Any

made = snakemake.input
verdicts = list(verdicts_of_runs(read_leaking_runs(made.runs, made.leakage)))
if "pairs" in made.keys():  # noqa: SIM118 (a list with names)
    tables = read_leakage(made.pairs), read_leakage(made.over_time)
    verdicts += verdicts_of_study(*tables, snakemake.params.interval)
if "audit" in made.keys():  # noqa: SIM118
    verdicts.append(verdict_of_audit(read_leakage(made.audit)))
write_table(verdict_table(verdicts), snakemake.output, made_by(snakemake))
stamp(snakemake)
