"""One tidy table of a paper's runs, one of their evaluations."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from fedpapers.files import write_text
from fedpapers.reporting import collect

if TYPE_CHECKING:
    snakemake: Any

table = snakemake.params.table
write_text(Path(snakemake.output.runs), collect.runs(table).to_csv(index=False))
write_text(Path(snakemake.output.history), collect.history(table).to_csv(index=False))
