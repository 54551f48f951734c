"""DP-OGL in the configuration: its runs, and the study of leakage."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, model_validator

from fedpapers.errors import nearest
from fedpapers.experiment.described import Axis, Count, Described, Name, Positive, Rate, Seed
from fedpapers.experiment.run_config import Paper


class LeakageAudit(Described):
    """A test of membership against many small runs in which every worker does its worst: a lower bound on ε.

    Everybody takes part in each epoch (q = 1), so that the exact reference stands beside it.
    """

    epochs: Count = Field(description="T: epochs of training.")
    interval: Count = Field(description="S: epochs from one inter-group epoch to the next.")
    noise_multiplier: Positive = Field(description="σ of every group.")
    runs: Annotated[int, Field(ge=4, strict=True)] = Field(
        description="Simulated runs with the first worker, and as many without; half of them choose the test."
    )
    seed: Seed = Field(0, description="Seed of the simulated runs.")


class LeakageStudy(Described):
    """Who leaks how much to whom, by the bounds: nothing of it trains."""

    structures: Axis[Name] = Field(description="Names of structures of `structures`.")
    epochs: Count = Field(description="T: epochs of training.")
    intervals: Axis[Count] = Field(description="S: epochs from one inter-group epoch to the next.")
    noise_multiplier: Positive = Field(description="σ of every group.")
    sampling_rate: Rate = Field(description="q (π in DP-OGL) of every group.")
    structure: str = Field(
        description="One of the study's structures: that which is drawn over time and over distance, from its first "
        "worker."
    )
    interval: Count = Field(description="One of the study's intervals: S of leakage over time and of the heat maps.")
    response: Rate = Field(
        0.3, description="Λ of the linear-quadratic reference: the share of the way to its optimum that a worker goes."
    )
    audit: LeakageAudit | None = Field(
        None, description="The audit of `structure`, from its first worker; left out: none."
    )

    @model_validator(mode="after")
    def _shown_is_studied(self) -> LeakageStudy:
        if self.structure not in self.structures:
            hint = nearest(self.structure, self.structures)
            raise ValueError(f"structure is {self.structure!r}; expected one of the study's structures; {hint}")
        if self.interval not in self.intervals:
            raise ValueError(f"interval is {self.interval}; expected one of the study's intervals, {self.intervals}")
        return self


class DpOgl(Paper):
    """DP-OGL and DP-OGL+ (arXiv 2503.04054): groups that overlap, and what leaks between them."""

    leakage: LeakageStudy | None = Field(None, description="The study of leakage; left out: none.")
