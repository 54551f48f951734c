"""Latency of relayed seeds over the compression rate, hops and dummy labels."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from fedpapers.experiment.relay_study import CURVES, LatencyStudy, latency_curves
from fedpapers.files import write_text
from fedpapers.stamps import stamp

if TYPE_CHECKING:
    snakemake: Any

study = LatencyStudy(**snakemake.params.study)
curves = pd.DataFrame(latency_curves(study), columns=list(CURVES))
write_text(Path(snakemake.output[0]), curves.to_csv(index=False))
stamp(snakemake)
