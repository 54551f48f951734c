"""One tidy table of a paper's runs, one of their evaluations."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from fedpapers.errors import one_line
from fedpapers.experiment.store import read_record_of_run
from fedpapers.files import write_text
from fedpapers.reporting import collect
from fedpapers.stamps import stamp

if TYPE_CHECKING:
    snakemake: Any

table = snakemake.params.table
with one_line():
    for row in table:
        for state in row["states"]:
            read_record_of_run(Path(state))  # no metrics go into a table that are not those that were written
    runs = collect.runs(table)
write_text(Path(snakemake.output.runs), runs.to_csv(index=False))
write_text(Path(snakemake.output.history), collect.history(table).to_csv(index=False))
stamp(snakemake)
