"""What commands share: options, models described in JSON, and how an answer is printed."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

from fedpapers.errors import InputError, printable

Described = TypeVar("Described")

Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]
ConfigFiles = Annotated[list[Path] | None, typer.Argument(help="Files; later ones go before. [config.yaml]")]
ConfigOption = Annotated[list[Path] | None, typer.Option("--config", metavar="FILE", help="The same as FILES.")]
GroupsFile = Annotated[Path, typer.Argument(metavar="GROUPS.yaml", help="groups: {name: [worker, …], …}.")]
Data = Annotated[Path, typer.Option(help="Folder of the prepared data set.")]
Threads = Annotated[int, typer.Option(min=1, help="Threads of this job.")]
Device = Annotated[str, typer.Option(help="auto, cpu or cuda.")]

DEFAULT_CONFIG = Path("config.yaml")


def one_of(files: list[Path] | None, config: list[Path] | None) -> list[Path]:
    """Configuration files that were named as arguments or by `--config`; none for the default."""
    if files and config:
        raise InputError("FILES and --config: both were given; expected one of the two, as the order of files matters")
    return files or config or []


def described(read: Callable[[str], Described], text: str, option: str) -> Described:
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


def answer(value: Any, text: str, as_json: bool) -> None:
    """Print a text, or a value as JSON."""
    typer.echo(printable(json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) if as_json else text))
