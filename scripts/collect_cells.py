"""What arrived in each cell, how its device does before and after augmentation, and how good generators are."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from fedpapers.files import write_text
from fedpapers.reporting.augmentation import collect_cells, collect_quality
from fedpapers.stamps import stamp

if TYPE_CHECKING:
    snakemake: Any

cells = collect_cells(snakemake.params.cells, snakemake.input.classifiers)
write_text(Path(snakemake.output.cells), cells.to_csv(index=False))
quality = collect_quality(snakemake.params.compared, snakemake.input.quality)
write_text(Path(snakemake.output.quality), quality.to_csv(index=False))
stamp(snakemake)
