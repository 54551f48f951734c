"""Who leaks how much to whom: by pair of workers, and over time."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from fedpapers.errors import one_line
from fedpapers.experiment.leakage_study import OVER_TIME, PAIRS, Study, leakage_of_pairs, leakage_over_time
from fedpapers.files import write_text
from fedpapers.stamps import stamp

if TYPE_CHECKING:
    snakemake: Any

study = Study(**snakemake.params.study)
with one_line():
    for columns, rows, path in (
        (PAIRS, leakage_of_pairs(study), snakemake.output.pairs),
        (OVER_TIME, leakage_over_time(study), snakemake.output.over_time),
    ):
        write_text(Path(path), pd.DataFrame(rows, columns=list(columns)).to_csv(index=False))
stamp(snakemake)
