"""Privacy of the samples that arrive, over the compression rate and over deadlines."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from fedpapers.data.format import read_dataset
from fedpapers.experiment.relay_study import CURVES, SampleStudy, sample_privacy_curves
from fedpapers.files import write_text
from fedpapers.stamps import stamp

if TYPE_CHECKING:
    snakemake: Any

data = read_dataset(Path(snakemake.input.about).parent)
curves = sample_privacy_curves(SampleStudy(**snakemake.params.study), data.images, data.labels)
write_text(Path(snakemake.output[0]), pd.DataFrame(curves, columns=list(CURVES)).to_csv(index=False))
stamp(snakemake)
