"""DPFedMTL in the configuration: its runs, and the search of their hyper-parameters."""

from __future__ import annotations

from pydantic import Field

from fedpapers.experiment.described import Described, Name
from fedpapers.experiment.run_config import Paper, RunGrid


class Tuning(Described):
    """A search of hyper-parameters on clients of its own, made by the target `tune` only."""

    common: RunGrid = Field(
        description="Values for all grids of the search; what is not given is as in the paper's `common`."
    )
    runs: dict[Name, RunGrid] = Field(min_length=1, description="Named grids of runs.")


class DpFedMtl(Paper):
    """DPFedMTL (arXiv 2011.07179): shared layers with noise, a private last layer for each client."""

    tuning: Tuning | None = Field(None, description="The search of hyper-parameters; left out: none.")

    def searched(self) -> Paper:
        """The runs of the search, as those of a paper."""
        assert self.tuning is not None
        common = {name: value for grid in (self.common, self.tuning.common) for name, value in grid.given().items()}
        return Paper(
            delta=self.delta, accountants=self.accountants, common=RunGrid(**common), runs=dict(self.tuning.runs)
        )
