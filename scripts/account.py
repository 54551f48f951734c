"""What each run's ledger costs, by each accountant."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from fedpapers.errors import one_line
from fedpapers.experiment.account import COLUMNS, account
from fedpapers.experiment.store import write_csv
from fedpapers.stamps import stamp

if TYPE_CHECKING:
    snakemake: Any

with one_line():
    rows = account(snakemake.params.table, snakemake.params.delta, snakemake.params.accountants)
write_csv(Path(snakemake.output[0]), COLUMNS, [[row[column] for column in COLUMNS] for row in rows])
stamp(snakemake)
