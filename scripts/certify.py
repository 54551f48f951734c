"""ε and trade-off curves of the paper's settings and of ours, with the noise in both places."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from fedpapers.experiment.guarantees import CURVES, EPSILONS, PAPER, Setting, curves, epsilons
from fedpapers.files import write_text

if TYPE_CHECKING:
    snakemake: Any

settings = [*PAPER, *(Setting("ours", **one) for one in snakemake.params.settings)]
for columns, rows, path in (
    (EPSILONS, epsilons(settings, snakemake.params.delta), snakemake.output.epsilons),
    (CURVES, curves(settings), snakemake.output.curves),
):
    write_text(Path(path), pd.DataFrame(rows, columns=list(columns)).to_csv(index=False))
