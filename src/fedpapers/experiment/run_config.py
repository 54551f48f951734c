"""Runs in the configuration: grids of hyper-parameters, and a paper that is made of them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, GetJsonSchemaHandler, create_model
from pydantic_core import CoreSchema

from fedpapers.experiment.described import Axis, Described, Fraction, Name
from fedpapers.experiment.spec import Hyperparameters

Accountant = Literal["pld", "prv", "rdp", "gdp"]


class RunParameters(Hyperparameters):
    """One run as the configuration writes it: data set, partition and structure by name."""

    dataset: str = Field(description="Name of a data set of `datasets`.")
    partition: str = Field(description="Name of a partition of `partitions`.")
    structure: str | None = Field(None, description="Name of a structure of `structures`; left out: no groups.")
    rounds: Annotated[int, Field(ge=0, le=999_999, strict=True)] = Field(
        description="T: rounds of training, a multiple of `evaluate_every`. No grid: a longer run holds the shorter."
    )


class _OneOrMore:
    """A grid axis: one value, or a list of values of which each makes a run."""

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        several = handler(schema)
        return {"anyOf": [several["items"], several]}


def _as_list(value: Any) -> Any:
    return value if isinstance(value, list) else [value]


def _axes() -> dict[str, Any]:
    """The fields of a grid: those of one run's parameters, each with one value or a list of them."""
    fields: dict[str, Any] = {}
    for name, field in RunParameters.model_fields.items():
        value: Any = Annotated[(field.annotation, *field.metadata)] if field.metadata else field.annotation
        if name != "rounds":
            value = Annotated[list[value], Field(min_length=1), BeforeValidator(_as_list), _OneOrMore()]
        fields[name] = (value | None, Field(None, description=field.description))
    return fields


class _Grid(Described):
    """A grid of runs: every combination of the values given."""

    def given(self) -> dict[str, Any]:
        """The keys that are given, with their values."""
        return {name: getattr(self, name) for name in self.model_fields_set}

    def axes(self) -> dict[str, list[Any]]:
        """The values of each key that is given."""
        return {name: value if isinstance(value, list) else [value] for name, value in self.given().items()}


RunGrid: type[_Grid] = create_model("RunGrid", __base__=_Grid, __doc__=_Grid.__doc__, **_axes())


class Paper(Described):
    """The runs of one paper and how its results are shown."""

    delta: Fraction = Field(description="δ of every (ε, δ).")
    accountants: Axis[Accountant] = Field(
        description="Accountants of the privacy table; the first one is on the figures' axes."
    )
    common: RunGrid = Field(
        description="Values for all grids of this paper; one that an algorithm does not have is left out there."
    )
    runs: dict[Name, RunGrid] = Field(
        min_length=1, description="Named grids of runs; what stands here goes before `common`."
    )
