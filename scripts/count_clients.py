"""What the clients of each data set hold."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from fedpapers.errors import one_line
from fedpapers.files import write_text
from fedpapers.reporting.dpfedmtl import count_clients
from fedpapers.stamps import stamp

if TYPE_CHECKING:
    snakemake: Any

with one_line():
    counts = count_clients(snakemake.params.partitions)
write_text(Path(snakemake.output[0]), counts.to_csv(index=False))
stamp(snakemake)
