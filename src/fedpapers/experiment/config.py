"""The configuration: what a user may write, checked whole before anything runs.

`configs/schema.json` and `docs/config.md` are generated from these models (`fedpapers config reference`).
"""

from __future__ import annotations

import difflib
import itertools
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    GetJsonSchemaHandler,
    PrivateAttr,
    ValidationError,
    create_model,
    model_validator,
)
from pydantic_core import CoreSchema, ErrorDetails

from fedpapers.errors import InputError, nearest
from fedpapers.experiment.augmentation_config import Learning
from fedpapers.experiment.spec import (
    CompleteDataset,
    Count,
    Described,
    Fraction,
    Hyperparameters,
    MnistData,
    Name,
    NotBool,
    PartitionSpec,
    Positive,
    Rate,
    Seed,
    StructureSpec,
    distinct,
    slug,
)
from fedpapers.files import read_yaml

Accountant = Literal["pld", "prv", "rdp", "gdp"]


def _ascending(values: list[Any]) -> list[Any]:
    for before, after in itertools.pairwise(values):
        if before >= after:
            raise ValueError(f"{after} stands after {before}; expected ascending values, each once")
    return values


_Several = Annotated[int, Field(ge=2, strict=True)]
_Share = Annotated[float, Field(ge=0, lt=1), NotBool]
_Others = Annotated[int, Field(ge=0, le=9, strict=True)]

_MOST_DEVICES = 500_000  # of all layouts of a study together, which fit into 2 GB


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

    structures: Annotated[list[Name], Field(min_length=1), AfterValidator(distinct)] = Field(
        description="Names of structures of `structures`."
    )
    epochs: Count = Field(description="T: epochs of training.")
    intervals: Annotated[list[Count], Field(min_length=1), AfterValidator(distinct)] = Field(
        description="S: epochs from one inter-group epoch to the next."
    )
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


class Paper(Described):
    """The runs of one paper and how its results are shown."""

    delta: Fraction = Field(description="δ of every (ε, δ).")
    accountants: Annotated[list[Accountant], Field(min_length=1), AfterValidator(distinct)] = Field(
        description="Accountants of the privacy table; the first one is on the figures' axes."
    )
    common: RunGrid = Field(
        description="Values for all grids of this paper; one that an algorithm does not have is left out there."
    )
    runs: dict[Name, RunGrid] = Field(
        min_length=1, description="Named grids of runs; what stands here goes before `common`."
    )


class DpOgl(Paper):
    """DP-OGL and DP-OGL+ (arXiv 2503.04054): groups that overlap, and what leaks between them."""

    leakage: LeakageStudy | None = Field(None, description="The study of leakage; left out: none.")


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
    devices: Annotated[list[Count], Field(min_length=1), AfterValidator(_ascending)] = Field(
        description="N: devices of a layout."
    )
    max_hops: Annotated[list[Count], Field(min_length=1), AfterValidator(_ascending)] = Field(
        description="M: the most hops of a route."
    )
    usual_hops: Count = Field(
        description="M of the curves over ρ and over dummy labels, of sample privacy and the map."
    )
    compression_rates: Annotated[list[_Share], Field(min_length=1), AfterValidator(_ascending)] = Field(
        description="ρ: share of the pixels that are set to 0."
    )
    dummies: Annotated[list[_Others], Field(min_length=1), AfterValidator(_ascending)] = Field(
        description="l: dummy labels of a device."
    )
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


class Papers(Described):
    """The papers whose results are made; one that is left out is not."""

    dpogl: DpOgl | None = Field(None, description="DP-OGL and DP-OGL+.")
    dpfedmtl: DpFedMtl | None = Field(None, description="DPFedMTL.")
    multfaug: MultFAug | None = Field(None, description="MultFAug.")

    @model_validator(mode="after")
    def _one_is_there(self) -> Papers:
        if not any(getattr(self, name) for name in type(self).model_fields):
            raise ValueError(f"none is given; expected at least one of {', '.join(type(self).model_fields)}")
        return self

    @property
    def made(self) -> list[str]:
        """Names of the papers whose results are made; each is a target of the workflow."""
        return [name for name, paper in self if paper is not None]

    @property
    def with_runs(self) -> dict[str, Paper]:
        """Name -> paper, of those whose results are made from runs of the federated engine."""
        return {name: paper for name, paper in self if isinstance(paper, Paper)}

    @property
    def searches(self) -> dict[str, Paper]:
        """The searches of hyper-parameters, named as where they stand."""
        found = self.dpfedmtl
        return {"dpfedmtl.tuning": found.searched()} if found and found.tuning else {}


