"""What runs prove about ε from below, beside the bounds from above and the exact reference."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from fedpapers.experiment.leakage_audit import COLUMNS, audit_leakage
from fedpapers.experiment.store import write_csv

if TYPE_CHECKING:
    snakemake: Any

rows = audit_leakage(**snakemake.params.audit)
write_csv(Path(snakemake.output[0]), COLUMNS, [[row[column] for column in COLUMNS] for row in rows])
