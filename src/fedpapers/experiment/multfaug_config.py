"""MultFAug in the configuration: the study of its radio, beside its learning."""

from __future__ import annotations

import itertools
from typing import Annotated, Any

from pydantic import AfterValidator, Field, model_validator

from fedpapers.experiment.augmentation_config import Compression, Learning
from fedpapers.experiment.described import Count, Described, Seed, Value

_MOST_DEVICES = 500_000  # of all layouts of a study together, which fit into 2 GB

_Several = Annotated[int, Field(ge=2, strict=True)]
_Others = Annotated[int, Field(ge=0, le=9, strict=True)]


def _ascending(values: list[Any]) -> list[Any]:
    for before, after in itertools.pairwise(values):
        if before >= after:
            raise ValueError(f"{after} stands after {before}; expected ascending values, each once")
    return values


_Ascending = Annotated[list[Value], Field(min_length=1), AfterValidator(_ascending)]


class TwoDeadlines(Described):
    """Two deadlines of the uplink, in slots of a route's clock."""

    tight: Count = Field(description="The smaller τ.")
    loose: Count = Field(description="The larger τ.")

    @model_validator(mode="after")
    def _tight_is_smaller(self) -> TwoDeadlines:
        if self.tight >= self.loose:
            raise ValueError(f"tight is {self.tight}; expected fewer slots than loose ({self.loose})")
        return self


class LayoutStudy(Described):
    """Latency, arrivals and privacy of the relays over many random layouts: nothing of it trains."""

    dataset: str = Field(description="Name of a data set of `datasets`: whose samples travel.")
    layouts: _Several = Field(description="Layouts from which means and errors come, the same ones for every point.")
    privacy_layouts: _Several = Field(description="Layouts of the study of sample privacy.")
    devices: _Ascending[Count] = Field(description="N: devices of a layout.")
    max_hops: _Ascending[Count] = Field(description="M: the most hops of a route.")
    usual_hops: Count = Field(
        description="M of the curves over ρ and over dummy labels, of sample privacy and the map."
    )
    compression_rates: _Ascending[Compression] = Field(description="ρ: share of the pixels that are set to 0.")
    dummies: _Ascending[_Others] = Field(description="l: dummy labels of a device.")
    deadlines: TwoDeadlines = Field(description="τ of the arrivals.")
    seed: Seed = Field(0, description="Seed of layouts, channel and samples.")

    @model_validator(mode="after")
    def _fits_into_memory(self) -> LayoutStudy:
        most = max(self.devices) * max(self.layouts, self.privacy_layouts)
        if most > _MOST_DEVICES:
            raise ValueError(
                f"the layouts have {most:,} devices together; expected at most {_MOST_DEVICES:,}; lower layouts"
            )
        return self


class MultFAug(Described):
    """MultFAug (arXiv 1907.06426): seed samples that travel over devices to a server, and what they are good for."""

    layouts: LayoutStudy | None = Field(None, description="The study of the radio over many layouts; left out: none.")
    learning: Learning | None = Field(None, description="What is trained; left out: nothing.")

    @model_validator(mode="after")
    def _something_is_there(self) -> MultFAug:
        if self.layouts is None and self.learning is None:
            raise ValueError("neither layouts nor learning is given; expected at least one of them")
        return self
