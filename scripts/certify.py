"""ε and trade-off curves of the paper's settings and of ours, with the noise in both places."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from fedpapers.experiment.guarantees import CURVES, EPSILONS, PAPER, curves, epsilons, settings_of_runs
from fedpapers.files import write_text
from fedpapers.stamps import stamp

if TYPE_CHECKING:
    snakemake: Any

counts = pd.read_csv(snakemake.input[0])
clients = dict(zip(counts["dataset"], counts["clients"].tolist(), strict=True))
settings = [*PAPER, *settings_of_runs(snakemake.params.settings, clients)]
for columns, rows, path in (
    (EPSILONS, epsilons(settings, snakemake.params.delta), snakemake.output.epsilons),
    (CURVES, curves(settings), snakemake.output.curves),
):
    write_text(Path(path), pd.DataFrame(rows, columns=list(columns)).to_csv(index=False))
stamp(snakemake)