class Training(Described):
    """How training is run; nothing of it changes a result."""

    segment_rounds: Count = Field(description="Rounds between two states that are kept, from which training resumes.")
    threads: Count = Field(description="Threads of one training job.")
    device: Literal["auto", "cpu", "cuda"] = Field(description="Where to train; `auto`: a GPU if there is one.")


class Config(Described):
    """All of `config.yaml`."""

    scale: Literal["tiny", "embedded", "paper"] = Field(description="Named in tables and captions.")
    datasets: dict[Name, CompleteDataset] = Field(min_length=1, description="Data sets by name.")
    partitions: dict[Name, PartitionSpec] = Field(min_length=1, description="Partitions over clients by name.")
    structures: dict[Name, StructureSpec] = Field(description="Group structures by name.")
    training: Training = Field(description="How training is run.")
    papers: Papers = Field(description="The papers whose results are made; at least one.")
    _source: str = PrivateAttr("configuration")

    @property
    def source(self) -> str:
        """The names of the files that it comes from, for messages."""
        return self._source

    @model_validator(mode="after")
    def _folders_differ(self) -> Config:
        folders: dict[str, str] = {}
        for name in self.datasets:
            other = folders.setdefault(slug(name), name)
            if other != name:
                raise ValueError(f"datasets: '{other}' and '{name}' would share a folder; expected other names")
        return self

    @model_validator(mode="after")
    def _studied_structures_are_known(self) -> Config:
        dpogl = self.papers.dpogl
        for name in dpogl.leakage.structures if dpogl and dpogl.leakage else ():
            if name not in self.structures:
                hint = nearest(name, self.structures)
                raise ValueError(f"papers.dpogl.leakage.structures: {name!r} is not one of structures; {hint}")
        return self

    @model_validator(mode="after")
    def _datasets_of_multfaug_are_known(self) -> Config:
        paper = self.papers.multfaug
        parts = {"layouts": paper.layouts, "learning": paper.learning} if paper else {}
        for part, study in parts.items():
            if study and study.dataset not in self.datasets:
                hint = nearest(study.dataset, self.datasets)
                raise ValueError(f"papers.multfaug.{part}.dataset: {study.dataset!r} is not one of datasets; {hint}")
            if study and (kind := self.datasets[study.dataset].kind) != "mnist":
                raise ValueError(f"papers.multfaug.{part}.dataset: {study.dataset!r} is of kind {kind}; expected mnist")
        if paper and paper.learning:
            data = self.datasets[paper.learning.dataset]
            assert isinstance(data, MnistData)
            try:
                paper.learning.check_supply(data)
            except ValueError as error:
                raise ValueError(f"papers.multfaug.learning: {error}") from None
        return self


def load_config(content: Mapping[str, Any], where: str = "config.yaml") -> Config:
    """The checked configuration.

    Args:
        content: What the configuration files hold, merged.
        where: Their names, for messages.

    Raises:
        InputError: A key is unknown or missing, or a value is not as expected.
    """
    try:
        config = Config.model_validate(content)
    except ValidationError as error:
        raise InputError(" ".join(_explain(error.errors()[0], content, where).split())) from None
    config._source = where
    return config


def read_config(paths: list[Path]) -> Config:
    """The checked configuration from files; what stands in a later one goes before."""
    content: dict[str, Any] = {}
    for path in paths:
        added = read_yaml(path)
        if not isinstance(added, dict):
            raise InputError(f"{path} is {_shown(added)}; expected keys and values")
        content = merged(content, added)
    return load_config(content, ", ".join(map(str, paths)))


