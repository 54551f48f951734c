"""Audit and exact reference under the bounds, over distance."""

from typing import TYPE_CHECKING, Any

from fedpapers.reporting import figures
from fedpapers.reporting.leakage_audit import plot_audit
from fedpapers.reporting.leakage_study import read_leakage
from fedpapers.stamps import stamp

if TYPE_CHECKING:
    snakemake: Any

figures.start()
figure = plot_audit(read_leakage(snakemake.input[0]), snakemake.params.audit["delta"])
figures.save(figure, snakemake.output.png, snakemake.output.pdf)
stamp(snakemake)
