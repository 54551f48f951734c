"""Preparation of a partition over clients."""

from __future__ import annotations

from pathlib import Path

from fedpapers.data.format import Dataset, verify_dataset
from fedpapers.data.group_classes import by_groups
from fedpapers.data.partition import Partition
from fedpapers.data.schemes import by_dirichlet, by_shards
from fedpapers.data.split import split
from fedpapers.data.writers import by_writer, split_as_leaf
from fedpapers.errors import InputError
from fedpapers.experiment.partition_spec import (
    DirichletPartition,
    GroupsPartition,
    PartitionRecipe,
    ShardsPartition,
    WriterPartition,
)
from fedpapers.files import sealed, sha256, write_json


def prepare_partition(recipe: PartitionRecipe, dataset_folder: Path, folder: Path) -> None:
    """Make a partition's folder: `partition.safetensors`, `histogram.csv`, `about.json`.

    Raises:
        InputError: The data set cannot be divided as the recipe asks.
    """
    dataset = verify_dataset(dataset_folder)
    made = make_partition(recipe, dataset)
    made.write(folder, recipe.noted(), dataset.labels)
    groups = recipe.structure.build().members if recipe.structure else {}
    about = {key: dataset.about[key] for key in ("generated", "classes")}
    about |= {"groups": groups, "histogram_sha256": sha256(folder / "histogram.csv")}
    write_json(folder / "about.json", sealed({"data": dataset.about["name"], **about}))


def make_partition(recipe: PartitionRecipe, dataset: Dataset) -> Partition:
    """The partition that a recipe describes."""
    scheme, labels, seed = recipe.partition, dataset.labels, recipe.seed
    workers = recipe.structure.build().workers if recipe.structure else ()
    match scheme:
        case GroupsPartition():
            assert recipe.structure is not None
            samples = by_groups(
                labels,
                recipe.structure.build(),
                scheme.classes_per_group,
                scheme.class_overlap,
                scheme.samples_per_worker,
                seed,
            )
        case ShardsPartition():
            workers = workers or _numbered(scheme.clients)
            samples = by_shards(labels, len(workers), scheme.shards_per_client, seed)
        case DirichletPartition():
            workers = workers or _numbered(scheme.clients)
            samples = by_dirichlet(labels, len(workers), scheme.alpha, scheme.minimum, scheme.attempts, seed)
        case WriterPartition():
            if dataset.writers is None:
                name = dataset.about["name"]
                raise InputError(f"partition writer: the data set {name} does not say who wrote what")
            workers, samples = by_writer(dataset.writers, dataset.writer_names, scheme.minimum)
            return split_as_leaf(samples, workers, scheme.train_fraction, seed)
    return split(samples, workers, scheme.train_fraction, seed)


def _numbered(clients: int | None) -> tuple[str, ...]:
    assert clients is not None, "checked with the configuration"
    return tuple(str(k + 1) for k in range(clients))
