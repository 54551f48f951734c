"""Accuracy against the largest ε out of group."""

from typing import TYPE_CHECKING, Any

from fedpapers.reporting import figures
from fedpapers.reporting.leakage_of_runs import plot_accuracy_by_leakage, read_leaking_runs
from fedpapers.stamps import stamp

if TYPE_CHECKING:
    snakemake: Any

figures.start()
runs = read_leaking_runs(snakemake.input.runs, snakemake.input.leakage)
figures.save(plot_accuracy_by_leakage(runs, snakemake.params.scale), snakemake.output.png, snakemake.output.pdf)
stamp(snakemake)
