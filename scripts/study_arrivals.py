"""What arrives at the server by a deadline, over hops."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from fedpapers.data.format import read_dataset
from fedpapers.experiment.relay_study import CURVES, ArrivalStudy, arrival_curves
from fedpapers.files import write_text
from fedpapers.stamps import stamp

if TYPE_CHECKING:
    snakemake: Any

data = read_dataset(Path(snakemake.input.about).parent)
curves = arrival_curves(ArrivalStudy(**snakemake.params.study), data.images, data.labels)
write_text(Path(snakemake.output[0]), pd.DataFrame(curves, columns=list(CURVES)).to_csv(index=False))
stamp(snakemake)
