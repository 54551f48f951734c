"""The configuration: checked, priced, described."""

from __future__ import annotations

import typer

from fedpapers.cli.options import DEFAULT_CONFIG, ConfigFiles, Json, answer

app = typer.Typer(no_args_is_help=True, help="The configuration.")


@app.command()
def check(files: ConfigFiles = None, as_json: Json = False) -> None:
    """Check a configuration whole, count the runs of each paper, and say what the study of learning costs.

    A warning on standard error for each data set whose folder is not there.
    """
    from fedpapers.experiment.config import read_config
    from fedpapers.experiment.plan import Plan

    plan = Plan(read_config(files or [DEFAULT_CONFIG]))
    for line in plan.folders_without_files():
        typer.echo(f"warning: {line}", err=True)
    runs = {paper: len(table) for paper, table in plan.tables.items()}
    text = f"runs: {', '.join(f'{paper} {count}' for paper, count in runs.items()) or 'none'}"
    learning = plan.augmentation.counts() | plan.augmentation.cost()
    if plan.augmentation.learning:
        text += (
            f"\nlearning of multfaug: {learning['cells']} cells, {learning['generators']} generators"
            f" ({learning['steps']:,} steps), {learning['networks']} networks; about {learning['cpu_hours']:g} hours of"
            f" one CPU core, {learning['gigabytes']:g} GB"
        )
    answer({"runs": runs, "learning": learning}, text, as_json)


@app.command()
def cost(files: ConfigFiles = None, as_json: Json = False) -> None:
    """Expected core-hours of a configuration's runs by table, from a short timing of each kind of run here."""
    from fedpapers.experiment.config import read_config
    from fedpapers.experiment.cost import cost_report, format_cost
    from fedpapers.experiment.plan import Plan
    from fedpapers.reporting.published import HEADLINE

    report = cost_report(Plan(read_config(files or [DEFAULT_CONFIG])), HEADLINE)
    answer(report, format_cost(report), as_json)


@app.command()
def reference() -> None:
    """Write the JSON schema and the page of all keys, in a checkout."""
    from fedpapers.experiment.reference import files
    from fedpapers.files import write_text

    for path, text in files().items():
        write_text(path, text)
        typer.echo(path)
