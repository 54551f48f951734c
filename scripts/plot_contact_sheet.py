"""Some samples of some clients of a data set."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from fedpapers.data.format import read_dataset
from fedpapers.reporting import figures
from fedpapers.reporting.contact_sheet import plot_contact_sheet

if TYPE_CHECKING:
    snakemake: Any

figures.start()
data = read_dataset(Path(snakemake.input[0]).parent)
classes = data.about["classes"]
assert data.writers is not None, "a data set of this paper names its clients"
figure = plot_contact_sheet(
    data.images,
    data.labels,
    data.writers,
    data.writer_names,
    classes,
    data.about["name"],
    columns_per_class=1 if len(classes) > 2 else 5,
)
figures.save(figure, snakemake.output.png, snakemake.output.pdf)
