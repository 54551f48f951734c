"""F1 of the generator and privacy of the seeds against the compression rate."""

from typing import TYPE_CHECKING, Any

import pandas as pd

from fedpapers.reporting import figures
from fedpapers.reporting.augmentation_figures import plot_quality
from fedpapers.stamps import stamp

if TYPE_CHECKING:
    snakemake: Any

figures.start()
figure = plot_quality(pd.read_csv(snakemake.input[0]))
figures.save(figure, snakemake.output.png, snakemake.output.pdf)
stamp(snakemake)
