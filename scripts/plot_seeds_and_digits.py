"""The seeds that a generator is trained on and the digits that it generates, for each compression rate."""

from typing import TYPE_CHECKING, Any

from fedpapers.reporting import figures
from fedpapers.reporting.augmentation_figures import plot_seeds_and_digits, read_images
from fedpapers.stamps import stamp

if TYPE_CHECKING:
    snakemake: Any

figures.start()
seeds = [read_images(file) for file in snakemake.input.get("seeds", [])]
generated = [read_images(file) for file in snakemake.input.get("generated", [])]
figure = plot_seeds_and_digits(snakemake.params.cells, seeds, generated)
figures.save(figure, snakemake.output.png, snakemake.output.pdf)
stamp(snakemake)
