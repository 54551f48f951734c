"""The command line: questions that need no workflow, and the commands that the workflow's rules call.

A command only reads its options, calls the package, and prints. What it needs is imported when it runs, so that
each command pays for its own libraries alone.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

from fedpapers.errors import InputError
from fedpapers.version import package_version

Described = TypeVar("Described")

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
        typer.echo(f"fedpapers {package_version()}")
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


@app.command()
def leakage(
    groups: Annotated[Path, typer.Argument(metavar="GROUPS.yaml", help="groups: {name: [worker, …], …}.")],
    epochs: Annotated[int, typer.Option(help="T: number of epochs.")],
    interval: Annotated[int, typer.Option(help="S: models cross groups every so many epochs.")],
    noise_multiplier: Annotated[float, typer.Option(help="σ of the groups that do not set their own.")],
    sampling_rate: Annotated[float, typer.Option(help="q of the groups that do not set their own.")],
    delta: Annotated[float, typer.Option(help="δ of (ε, δ)-differential privacy.")],
    algorithm: Annotated[str, typer.Option(help="dp-ogl, dp-ogl-plus or dp-ogl-local.")] = "dp-ogl",
    source: Annotated[str | None, typer.Option("--from", help="Only what this worker leaks.")] = None,
    plot: Annotated[Path | None, typer.Option(help="Draw a heat map to this file.")] = None,
    coefficient: Annotated[str, typer.Option(help="Of percolation: tv (proven) or alpha (numeric).")] = "tv",
    as_json: Json = False,
) -> None:
    """ε from each worker to each other in overlapping groups, by DP-OGL's bounds."""
    from fedpapers.privacy.group_mechanisms import Training
    from fedpapers.privacy.groups_file import read_groups
    from fedpapers.privacy.leakage_report import format_leakage, leakage_report

    training = Training(epochs, interval, algorithm, coefficient)
    file = read_groups(groups)
    noise = file.values("noise_multiplier", noise_multiplier)
    rate = file.values("sampling_rate", sampling_rate)
    report = leakage_report(file.structure, training, noise, rate, delta, source)
    if plot is not None:
        from fedpapers.reporting.leakage import plot_leakage

        plot_leakage([report], plot)
    _print(report, format_leakage(report), as_json)


@app.command()
def plan(
    groups: Annotated[Path, typer.Argument(metavar="GROUPS.yaml", help="groups: {name: [worker, …], …}.")],
    epochs: Annotated[int, typer.Option(help="T: number of epochs.")],
    interval: Annotated[int, typer.Option(help="S: models cross groups every so many epochs.")],
    sampling_rate: Annotated[float, typer.Option(help="q of the groups that do not set their own.")],
    delta: Annotated[float, typer.Option(help="δ of (ε, δ)-differential privacy.")],
    algorithm: Annotated[str, typer.Option(help="dp-ogl, dp-ogl-plus or dp-ogl-local.")] = "dp-ogl",
    in_group: Annotated[float | None, typer.Option(help="Largest ε between workers who share a group.")] = None,
    out_of_group: Annotated[float | None, typer.Option(help="Largest ε between all others.")] = None,
    targets: Annotated[Path | None, typer.Option(help="YAML: default: ε, pairs: {from: {to: ε}}.")] = None,
    as_json: Json = False,
) -> None:
    """The smallest noise multipliers that keep the leakage of overlapping groups below given ε."""
    from fedpapers.privacy.group_mechanisms import Training
    from fedpapers.privacy.groups_file import read_groups
    from fedpapers.privacy.planner import Planner, format_plan, plan_report
    from fedpapers.privacy.targets import read_targets, targets_by_group

    if (targets is None) == (in_group is None and out_of_group is None):
        raise InputError("plan: expected either --targets, or --in-group and --out-of-group or one of them")
    training = Training(epochs, interval, algorithm)
    file = read_groups(groups)
    wanted = (
        targets_by_group(file.structure, in_group, out_of_group)
        if targets is None
        else read_targets(targets, file.structure)
    )
    fixed = [file.own[name].get("noise_multiplier") for name in file.structure.names]
    rate = file.values("sampling_rate", sampling_rate)
    report = plan_report(Planner(file.structure, training, rate, fixed, wanted, delta))
    _print(report, format_plan(report), as_json)


