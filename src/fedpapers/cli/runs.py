"""Runs: the training of a segment, how far all runs are, and whether results are of the present code."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fedpapers.cli.options import (
    DEFAULT_CONFIG,
    ConfigFiles,
    ConfigOption,
    Data,
    Device,
    Json,
    Threads,
    answer,
    described,
    one_of,
)


def status(files: ConfigFiles = None, config: ConfigOption = None, as_json: Json = False) -> None:
    """Running and finished runs: rounds, accuracy, ε, seconds per round, time left."""
    from fedpapers.experiment.config import read_config
    from fedpapers.experiment.plan import Plan
    from fedpapers.experiment.status import format_status, other_runs
    from fedpapers.experiment.status import status as status_of

    plan = Plan(read_config(one_of(files, config) or [DEFAULT_CONFIG]))
    rows, others, name = status_of(plan), other_runs(plan), plan.config.source
    report = {"configuration": name, "runs": rows, "other_runs": others}
    answer(report, format_status(rows, name, others), as_json)


def verify(files: ConfigFiles = None, config: ConfigOption = None, as_json: Json = False) -> None:
    """Whether the results belong to the present code and configuration; status 1 when something does not."""
    from fedpapers.experiment.config import read_config
    from fedpapers.experiment.plan import Plan
    from fedpapers.experiment.verify import format_verification
    from fedpapers.experiment.verify import verify as verify_results

    named = one_of(files, config)
    report = verify_results(Plan(read_config(named or [DEFAULT_CONFIG])), named)
    answer(report, format_verification(report), as_json)
    raise typer.Exit(1 if report["findings"] else 0)


def train(
    run: Annotated[str, typer.Option(help="The run's canonical description, as JSON.")],
    folder: Annotated[Path, typer.Option(help="The run's folder.")],
    last: Annotated[int, typer.Option(help="Round of the state to leave.")],
    data: Data,
    partition: Annotated[Path, typer.Option(help="File of the partition.")],
    first: Annotated[int, typer.Option(help="Round of the state to start from; 0: anew.")] = 0,
    threads: Threads = 1,
    device: Device = "auto",
) -> None:
    """Train one segment of a run; what the workflow calls for each."""
    from fedpapers.process import set_up_training

    set_up_training()
    from fedpapers.experiment.progress import Progress
    from fedpapers.experiment.spec import Run
    from fedpapers.experiment.train import Segment, train_segment

    segment = Segment(
        described(Run.model_validate_json, run, "--run"), folder, first, last, data, partition, threads, device
    )
    train_segment(segment, Progress(folder, first, last).on_round)