def merged(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """`base` with the values of `over` in place of its own, key by key at every depth."""
    result = dict(base)
    for key, value in over.items():
        both = isinstance(value, Mapping) and isinstance(result.get(key), Mapping)
        result[key] = merged(result[key], value) if both else value
    return result


def expectation(schema: Mapping[str, Any], mark: str = "") -> str:
    """What a value may be, in words, from its JSON schema: for messages and for the reference page.

    A grid axis reads as one of its values. `mark` stands around words that are to be written as they are.
    """
    options = [option for option in _options(schema) if option.get("type") != "null"]
    single = [option for option in options if option.get("type") != "array"]
    return " or ".join(dict.fromkeys(_in_words(option, mark) for option in single or options))


def _options(schema: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    for option in schema.get("anyOf", [schema]):
        yield from [option] if option is schema else _options(option)


_NOUNS = {"integer": "a whole number", "number": "a number", "string": "text"}
_BOUNDS = {"minimum": "of at least", "exclusiveMinimum": "above", "maximum": "at most", "exclusiveMaximum": "below"}


def _in_words(schema: Mapping[str, Any], mark: str) -> str:
    match schema:
        case {"const": word}:
            return f"{mark}{word}{mark}"
        case {"enum": words}:
            *most, last = (f"{mark}{word}{mark}" for word in words)
            return f"{', '.join(most)} or {last}"
        case {"type": "array", "items": items}:
            return f"a list of {expectation(items, mark)}"
        case {"type": "object", "additionalProperties": {"type": _} as values}:
            return f"names, each with {expectation(values, mark)}"
        case {"type": "integer" | "number" | "string" as kind}:
            limits = (f"{words} {_bound(schema[key])}" for key, words in _BOUNDS.items() if key in schema)
            return f"{_NOUNS[kind]} {' and '.join(limits)}".strip()
    return "keys and values"


def _bound(bound: float) -> str:
    return "2^63" if bound == 2**63 else f"{bound:g}"


def _explain(error: ErrorDetails, content: Any, where: str) -> str:
    """One line for a value that does not fit: where it stands, what it is, what was expected."""
    kind, value, loc = error["type"], error["input"], error["loc"]
    if loc[-1:] == ("[key]",):
        path, schema = _locate(loc[:-2], content)
        return f"{where}: {'.'.join(path)}: {_wrong_name(value, schema['propertyNames'])}"
    path, schema = _locate(loc, content)
    place = ": ".join(filter(None, [where, ".".join(path)]))
    if kind in ("unknown_key", "value_error"):
        return f"{place}: {error['msg'].removeprefix('Value error, ')}"
    if kind.startswith("union_tag"):
        key, schema = schema["discriminator"]["propertyName"], {"enum": list(schema["discriminator"]["mapping"])}
        place, value = f"{place}.{key}", value.get(key)
    expected = expectation(schema)
    if kind in ("missing", "union_tag_not_found"):
        return f"{place} is missing; expected {expected}"
    if kind == "finite_number":
        expected = expected.replace("a number", "a finite number")
    if isinstance(value, list) and value and schema.get("type") != "object":
        expected = f"one value: {expected}"
    words = [word for option in _options(schema) for word in option.get("enum", ())]
    near = difflib.get_close_matches(str(value), words, n=1)
    return f"{place} is {_shown(value)}; expected {expected}{''.join(f'; did you mean {word}?' for word in near)}"


def _locate(loc: tuple[int | str, ...], content: Any) -> tuple[list[str], dict[str, Any]]:
    """A value's path as its writer sees it, and its JSON schema.

    Pydantic's own path also has the kinds of partitions and structures, and a place in a list that is but one value.
    """
    schema = Config.model_json_schema()
    definitions = schema["$defs"]
    path: list[str] = []
    for part in loc:
        kind = schema.get("discriminator", {}).get("mapping", {}).get(part)
        reference = kind or ""
        if kind is None:
            schema = _below(schema, part)
            reference = next((option["$ref"] for option in _options(schema) if "$ref" in option), "")
            if isinstance(content, Mapping):
                path.append(str(part))
                content = content.get(part)
            elif isinstance(content, list) and isinstance(part, int):
                path.append(str(part))
                content = content[part]
        schema = definitions[reference.rpartition("/")[2]] if reference else schema
    return path, schema


def _below(schema: Mapping[str, Any], part: int | str) -> dict[str, Any]:
    """The JSON schema of a part of a value."""
    found: dict[str, Any] = {}
    for option in _options(schema):
        named = option.get("properties", {}).get(part)
        others = option.get("items") if isinstance(part, int) else option.get("additionalProperties")
        found = named or others or next(iter(option.get("patternProperties", {}).values()), None) or found
    return found


def _wrong_name(name: Any, schema: Mapping[str, Any]) -> str:
    known = schema.get("enum", [schema["const"]] if "const" in schema else [])
    if known:
        return f"unknown key {_shown(name)}; {nearest(str(name), known)}"
    return f"the name {_shown(name)} cannot be used; expected text of 1 to 60 characters without a slash"


def _shown(value: Any) -> str:
    """A value as its writer knows it."""
    match value:
        case None:
            return "empty"
        case list():
            return "a list" if value else "an empty list"
        case Mapping():
            return "keys and values" if value else "empty"
        case bool():
            return str(value).lower()
        case float() if not math.isfinite(value):
            return f".{value}".replace(".-", "-.")
    return repr(value)
