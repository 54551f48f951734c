"""What becomes of the paper's claims about learning, as CSV, Markdown, LaTeX and HTML."""

from typing import TYPE_CHECKING, Any

import pandas as pd

from fedpapers.reporting.augmentation_verdicts import augmentation_verdicts
from fedpapers.reporting.tables import write_table
from fedpapers.reporting.verdicts import verdict_table
from fedpapers.stamps import made_by, stamp

if TYPE_CHECKING:
    snakemake: Any

cells, quality = pd.read_csv(snakemake.input.cells), pd.read_csv(snakemake.input.quality)
table = verdict_table(augmentation_verdicts(cells, quality))
write_table(table, snakemake.output, made_by(snakemake))
stamp(snakemake)
