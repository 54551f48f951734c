"""Latency over the compression rate, hops and dummy labels."""

from typing import TYPE_CHECKING, Any

from fedpapers.reporting import figures
from fedpapers.reporting.relay_study import plot_latency, read_curves
from fedpapers.stamps import stamp

if TYPE_CHECKING:
    snakemake: Any

figures.start()
figure = plot_latency(read_curves(snakemake.input[0]))
figures.save(figure, snakemake.output.png, snakemake.output.pdf)
stamp(snakemake)
