"""The stamp beside each table and figure: what it was made from, by which code and versions, and checksums.

`accuracy.stamp.json` is the stamp of `accuracy.csv` and of all else of this stem; tables show its gist below.
A stamp holds no time and no path of this machine: the same runs and code leave the same bytes.
"""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from fedpapers.files import canonical_json, parse_json, seal_of, sha256, write_json
from fedpapers.version import package_version

FORMAT = 1

_LIBRARIES = ("numpy", "pandas", "scipy", "torch")
_VARYING = {"made", "seal"}  # of JSON files: how long it took, and what follows from that


def made_by(job: Any) -> str:
    """The gist of a job's stamp, one line for people.

    Args:
        job: What Snakemake gives a script.
    """
    numbers = ", ".join(f"{name} {number}" for name, number in versions().items())
    return f"Made from the runs and settings {_recipe(job)} by the code {job.params.code}; {numbers}."


def stamp(job: Any) -> None:
    """Write the stamp of a job, last of its files; see `read_stamp` for what is in it.

    Args:
        job: What Snakemake gives a script.
    """
    content = {
        "format": FORMAT,
        "rule": job.rule,
        "recipe": _recipe(job),
        "code": job.params.code,
        "versions": versions(),
        "inputs": {file: digest(Path(file)) for file in _hashed(job.input)},
        "outputs": {str(file): sha256(Path(file)) for file in job.output},
    }
    for path in {stamp_file(Path(file)) for file in job.output}:
        write_json(path, content)


def read_stamp(artefact: Path) -> dict[str, Any] | None:
    """The stamp of an artefact; None where there is none that can be used.

    It has the `rule`, the `recipe` (a hash of all runs and settings that it depends on), the fingerprint of the
    `code`, `versions`, the digests of the `inputs` and the SHA-256 of all `outputs`.
    """
    try:
        content = parse_json(stamp_file(artefact).read_text(encoding="utf-8"))
        usable = content["format"] == FORMAT and str(artefact) in content["outputs"]
        return content if usable and set(content) >= {"rule", "recipe", "code", "versions", "inputs"} else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def stamp_file(artefact: Path) -> Path:
    """Where the stamp of an artefact lies."""
    return artefact.with_suffix(".stamp.json")


def digest(file: Path) -> str:
    """A checksum of what a file says: its SHA-256, for a JSON object without the time that it took to make."""
    if file.suffix == ".json":
        try:
            content = parse_json(file.read_text(encoding="utf-8"))
            kept = {key: value for key, value in content.items() if key not in _VARYING}
            return seal_of(kept)
        except (ValueError, AttributeError):
            pass
    return sha256(file)


def versions() -> dict[str, str]:
    """What a result may depend on besides code and settings: this package, Python and libraries."""
    here = {"fedpapers": package_version(), "Python": platform.python_version()}
    return here | {name: _version_of(name) for name in _LIBRARIES}


def _recipe(job: Any) -> str:
    """Twelve hexadecimal digits for all runs and settings behind a job: the names of runs hold their own hash."""
    settings = {key: value for key, value in job.params.items() if key != "code"}
    behind = {str(file): (read_stamp(Path(file)) or {}).get("recipe") for file in job.input}
    return hashlib.sha256(canonical_json([job.rule, settings, behind]).encode()).hexdigest()[:12]


def _hashed(files: Iterable[Any]) -> list[str]:
    """The inputs whose digests a stamp holds: a large state is known by the record that stands beside it."""
    names = [str(file) for file in files]
    records = {name for name in names if name.endswith(".json")}
    return [name for name in names if name in records or str(Path(name).with_suffix(".json")) not in records]


def _version_of(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"
