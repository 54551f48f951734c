"""Leakage from each worker to each other."""

from typing import TYPE_CHECKING, Any

from fedpapers.reporting import figures
from fedpapers.reporting.leakage_study import plot_leakage_of_pairs, read_leakage
from fedpapers.stamps import stamp

if TYPE_CHECKING:
    snakemake: Any

study = snakemake.params.study
figures.start()
leakage = read_leakage(snakemake.input[0])
figure = plot_leakage_of_pairs(leakage, study["interval"], study["delta"])
figures.save(figure, snakemake.output.png, snakemake.output.pdf)
stamp(snakemake)
