"""The configuration: what a user may write, checked whole before anything runs.

`configs/schema.json` and `docs/config.md` are generated from these models (`fedpapers config reference`).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, PrivateAttr, ValidationError, model_validator

from fedpapers.errors import InputError, nearest
from fedpapers.experiment.config_errors import explain, shown
from fedpapers.experiment.dataset_spec import MnistData
from fedpapers.experiment.described import Count, Described, Name, is_words, slug
from fedpapers.experiment.dpfedmtl_config import DpFedMtl
from fedpapers.experiment.dpogl_config import DpOgl
from fedpapers.experiment.multfaug_config import MultFAug
from fedpapers.experiment.partition_spec import PartitionSpec
from fedpapers.experiment.run_config import Paper
from fedpapers.experiment.structure_spec import StructureSpec
from fedpapers.experiment.titled_data import TitledDataset
from fedpapers.files import read_yaml


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
    datasets: dict[Name, TitledDataset] = Field(min_length=1, description="Data sets by name.")
    partitions: dict[Name, PartitionSpec] = Field(min_length=1, description="Partitions over clients by name.")
    structures: dict[Name, StructureSpec] = Field({}, description="Group structures by name, where groups are studied.")
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
    def _datasets_have_words_for_names(self) -> Config:
        for name in self.datasets:
            if not is_words(name):
                raise ValueError(
                    f"datasets: the name {name!r} reads as a number or as nothing in a table; expected words"
                )
        return self

    @model_validator(mode="after")
    def _titles_differ(self) -> Config:
        titles: dict[str, str] = {}
        for name, data in self.datasets.items():
            other = titles.setdefault(data.title, name) if data.title else name
            if other != name:
                raise ValueError(f"datasets: '{other}' and '{name}' have one title; expected two, as tables go by it")
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
        raise InputError(
            " ".join(explain(error.errors()[0], content, where, Config.model_json_schema()).split())
        ) from None
    config._source = where
    return config


def read_config(paths: list[Path]) -> Config:
    """The checked configuration from files; what stands in a later one goes before."""
    content: dict[str, Any] = {}
    for path in paths:
        added = read_yaml(path)
        if not isinstance(added, dict):
            raise InputError(f"{path} is {shown(added)}; expected keys and values")
        content = merged(content, added)
    return load_config(content, ", ".join(map(str, paths)))


def merged(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """`base` with the values of `over` in place of its own, key by key at every depth."""
    result = dict(base)
    for key, value in over.items():
        both = isinstance(value, Mapping) and isinstance(result.get(key), Mapping)
        result[key] = merged(result[key], value) if both else value
    return result