@app.command()
def status(
    config: Annotated[list[Path] | None, typer.Option(help="Configuration files; later ones go before.")] = None,
    as_json: Json = False,
) -> None:
    """Running and finished runs: rounds, accuracy, ε, seconds per round, time left."""
    from fedpapers.experiment.config import read_config
    from fedpapers.experiment.plan import Plan
    from fedpapers.experiment.status import format_status
    from fedpapers.experiment.status import status as status_of

    rows = status_of(Plan(read_config(config or [Path("config.yaml")])))
    _print({"runs": rows}, format_status(rows), as_json)


@app.command()
def verify(
    config: Annotated[list[Path] | None, typer.Option(help="Configuration files; later ones go before.")] = None,
    as_json: Json = False,
) -> None:
    """Whether the results belong to the present code and configuration; status 1 when something does not."""
    from fedpapers.experiment.config import read_config
    from fedpapers.experiment.plan import Plan
    from fedpapers.experiment.verify import format_verification
    from fedpapers.experiment.verify import verify as verify_results

    report = verify_results(Plan(read_config(config or [Path("config.yaml")])), config or [])
    _print(report, format_verification(report), as_json)
    raise typer.Exit(1 if report["findings"] else 0)


config = typer.Typer(no_args_is_help=True, help="The configuration.")
app.add_typer(config, name="config")


@config.command("check")
def config_check(
    files: Annotated[list[Path] | None, typer.Argument(help="Files; later ones go before. [config.yaml]")] = None,
    as_json: Json = False,
) -> None:
    """Check a configuration whole, count the runs of each paper, and say what the study of learning costs."""
    from fedpapers.experiment.config import read_config
    from fedpapers.experiment.plan import Plan

    plan = Plan(read_config(files or [Path("config.yaml")]))
    runs = {paper: len(table) for paper, table in plan.tables.items()}
    text = f"runs: {', '.join(f'{paper} {count}' for paper, count in runs.items()) or 'none'}"
    learning = plan.augmentation.counts() | plan.augmentation.cost()
    if plan.augmentation.learning:
        text += (
            f"\nlearning of multfaug: {learning['cells']} cells, {learning['generators']} generators"
            f" ({learning['steps']:,} steps), {learning['networks']} networks; about {learning['cpu_hours']:g} hours of"
            f" one CPU core, {learning['gigabytes']:g} GB"
        )
    _print({"runs": runs, "learning": learning}, text, as_json)


@config.command("cost")
def config_cost(
    files: Annotated[list[Path] | None, typer.Argument(help="Files; later ones go before. [config.yaml]")] = None,
    as_json: Json = False,
) -> None:
    """Expected core-hours of a configuration's runs by table, from a short timing of each kind of run here."""
    from fedpapers.experiment.config import read_config
    from fedpapers.experiment.cost import cost_report, format_cost
    from fedpapers.experiment.plan import Plan

    report = cost_report(Plan(read_config(files or [Path("config.yaml")])))
    _print(report, format_cost(report), as_json)


@config.command("reference")
def config_reference() -> None:
    """Write the JSON schema and the page of all keys, in a checkout."""
    from fedpapers.experiment.reference import files
    from fedpapers.files import write_text

    for path, text in files().items():
        write_text(path, text)
        typer.echo(path)


