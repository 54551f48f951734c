"""The command line: questions that need no workflow, and the commands that the workflow's rules call.

A command only reads its options, calls the package, and prints. What it needs is imported when it runs, so that
each command pays for its own libraries alone.
"""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from fedpapers.cli import augment, bench, config, data, privacy, relay, runs
from fedpapers.errors import InputError, printable
from fedpapers.version import package_version

app = typer.Typer(
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for command in (privacy.epsilon, privacy.leakage, privacy.plan, runs.status, runs.verify, relay.relay, runs.train):
    app.command()(command)
for name, group in {"config": config, "data": data, "augment": augment, "bench": bench}.items():
    app.add_typer(group.app, name=name)


@app.callback(invoke_without_command=True)
def fedpapers(
    context: typer.Context, version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False
) -> None:
    """Private federated learning papers, regenerated, checked and extended."""
    if version:
        typer.echo(f"fedpapers {package_version()}")
    elif context.invoked_subcommand is None:
        typer.echo(context.get_help())


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
    typer.echo(f"error: {' '.join(printable(message).split())}", err=True)
    return status
