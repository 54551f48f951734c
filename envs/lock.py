"""Pin the running environment: write `requirements.txt` and its conda mirror `fedpapers.yaml` beside this file.

The pins are everything that pyproject.toml asks for (run time, test, lint, docs, build) and everything that those
packages ask for in turn, in the versions installed here, on each platform and Python that we support. A package that
only some platforms need carries a marker. Run it with `make lock`.
"""

import sys
import tomllib
from collections.abc import Iterable, Mapping
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

HERE = Path(__file__).parent
PYTHONS = ("3.11", "3.12", "3.13")
LINUX = {"platform_system": "Linux", "sys_platform": "linux", "os_name": "posix"}
MACOS = {"platform_system": "Darwin", "sys_platform": "darwin", "os_name": "posix"}
PLATFORMS = {
    'platform_system == "Linux" and platform_machine == "x86_64"': {**LINUX, "platform_machine": "x86_64"},
    'platform_system == "Linux" and platform_machine == "aarch64"': {**LINUX, "platform_machine": "aarch64"},
    'platform_system == "Darwin" and platform_machine == "arm64"': {**MACOS, "platform_machine": "arm64"},
}
LINUX_MARKERS = [marker for marker in PLATFORMS if "Linux" in marker]
HEADER = """\
# Every package of the environment, pinned. Made by `make lock` (envs/lock.py): do not edit.
# For newer versions: upgrade them in .venv, `make test`, `make lock`.
"""


def asked_for(pyproject: dict[str, Any]) -> list[Requirement]:
    """Return what pyproject.toml asks for: to build, to run, to test, to lint, and for the docs."""
    groups = pyproject["dependency-groups"].values()
    lists = [pyproject["build-system"]["requires"], pyproject["project"]["dependencies"], *groups]
    return [Requirement(line) for lines in lists for line in lines]


def closure(roots: Iterable[Requirement], environment: Mapping[str, str]) -> set[str]:
    """Return the names of all packages that the roots need where these markers hold, the roots included.

    Raises:
        PackageNotFoundError: one of them is not installed here.
    """
    seen: set[tuple[str, str]] = set()

    def visit(requirement: Requirement, parent_extra: str) -> None:
        if requirement.marker and not requirement.marker.evaluate({**environment, "extra": parent_extra}):
            return
        name = canonicalize_name(requirement.name)
        for extra in {"", *requirement.extras}:
            if (name, extra) not in seen:
                seen.add((name, extra))
                for line in distribution(name).requires or []:
                    visit(Requirement(line), extra)

    for root in roots:
        visit(root, "")
    return {name for name, _ in seen}


def needed(roots: Iterable[Requirement]) -> dict[str, set[str]]:
    """Return the names of all packages that the roots need on each platform, whatever the Python."""
    return {
        marker: {
            name
            for python in PYTHONS
            for name in closure(roots, {**platform, "python_version": python, "python_full_version": f"{python}.0"})
        }
        for marker, platform in PLATFORMS.items()
    }


def pins(roots: Iterable[Requirement]) -> list[str]:
    """Return one sorted `name==version` line a package, with a marker where not every platform needs it."""
    names = needed(roots)

    def line(name: str) -> str:
        pin = f"{name}=={distribution(name).version}"
        where = [marker for marker in PLATFORMS if name in names[marker]]
        if len(where) == len(PLATFORMS):
            return pin
        if where == LINUX_MARKERS:
            return f'{pin} ; platform_system == "Linux"'
        return f"{pin} ; {' or '.join(where)}"

    return [line(name) for name in sorted(set().union(*names.values()))]


def requirements_text(lines: Iterable[str]) -> str:
    """Return the text of `requirements.txt`."""
    return HEADER + "".join(f"{line}\n" for line in lines)


def conda_text(lines: Iterable[str]) -> str:
    """Return the text of `fedpapers.yaml`: Python from conda-forge, all else the same pins through pip."""
    head = "channels:\n  - conda-forge\n  - nodefaults\ndependencies:\n  - python >=3.11,<3.14\n  - pip\n  - pip:\n"
    return HEADER + head + "".join(f"      - {line}\n" for line in lines)


def main() -> None:
    """Write both files."""
    pyproject = tomllib.loads((HERE.parent / "pyproject.toml").read_text(encoding="utf-8"))
    try:
        lines = pins(asked_for(pyproject))
    except PackageNotFoundError as error:
        sys.exit(f"lock: {error.name} is not installed here but needed; on Linux, a finished .venv has all that is.")
    for name, text in (("requirements.txt", requirements_text(lines)), ("fedpapers.yaml", conda_text(lines))):
        (HERE / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
