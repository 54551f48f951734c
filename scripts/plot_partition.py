"""Who holds how many samples of which label, and who is in which group."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from fedpapers.reporting import figures
from fedpapers.reporting.partition import plot_partition
from fedpapers.stamps import stamp

if TYPE_CHECKING:
    snakemake: Any

figures.start()
histogram = pd.read_csv(snakemake.input.histogram, dtype={"client": str}, keep_default_na=False)
about = json.loads(Path(snakemake.input.about).read_text(encoding="utf-8"))
figure = plot_partition(histogram, about["classes"], about["groups"], about["data"])
figures.save(figure, snakemake.output.png, snakemake.output.pdf)
stamp(snakemake)
