"""Group structures: who trains with whom."""

from typing import TYPE_CHECKING, Any

from fedpapers.reporting import figures
from fedpapers.reporting.structures import plot_structures
from fedpapers.stamps import stamp

if TYPE_CHECKING:
    snakemake: Any

figures.start()
figure = plot_structures(snakemake.params.structures)
figures.save(figure, snakemake.output.png, snakemake.output.pdf)
stamp(snakemake)
