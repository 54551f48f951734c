"""Bits of a data set's images in compressed form, by compression rate."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from fedpapers.data.format import read_dataset
from fedpapers.experiment.relay_study import PAYLOADS, payloads
from fedpapers.files import write_text
from fedpapers.stamps import stamp

if TYPE_CHECKING:
    snakemake: Any

study = snakemake.params.study
rows = payloads(study["compression_rates"], study["seed"], read_dataset(Path(snakemake.input.about).parent).images)
write_text(Path(snakemake.output[0]), pd.DataFrame(rows, columns=list(PAYLOADS)).to_csv(index=False))
stamp(snakemake)
