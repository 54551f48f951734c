"""ε as claimed and as certified, as CSV, Markdown, LaTeX and HTML."""

from typing import TYPE_CHECKING, Any

from fedpapers.reporting.dpfedmtl import read_names
from fedpapers.reporting.guarantees import guarantees_table, read_epsilons
from fedpapers.reporting.tables import write_table
from fedpapers.stamps import made_by, stamp

if TYPE_CHECKING:
    snakemake: Any

table = guarantees_table(read_epsilons(snakemake.input.epsilons), read_names(snakemake.input.clients))
write_table(table, snakemake.output, made_by(snakemake))
stamp(snakemake)
