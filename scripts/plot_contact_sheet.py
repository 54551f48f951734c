"""Some samples of some clients of a data set."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from fedpapers.errors import one_line
from fedpapers.files import read_sealed
from fedpapers.reporting import figures
from fedpapers.reporting.contact_sheet import plot_contact_sheet
from fedpapers.stamps import stamp

if TYPE_CHECKING:
    snakemake: Any

figures.start()
folder = Path(snakemake.input[0]).parent
with one_line():
    about = read_sealed(folder / "about.json")
clients = pd.read_csv(folder / "clients.csv", dtype={"writer": str}, keep_default_na=False)
figure = plot_contact_sheet(
    np.load(folder / "images.npy", mmap_mode="r", allow_pickle=False),
    np.load(folder / "labels.npy", allow_pickle=False),
    np.load(folder / "writers.npy", allow_pickle=False),
    clients["writer"].tolist(),
    about["classes"],
    snakemake.params.title or about["name"],
    columns_per_class=1 if len(about["classes"]) > 2 else 5,
)
figures.save(figure, snakemake.output.png, snakemake.output.pdf)
stamp(snakemake)
