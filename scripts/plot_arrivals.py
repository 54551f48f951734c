"""Label privacy, seeds and coverage over hops."""

from typing import TYPE_CHECKING, Any

from fedpapers.reporting import figures
from fedpapers.reporting.relay_study import plot_arrivals, read_curves
from fedpapers.stamps import stamp

if TYPE_CHECKING:
    snakemake: Any

figures.start()
figure = plot_arrivals(read_curves(snakemake.input[0]), snakemake.params.study["deadlines"])
figures.save(figure, snakemake.output.png, snakemake.output.pdf)
stamp(snakemake)
