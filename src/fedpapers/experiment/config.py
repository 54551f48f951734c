"""The configuration: what a user may write, checked whole before anything runs.

`configs/schema.json` and `docs/config.md` are generated from these models (`fedpapers config reference`).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, GetJsonSchemaHandler, ValidationError, create_model
from pydantic_core import CoreSchema, ErrorDetails

from fedpapers.errors import InputError
from fedpapers.experiment.spec import (
    Count,
    Described,
    Hyperparameters,
    MnistData,
    Name,
    PartitionSpec,
    StructureSpec,
)
from fedpapers.files import read_yaml

Accountant = Literal["pld", "prv", "rdp", "gdp"]


class RunParameters(Hyperparameters):
    """One run as the configuration writes it: data set, partition and structure by name."""

    dataset: str = Field(description="Name of a data set of `datasets`.")
    partition: str = Field(description="Name of a partition of `partitions`.")
    structure: str | None = Field(None, description="Name of a structure of `structures`; left out: no groups.")
    rounds: Annotated[int, Field(ge=0, strict=True)] = Field(
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

    def axes(self) -> dict[str, list[Any]]:
        """The values of each key that is given."""
        given = {name: getattr(self, name) for name in self.model_fields_set}
        return {name: value if isinstance(value, list) else [value] for name, value in given.items()}


RunGrid: type[_Grid] = create_model("RunGrid", __base__=_Grid, __doc__=_Grid.__doc__, **_axes())


class Paper(Described):
    """The runs of one paper and how its results are shown."""

    delta: float = Field(gt=0, lt=1, description="δ of every (ε, δ).")
    accountants: Annotated[list[Accountant], Field(min_length=1)] = Field(
        description="Accountants of the privacy table; the first one is on the figures' axes."
    )
    common: RunGrid = Field(
        description="Values for all grids of this paper; one that an algorithm does not have is left out there."
    )
    runs: dict[Name, RunGrid] = Field(
        min_length=1, description="Named grids of runs; what stands here goes before `common`."
    )


class Training(Described):
    """How training is run; nothing of it changes a result."""

    segment_rounds: Count = Field(description="Rounds between two states that are kept, from which training resumes.")
    threads: Count = Field(description="Threads of one training job.")
    device: Literal["auto", "cpu", "cuda"] = Field(description="Where to train; `auto`: a GPU if there is one.")


class Config(Described):
    """All of `config.yaml`."""

    scale: Literal["tiny", "embedded", "paper"] = Field(description="Named in tables and captions.")
    datasets: dict[Name, MnistData] = Field(min_length=1, description="Data sets by name.")
    partitions: dict[Name, PartitionSpec] = Field(min_length=1, description="Partitions over clients by name.")
    structures: dict[Name, StructureSpec] = Field(description="Group structures by name.")
    training: Training = Field(description="How training is run.")
    papers: dict[Literal["dpogl"], Paper] = Field(min_length=1, description="The papers whose results are made.")


def load_config(content: Mapping[str, Any], where: str = "config.yaml") -> Config:
    """The checked configuration.

    Args:
        content: What the configuration files hold, merged.
        where: Their names, for messages.

    Raises:
        InputError: A key is unknown or missing, or a value is not as expected.
    """
    try:
        return Config.model_validate(content)
    except ValidationError as error:
        raise InputError(_explain(error.errors()[0], where)) from None


def read_config(paths: list[Path]) -> Config:
    """The checked configuration from files; what stands in a later one goes before."""
    content: dict[str, Any] = {}
    for path in paths:
        added = read_yaml(path)
        if not isinstance(added, dict):
            raise InputError(f"{path}: expected keys and values, found {type(added).__name__}")
        content = merged(content, added)
    return load_config(content, ", ".join(map(str, paths)))


def merged(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """`base` with the values of `over` in place of its own, key by key at every depth."""
    result = dict(base)
    for key, value in over.items():
        both = isinstance(value, Mapping) and isinstance(result.get(key), Mapping)
        result[key] = merged(result[key], value) if both else value
    return result


def _explain(error: ErrorDetails, where: str) -> str:
    """One line for a value that does not fit: where it stands, what it is, what was expected."""
    place = [part for part in error["loc"] if part != "[key]"]
    if place[:1] in (["partitions"], ["structures"]) and len(place) > 2:
        del place[2]  # the kind of partition or structure, which pydantic adds
    path = ".".join(str(part) for part in place) or "the whole"
    if error["type"] == "missing":
        return f"{where}: {path} is missing; expected: {_description(str(place[-1]))}"
    message = error["msg"].removeprefix("Value error, ").replace("Input should be", "expected")
    value = error["input"]
    shown = f" is {value!r}" if not isinstance(value, dict | list) and error["type"] != "unknown_key" else ""
    return f"{where}: {path}{shown}: {message}"


def _description(key: str) -> str:
    kinds: list[type[Described]] = [Described]
    for kind in kinds:
        kinds += kind.__subclasses__()
        if key in kind.model_fields and kind.model_fields[key].description:
            return str(kind.model_fields[key].description)
    return "a value"
