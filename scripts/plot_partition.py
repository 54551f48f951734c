"""Who holds how many samples of which label, and who is in which group."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from fedpapers.errors import one_line
from fedpapers.files import read_sealed
from fedpapers.reporting import figures
from fedpapers.reporting.collect import read_histogram
from fedpapers.reporting.partition import plot_partition
from fedpapers.stamps import stamp

if TYPE_CHECKING:
    snakemake: Any

figures.start()
with one_line():
    histogram = read_histogram(Path(snakemake.input.histogram))
    about = read_sealed(Path(snakemake.input.about))
figure = plot_partition(histogram, about["classes"], about["groups"], snakemake.params.title or about["data"])
figures.save(figure, snakemake.output.png, snakemake.output.pdf)
stamp(snakemake)
