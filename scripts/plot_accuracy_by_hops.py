"""Accuracy of the reference device before and after augmentation against hops."""

from typing import TYPE_CHECKING, Any

import pandas as pd

from fedpapers.reporting import figures
from fedpapers.reporting.augmentation_figures import plot_accuracy_by_hops
from fedpapers.stamps import stamp

if TYPE_CHECKING:
    snakemake: Any

figures.start()
figure = plot_accuracy_by_hops(pd.read_csv(snakemake.input[0]))
figures.save(figure, snakemake.output.png, snakemake.output.pdf)
stamp(snakemake)
