"""Data sets and their partitions."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fedpapers.cli.options import Data, Json, answer, described

app = typer.Typer(no_args_is_help=True, help="Data sets and their partitions.")


@app.command()
def prepare(
    spec: Annotated[str, typer.Option(help="The data set as in `datasets` of the configuration, as JSON.")],
    output: Annotated[Path, typer.Option(help="Folder to make.")],
) -> None:
    """Bring a data set into the form in which training reads it."""
    from fedpapers.experiment.dataset_spec import read_dataset_spec
    from fedpapers.experiment.prepare_data import prepare_data

    prepare_data(described(read_dataset_spec, spec, "--spec"), output)


@app.command()
def partition(
    recipe: Annotated[str, typer.Option(help="What the partition depends on, as JSON.")],
    data: Data,
    output: Annotated[Path, typer.Option(help="Folder to make.")],
) -> None:
    """Divide a data set over clients."""
    from fedpapers.experiment.partition_spec import PartitionRecipe
    from fedpapers.experiment.prepare_partition import prepare_partition

    prepare_partition(described(PartitionRecipe.model_validate_json, recipe, "--recipe"), data, output)


@app.command()
def inspect(
    path: Annotated[Path, typer.Argument(help="Folder with a data set, as it comes from its makers.")],
    as_json: Json = False,
) -> None:
    """Count what a folder holds and say what is wrong with it; status 1 when something is."""
    from fedpapers.data import inspect

    found = inspect.data_inspect(path)
    answer(found, inspect.format_inspection(found), as_json)
    raise typer.Exit(1 if found["problems"] else 0)
