"""A verdict on each of the paper's claims, as CSV, Markdown, LaTeX and HTML."""

from typing import TYPE_CHECKING, Any

import pandas as pd

from fedpapers.reporting.dpfedmtl import Results, read_results
from fedpapers.reporting.dpfedmtl_claims import claims
from fedpapers.reporting.guarantees import read_epsilons
from fedpapers.reporting.tables import write_table
from fedpapers.reporting.verdicts import verdict_table
from fedpapers.stamps import made_by, stamp

if TYPE_CHECKING:
    snakemake: Any

results = Results(read_results(snakemake.input.runs), pd.read_csv(snakemake.input.clients))
history, epsilons = pd.read_csv(snakemake.input.history), read_epsilons(snakemake.input.epsilons)
table = verdict_table(claims(results, history, epsilons))
write_table(table, snakemake.output, made_by(snakemake))
stamp(snakemake)
