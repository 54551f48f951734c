"""What runs prove about ε from below, beside the bounds from above and the exact reference."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from fedpapers.errors import one_line
from fedpapers.experiment.leakage_audit import COLUMNS, audit_leakage
from fedpapers.experiment.store import write_csv
from fedpapers.stamps import stamp

if TYPE_CHECKING:
    snakemake: Any

with one_line():
    rows = list(audit_leakage(**snakemake.params.audit))
write_csv(Path(snakemake.output[0]), COLUMNS, [[row[column] for column in COLUMNS] for row in rows])
stamp(snakemake)
