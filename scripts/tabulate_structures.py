"""Group structures, as CSV, Markdown, LaTeX and HTML."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from fedpapers.reporting.structures import structures_table
from fedpapers.reporting.tables import write_table

if TYPE_CHECKING:
    snakemake: Any

table = structures_table(snakemake.params.structures)
write_table(table, *(Path(snakemake.output[kind]) for kind in ("csv", "md", "tex", "html")))
