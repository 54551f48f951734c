"""Group structures as the configuration describes them."""

from __future__ import annotations

import math
from typing import Annotated, Literal

from pydantic import Field, model_validator

from fedpapers import groups
from fedpapers.experiment.described import Count, Described, Label, Seed
from fedpapers.groups import Groups

_MOST_PLACES = 1_000_000  # in all groups of a structure, built in a second or two


class _Structure(Described):
    def build(self) -> Groups:
        """The groups that the description stands for."""
        build = getattr(groups, self.kind)  # type: ignore[attr-defined]
        made: Groups = build(**self.model_dump(exclude={"kind"}))
        return made

    @model_validator(mode="after")
    def _can_be_built(self) -> _Structure:
        counts = {name: value for name, value in self if isinstance(value, int) and name not in ("seed", "shared")}
        places = max(counts.pop("workers", 1), math.prod(counts.values()))
        if places > _MOST_PLACES:
            raise ValueError(f"its groups have {places:,} places for workers; expected at most {_MOST_PLACES:,}")
        self.build()
        return self


class SingleStructure(_Structure):
    """One group of all workers."""

    kind: Literal["single"]
    workers: Count = Field(description="Workers.")


class OverlappingStructure(_Structure):
    """Five overlapping groups of two or three of seven workers (Figure 1b of DP-OGL)."""

    kind: Literal["overlapping"]
    copies: Count = Field(1, description="How many workers each worker of the figure stands for.")


class DisjointStructure(_Structure):
    """Groups without overlaps."""

    kind: Literal["disjoint"]
    groups: Count = Field(description="Groups.")
    size: Count = Field(description="Workers of each group.")


class ChainStructure(_Structure):
    """Groups in a row (`string`), in a circle (`ring`) or around a first one (`star`)."""

    kind: Literal["string", "ring", "star"]
    groups: Count = Field(description="Groups.")
    size: Count = Field(description="Workers of each group.")
    shared: int = Field(ge=0, strict=True, description="Workers that neighbouring groups have in common.")


class GridStructure(_Structure):
    """Groups on a rectangle."""

    kind: Literal["grid"]
    rows: Count = Field(description="Rows of groups.")
    columns: Count = Field(description="Columns of groups.")
    size: Count = Field(description="Workers of each group.")
    shared: int = Field(ge=0, strict=True, description="Workers that neighbouring groups have in common.")


class RandomStructure(_Structure):
    """Groups drawn at random; each worker is in at least one."""

    kind: Literal["random"]
    groups: Count = Field(description="Groups.")
    size: Count = Field(description="Workers of each group.")
    workers: Count = Field(description="Workers in all.")
    seed: Seed = Field(0, description="Seed of the draw.")


class CustomStructure(_Structure):
    """Groups of your own."""

    kind: Literal["custom"]
    groups: dict[Label, list[Label]] = Field(description="Group -> its workers; numbers are names too.")

    def build(self) -> Groups:
        """The groups as they are given."""
        return groups.from_mapping(dict(self.groups))


StructureSpec = Annotated[
    SingleStructure
    | OverlappingStructure
    | DisjointStructure
    | ChainStructure
    | GridStructure
    | RandomStructure
    | CustomStructure,
    Field(discriminator="kind"),
]
