"""Type II against type I error, by the limit and certified."""

from typing import TYPE_CHECKING, Any

import pandas as pd

from fedpapers.reporting import figures
from fedpapers.reporting.dpfedmtl import read_names
from fedpapers.reporting.guarantees import plot_tradeoff
from fedpapers.stamps import stamp

if TYPE_CHECKING:
    snakemake: Any

figures.start()
figure = plot_tradeoff(pd.read_csv(snakemake.input.curves), read_names(snakemake.input.clients))
figures.save(figure, snakemake.output.png, snakemake.output.pdf)
stamp(snakemake)
