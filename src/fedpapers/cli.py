"""The command line: questions that need no workflow, and the commands that the workflow's rules call.

A command only reads its options, calls the package, and prints. What it needs is imported when it runs, so that
each command pays for its own libraries alone. `docs/cli.md` lists the JSON shapes.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from fedpapers import __version__
from fedpapers.errors import InputError

app = typer.Typer(
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)

Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]


@app.callback(invoke_without_command=True)
def fedpapers(
    context: typer.Context, version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False
) -> None:
    """Private federated learning papers, regenerated, checked and extended."""
    if version:
        typer.echo(f"fedpapers {__version__}")
    elif context.invoked_subcommand is None:
        typer.echo(context.get_help())


@app.command()
def epsilon(
    noise_multiplier: Annotated[float, typer.Option(help="σ: standard deviation of the noise over the clipping norm.")],
    sampling_rate: Annotated[float, typer.Option(help="q: probability that a client takes part in a round.")],
    steps: Annotated[int, typer.Option(help="T: number of rounds.")],
    delta: Annotated[float, typer.Option(help="δ of (ε, δ)-differential privacy.")],
    accountant: Annotated[str, typer.Option(help="Accountants, separated by commas.")] = "pld,prv,rdp,gdp",
    as_json: Json = False,
) -> None:
    """ε of the Poisson-subsampled Gaussian mechanism, by each accountant."""
    from fedpapers.privacy.accounting import epsilon_report, format_report

    report = epsilon_report(noise_multiplier, sampling_rate, steps, delta, accountant.split(","))
    _print(report, format_report(report), as_json)


data = typer.Typer(no_args_is_help=True, help="Data sets and their partitions.")
app.add_typer(data, name="data")


@data.command("prepare")
def data_prepare(
    spec: Annotated[str, typer.Option(help="The data set as in `datasets` of the configuration, as JSON.")],
    output: Annotated[Path, typer.Option(help="Folder to make.")],
) -> None:
    """Bring a data set into the form in which training reads it."""
    from fedpapers.experiment.prepare_data import prepare_data
    from fedpapers.experiment.spec import MnistData

    prepare_data(MnistData.model_validate_json(spec), output)


@data.command("partition")
def data_partition(
    recipe: Annotated[str, typer.Option(help="What the partition depends on, as JSON.")],
    data: Annotated[Path, typer.Option(help="Folder of the prepared data set.")],
    output: Annotated[Path, typer.Option(help="Folder to make.")],
) -> None:
    """Divide a data set over clients."""
    from fedpapers.experiment.prepare_partition import prepare_partition
    from fedpapers.experiment.spec import PartitionRecipe

    prepare_partition(PartitionRecipe.model_validate_json(recipe), data, output)


@data.command("inspect")
def data_inspect(
    path: Annotated[Path, typer.Argument(help="Folder with a data set, as it comes from its makers.")],
    as_json: Json = False,
) -> None:
    """Count what a folder holds and say what is wrong with it; status 1 when something is."""
    from fedpapers.data import inspect

    found = inspect.data_inspect(path)
    _print(found, inspect.format_inspection(found), as_json)
    raise typer.Exit(1 if found["problems"] else 0)


@app.command()
def train(
    run: Annotated[str, typer.Option(help="The run's canonical description, as JSON.")],
    folder: Annotated[Path, typer.Option(help="The run's folder.")],
    last: Annotated[int, typer.Option(help="Round of the state to leave.")],
    data: Annotated[Path, typer.Option(help="Folder of the prepared data set.")],
    partition: Annotated[Path, typer.Option(help="File of the partition.")],
    first: Annotated[int, typer.Option(help="Round of the state to start from; 0: anew.")] = 0,
    threads: Annotated[int, typer.Option(help="Threads of this job.")] = 1,
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
) -> None:
    """Train one segment of a run; what the workflow calls for each."""
    from fedpapers.experiment.progress import Progress
    from fedpapers.experiment.spec import Run
    from fedpapers.experiment.train import Segment, train_segment

    segment = Segment(Run.model_validate_json(run), folder, first, last, data, partition, threads, device)
    train_segment(segment, Progress(folder, first, last).on_round)


def _print(value: Any, text: str, as_json: bool) -> None:
    typer.echo(json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) if as_json else text)


def main() -> None:
    """Run the command line; a mistake in the input ends in one line on standard error and status 2."""
    try:
        status = app(standalone_mode=False)
    except InputError as error:
        status = _complain(str(error), 2)
    except (typer.Abort, KeyboardInterrupt):
        status = _complain("interrupted", 130)
    except Exception as error:
        message = _one_line(error)
        if message is None:
            raise
        status = _complain(message, 2)
    sys.exit(status)


def _one_line(error: Exception) -> str | None:
    """The line that stands for an error outside our own code: a wrong option, a full disk; None for a bug."""
    format_message = getattr(error, "format_message", None)  # click's usage errors
    if format_message is not None:
        return f"{format_message()} (see --help)"
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {error.strerror}"
    return f"{error.strerror}" if isinstance(error, OSError) and error.strerror else None


def _complain(message: str, status: int) -> int:
    typer.echo(f"error: {' '.join(message.split())}", err=True)
    return status
