"""Accuracy and leakage out of group against the interval S."""

from typing import TYPE_CHECKING, Any

from fedpapers.reporting import figures
from fedpapers.reporting.leakage_of_runs import plot_role_of_interval, read_leaking_runs
from fedpapers.stamps import stamp

if TYPE_CHECKING:
    snakemake: Any

figures.start()
runs = read_leaking_runs(snakemake.input.runs, snakemake.input.leakage)
figures.save(plot_role_of_interval(runs, snakemake.params.scale), snakemake.output.png, snakemake.output.pdf)
stamp(snakemake)
