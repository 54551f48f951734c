"""Questions about privacy that need no workflow: ε, leakage between groups, and the noise that bounds it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fedpapers.cli.options import GroupsFile, Json, answer
from fedpapers.errors import InputError

SIGMA = "--noise-multiplier", "--sigma"


def epsilon(
    noise_multiplier: Annotated[
        float, typer.Option(*SIGMA, help="σ: standard deviation of the noise over the clipping norm.")
    ],
    sampling_rate: Annotated[float, typer.Option(help="q: probability that a client takes part in a round.")],
    steps: Annotated[int, typer.Option(help="T: number of rounds.")],
    delta: Annotated[float, typer.Option(help="δ of (ε, δ)-differential privacy.")],
    accountant: Annotated[str, typer.Option(help="Accountants, separated by commas.")] = "pld,prv,rdp,gdp",
    as_json: Json = False,
) -> None:
    """ε of the Poisson-subsampled Gaussian mechanism, by each accountant."""
    from fedpapers.privacy.epsilon_report import epsilon_report, format_report

    report = epsilon_report(noise_multiplier, sampling_rate, steps, delta, accountant.split(","))
    answer(report, format_report(report), as_json)


def leakage(
    groups: GroupsFile,
    epochs: Annotated[int, typer.Option(help="T: number of epochs.")],
    interval: Annotated[int, typer.Option(help="S: models cross groups every so many epochs.")],
    noise_multiplier: Annotated[float, typer.Option(*SIGMA, help="σ of the groups that do not set their own.")],
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
    answer(report, format_leakage(report), as_json)


def plan(
    groups: GroupsFile,
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
    answer(report, format_plan(report), as_json)
