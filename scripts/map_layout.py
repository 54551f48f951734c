"""A random layout: its file for `fedpapers relay`, and its map."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from fedpapers.experiment.relay_study import mapped_layout
from fedpapers.files import write_text
from fedpapers.reporting.relay_map import plot_map
from fedpapers.stamps import stamp

if TYPE_CHECKING:
    snakemake: Any

file, report = mapped_layout(**snakemake.params.layout)
write_text(Path(snakemake.output.layout), file)
for path in (snakemake.output.png, snakemake.output.pdf):
    plot_map(report, Path(path))
stamp(snakemake)
