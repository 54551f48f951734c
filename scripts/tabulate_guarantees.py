"""ε as claimed and as certified, as CSV, Markdown, LaTeX and HTML."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from fedpapers.reporting.dpfedmtl import read_names
from fedpapers.reporting.guarantees import guarantees_table, read_epsilons
from fedpapers.reporting.tables import write_table

if TYPE_CHECKING:
    snakemake: Any

table = guarantees_table(read_epsilons(snakemake.input.epsilons), read_names(snakemake.input.clients))
write_table(table, *(Path(snakemake.output[kind]) for kind in ("csv", "md", "tex", "html")))
