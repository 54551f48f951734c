"""Partitions over clients as the configuration describes them, and all that one depends on."""

from __future__ import annotations

import hashlib
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from fedpapers.experiment.dataset_spec import DatasetSpec
from fedpapers.experiment.described import Count, Described, Fraction, Positive, Seed
from fedpapers.experiment.structure_spec import StructureSpec
from fedpapers.files import canonical_json

_Clients = Annotated[int, Field(ge=1, le=1_000_000, strict=True)]


class _Partition(Described):
    train_fraction: Fraction = Field(0.8, description="Share of a client's samples to train on.")


class GroupsPartition(_Partition):
    """Each group of the structure has classes of its own; a worker's samples come from those of its groups."""

    scheme: Literal["groups"]
    classes_per_group: Count = Field(description="Classes of each group.")
    class_overlap: int = Field(ge=0, strict=True, description="Classes that groups next to each other have in common.")
    samples_per_worker: int = Field(ge=2, strict=True, description="Samples of each worker, training and test.")

    @model_validator(mode="after")
    def _overlap_is_smaller(self) -> GroupsPartition:
        if self.class_overlap >= self.classes_per_group:
            raise ValueError(
                f"class_overlap is {self.class_overlap}; expected less than"
                f" classes_per_group ({self.classes_per_group})"
            )
        return self


class ShardsPartition(_Partition):
    """Samples sorted by label, cut into shards, dealt to the clients at random."""

    scheme: Literal["shards"]
    shards_per_client: Count = Field(description="Shards of each client.")
    clients: _Clients | None = Field(None, description="Clients; left out when a structure gives the workers.")


class DirichletPartition(_Partition):
    """Each label is divided among the clients in Dirichlet(α) proportions."""

    scheme: Literal["dirichlet"]
    alpha: Positive = Field(description="α: the smaller, the more one-sided are the clients.")
    minimum: int = Field(2, ge=2, strict=True, description="Fewest samples of a client.")
    attempts: Count = Field(100, description="Draws until each client has its minimum; then it is an error.")
    clients: _Clients | None = Field(None, description="Clients; left out when a structure gives the workers.")


class WriterPartition(_Partition):
    """One client for each writer, split as LEAF does: at random, rounded down, at least one sample to train on."""

    scheme: Literal["writer"]
    minimum: int = Field(2, ge=2, strict=True, description="Writers with fewer samples are left out.")


PartitionSpec = Annotated[
    GroupsPartition | ShardsPartition | DirichletPartition | WriterPartition, Field(discriminator="scheme")
]


class PartitionRecipe(Described):
    """All that a partition depends on: runs for which it is equal share the partition."""

    dataset_name: str
    dataset: DatasetSpec
    partition: PartitionSpec
    structure: StructureSpec | None = None
    seed: Seed

    def canonical(self) -> str:
        """The one text of this description, the same for equal ones; a data folder's path is no part of it."""
        content = self.model_dump(mode="json", exclude_none=True)
        content["dataset"].pop("path", None)
        return canonical_json(content)

    def noted(self) -> dict[str, Any]:
        """What a partition's file notes of how it was made; the data set is checked by its size."""
        return self.model_dump(mode="json", exclude={"dataset"}, exclude_none=True)

    @property
    def hash(self) -> str:
        """Eight hexadecimal digits of the hash of the canonical text."""
        return hashlib.sha256(self.canonical().encode()).hexdigest()[:8]
