"""Group structures, as CSV, Markdown, LaTeX and HTML."""

from typing import TYPE_CHECKING, Any

from fedpapers.reporting.structures import structures_table
from fedpapers.reporting.tables import write_table
from fedpapers.stamps import made_by, stamp

if TYPE_CHECKING:
    snakemake: Any

table = structures_table(snakemake.params.structures)
write_table(table, snakemake.output, made_by(snakemake))
stamp(snakemake)