@app.command()
def relay(
    layout: Annotated[Path, typer.Argument(help="YAML: devices: [{x: 4.0, y: 0.0, target: 3, dummies: [5]}, …], km.")],
    max_hops: Annotated[int, typer.Option(help="M: the most hops of a route.")],
    cap: Annotated[int, typer.Option(help="b: the most samples of one label on a route.")] = 4,
    sparsify: Annotated[float, typer.Option(help="ρ: share of the pixels that are set to 0.")] = 0.0,
    csr_bits_per_sample: Annotated[float | None, typer.Option(help="Size of each sample instead of the mean.")] = None,
    deadline: Annotated[float | None, typer.Option(help="τ in slots; left out: none.")] = None,
    slot: Annotated[float, typer.Option(help="T_c in seconds.")] = 0.032,
    fading: Annotated[str, typer.Option(help="rayleigh, none, or pattern: and values of h².")] = "rayleigh",
    seed: Annotated[int, typer.Option(help="Of all draws.")] = 0,
    plot: Annotated[Path | None, typer.Option(help="Map of the routes to draw: a .png, .pdf or .svg file.")] = None,
    as_json: Json = False,
) -> None:
    """Routes, latency and label privacy of seed samples that travel over relays (MultFAug)."""
    from fedpapers.relay.layouts import read_layout
    from fedpapers.relay.report import Setting, format_report, relay_report

    setting = Setting(max_hops, cap, sparsify, csr_bits_per_sample, deadline, slot, fading, seed)
    report = relay_report(read_layout(layout), setting)
    if plot:
        from fedpapers.reporting.relay_map import plot_map

        plot_map(report, plot)
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
    from fedpapers.experiment.spec import read_dataset_spec

    prepare_data(_described(read_dataset_spec, spec, "--spec"), output)


@data.command("partition")
def data_partition(
    recipe: Annotated[str, typer.Option(help="What the partition depends on, as JSON.")],
    data: Annotated[Path, typer.Option(help="Folder of the prepared data set.")],
    output: Annotated[Path, typer.Option(help="Folder to make.")],
) -> None:
    """Divide a data set over clients."""
    from fedpapers.experiment.prepare_partition import prepare_partition
    from fedpapers.experiment.spec import PartitionRecipe

    prepare_partition(_described(PartitionRecipe.model_validate_json, recipe, "--recipe"), data, output)


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
    threads: Annotated[int, typer.Option(min=1, help="Threads of this job.")] = 1,
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
) -> None:
    """Train one segment of a run; what the workflow calls for each."""
    from fedpapers.memory import keep_freed_memory

    keep_freed_memory()
    from fedpapers.experiment.progress import Progress
    from fedpapers.experiment.spec import Run
    from fedpapers.experiment.train import Segment, train_segment

    segment = Segment(
        _described(Run.model_validate_json, run, "--run"), folder, first, last, data, partition, threads, device
    )
    train_segment(segment, Progress(folder, first, last).on_round)


augment = typer.Typer(no_args_is_help=True, help="MultFAug's learning; what the workflow calls.")
app.add_typer(augment, name="augment")

Data = Annotated[Path, typer.Option(help="Folder of the prepared data set.")]
DevicesFile = Annotated[Path, typer.Option("--devices", help="File of the devices.")]
Output = Annotated[Path, typer.Option(help="What to make.")]


@augment.command("devices")
def augment_devices(
    recipe: Annotated[str, typer.Option(help="What the devices' samples depend on, as JSON.")],
    data: Data,
    output: Output,
) -> None:
    """Deal a data set to devices."""
    from fedpapers.experiment.augmentation import DevicesRecipe
    from fedpapers.experiment.prepare_devices import prepare_devices

    prepare_devices(_described(DevicesRecipe.model_validate_json, recipe, "--recipe"), data, output)


@augment.command("seeds")
def augment_seeds(
    spec: Annotated[str, typer.Option(help="What the generator depends on, as JSON.")],
    data: Data,
    devices_file: DevicesFile,
    output: Output,
) -> None:
    """Make the images of the seeds that arrived."""
    from fedpapers.experiment.augmentation import GanSpec
    from fedpapers.experiment.compress_seeds import make_seeds

    make_seeds(_described(GanSpec.model_validate_json, spec, "--spec"), data, devices_file, output)


