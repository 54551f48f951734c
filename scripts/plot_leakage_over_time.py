"""Leakage over time."""

from typing import TYPE_CHECKING, Any

from fedpapers.reporting import figures
from fedpapers.reporting.leakage_study import plot_leakage_over_time, read_leakage
from fedpapers.stamps import stamp

if TYPE_CHECKING:
    snakemake: Any

study = snakemake.params.study
figures.start()
figure = plot_leakage_over_time(read_leakage(snakemake.input[0]), study["delta"])
figures.save(figure, snakemake.output.png, snakemake.output.pdf)
stamp(snakemake)
