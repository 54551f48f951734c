"""What each run leaks inside and outside of a worker's groups."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from fedpapers.errors import one_line
from fedpapers.experiment.account_leakage import COLUMNS, account_leakage
from fedpapers.experiment.store import write_csv
from fedpapers.stamps import stamp

if TYPE_CHECKING:
    snakemake: Any

with one_line():
    rows = account_leakage(snakemake.params.table, snakemake.params.delta)
write_csv(Path(snakemake.output[0]), COLUMNS, [[row[column] for column in COLUMNS] for row in rows])
stamp(snakemake)
