"""MultFAug's learning; what the workflow calls."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fedpapers.cli.options import Data, Device, Threads, described

app = typer.Typer(no_args_is_help=True, help="MultFAug's learning; what the workflow calls.")

GeneratorSpec = Annotated[str, typer.Option("--spec", help="What the generator depends on, as JSON.")]
Seeds = Annotated[Path, typer.Option(help="File of the seeds.")]
DevicesFile = Annotated[Path, typer.Option("--devices", help="File of the devices.")]
Output = Annotated[Path, typer.Option(help="What to make.")]


@app.command()
def devices(
    recipe: Annotated[str, typer.Option(help="What the devices' samples depend on, as JSON.")],
    data: Data,
    output: Output,
) -> None:
    """Deal a data set to devices."""
    from fedpapers.experiment.augmentation_spec import DevicesRecipe
    from fedpapers.experiment.prepare_devices import prepare_devices

    prepare_devices(described(DevicesRecipe.model_validate_json, recipe, "--recipe"), data, output)


@app.command()
def seeds(
    spec: GeneratorSpec,
    data: Data,
    devices_file: DevicesFile,
    output: Output,
) -> None:
    """Make the images of the seeds that arrived."""
    from fedpapers.experiment.augmentation_spec import GanSpec
    from fedpapers.experiment.compress_seeds import make_seeds

    make_seeds(described(GanSpec.model_validate_json, spec, "--spec"), data, devices_file, output)


@app.command()
def train(
    spec: GeneratorSpec,
    seeds: Seeds,
    state: Annotated[Path, typer.Option(help="Where to leave the state.")],
    last: Annotated[int, typer.Option(help="Step of the state to leave.")],
    first: Annotated[int, typer.Option(help="Step of the state to start from; 0: anew.")] = 0,
    threads: Threads = 1,
    device: Device = "auto",
) -> None:
    """Train one segment of a generator on seeds."""
    from fedpapers.experiment.augmentation_spec import GanSpec
    from fedpapers.experiment.train_gan import GanSegment, train_gan

    train_gan(
        GanSegment(described(GanSpec.model_validate_json, spec, "--spec"), seeds, state, first, last, threads, device)
    )


@app.command()
def classify(
    spec: Annotated[str, typer.Option(help="What the network depends on, as JSON.")],
    data: Data,
    devices_file: DevicesFile,
    output: Output,
    generator: Annotated[Path | None, typer.Option(help="State of the generator; left out: none.")] = None,
    threads: Threads = 1,
) -> None:
    """Train and test the network of one device, alone or with generated samples."""
    from fedpapers.experiment.augmentation_spec import ClassifierSpec
    from fedpapers.experiment.train_classifier import train_classifier

    train_classifier(
        described(ClassifierSpec.model_validate_json, spec, "--spec"), data, devices_file, generator, output, threads
    )


@app.command()
def train_judge(
    training: Annotated[str, typer.Option(help="How a network is trained, as JSON.")],
    data: Data,
    devices_file: DevicesFile,
    output: Output,
) -> None:
    """Train the network that judges generated digits."""
    from fedpapers.experiment.augmentation_spec import ClassifierTraining
    from fedpapers.experiment.train_judge import train_judge

    train_judge(described(ClassifierTraining.model_validate_json, training, "--training"), data, devices_file, output)


@app.command()
def judge(
    spec: GeneratorSpec,
    steps: Annotated[int, typer.Option(help="Steps of its training.")],
    data: Data,
    devices_file: DevicesFile,
    seeds: Seeds,
    generator: Annotated[Path, typer.Option(help="State of the generator.")],
    judge: Annotated[Path, typer.Option(help="The judge.")],
    output: Output,
) -> None:
    """Compare generated digits with real ones, and measure how well the seeds are hidden."""
    from fedpapers.experiment.augmentation_spec import GanSpec
    from fedpapers.experiment.judge import judge_generator

    judge_generator(
        described(GanSpec.model_validate_json, spec, "--spec"),
        steps,
        dataset_folder=data,
        devices_file=devices_file,
        seeds_file=seeds,
        state=generator,
        judge=judge,
        output=output,
    )