@augment.command("train")
def augment_train(
    spec: Annotated[str, typer.Option(help="What the generator depends on, as JSON.")],
    seeds: Annotated[Path, typer.Option(help="File of the seeds.")],
    state: Annotated[Path, typer.Option(help="Where to leave the state.")],
    last: Annotated[int, typer.Option(help="Step of the state to leave.")],
    first: Annotated[int, typer.Option(help="Step of the state to start from; 0: anew.")] = 0,
    threads: Annotated[int, typer.Option(min=1, help="Threads of this job.")] = 1,
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
) -> None:
    """Train one segment of a generator on seeds."""
    from fedpapers.experiment.augmentation import GanSpec
    from fedpapers.experiment.train_gan import GanSegment, train_gan

    train_gan(
        GanSegment(_described(GanSpec.model_validate_json, spec, "--spec"), seeds, state, first, last, threads, device)
    )


@augment.command("classify")
def augment_classify(
    spec: Annotated[str, typer.Option(help="What the network depends on, as JSON.")],
    data: Data,
    devices_file: DevicesFile,
    output: Output,
    generator: Annotated[Path | None, typer.Option(help="State of the generator; left out: none.")] = None,
    threads: Annotated[int, typer.Option(min=1, help="Threads of this job.")] = 1,
) -> None:
    """Train and test the network of one device, alone or with generated samples."""
    from fedpapers.experiment.augmentation import ClassifierSpec
    from fedpapers.experiment.train_classifier import train_classifier

    train_classifier(
        _described(ClassifierSpec.model_validate_json, spec, "--spec"), data, devices_file, generator, output, threads
    )


@augment.command("train-judge")
def augment_train_judge(
    training: Annotated[str, typer.Option(help="How a network is trained, as JSON.")],
    data: Data,
    devices_file: DevicesFile,
    output: Output,
) -> None:
    """Train the network that judges generated digits."""
    from fedpapers.experiment.augmentation import ClassifierTraining
    from fedpapers.experiment.train_judge import train_judge

    train_judge(_described(ClassifierTraining.model_validate_json, training, "--training"), data, devices_file, output)


@augment.command("judge")
def augment_judge(
    spec: Annotated[str, typer.Option(help="What the generator depends on, as JSON.")],
    steps: Annotated[int, typer.Option(help="Steps of its training.")],
    data: Data,
    devices_file: DevicesFile,
    seeds: Annotated[Path, typer.Option(help="File of the seeds.")],
    generator: Annotated[Path, typer.Option(help="State of the generator.")],
    judge: Annotated[Path, typer.Option(help="The judge.")],
    output: Output,
) -> None:
    """Compare generated digits with real ones, and measure how well the seeds are hidden."""
    from fedpapers.experiment.augmentation import GanSpec
    from fedpapers.experiment.judge import judge_generator

    judge_generator(
        _described(GanSpec.model_validate_json, spec, "--spec"),
        steps,
        dataset_folder=data,
        devices_file=devices_file,
        seeds_file=seeds,
        state=generator,
        judge=judge,
        output=output,
    )


bench = typer.Typer(no_args_is_help=True, help="How fast things are on this machine.")
app.add_typer(bench, name="bench")


@bench.command("cohort")
def bench_cohort(
    model: Annotated[str, typer.Option(help="femnist, celeba or mnist.")],
    clients: Annotated[int, typer.Option(help="K: clients of a round.")],
    steps: Annotated[int, typer.Option(help="L: local steps of each.")],
    batch: Annotated[int, typer.Option(help="Samples of a mini-batch.")] = 10,
    threads: Annotated[int, typer.Option(help="Threads of PyTorch.")] = 1,
    rounds: Annotated[int, typer.Option(help="Rounds to time, after one to warm up.")] = 7,
    as_json: Json = False,
) -> None:
    """Milliseconds and memory of a round, beside one plain batch of all samples for each local step."""
    from fedpapers.memory import keep_freed_memory

    keep_freed_memory()
    from fedpapers.federated.bench import bench_cohort, format_bench

    report = bench_cohort(model, clients, steps, batch, threads, rounds)
    _print(report, format_bench(report), as_json)


def _described(read: Callable[[str], Described], text: str, option: str) -> Described:
    """What the JSON text of an option describes."""
    from pydantic import ValidationError

    try:
        return read(text)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        raise InputError(f"{option}: {place}{': ' if place else ''}{first['msg']}") from None
    except ValueError as error:
        raise InputError(f"{option}: {error}") from None


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
