"""GROUPS.yaml: who trains with whom, and where a group's noise or sampling differs from the rest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fedpapers.errors import InputError, nearest
from fedpapers.files import read_yaml
from fedpapers.groups import Groups, from_mapping

_KEYS = ("groups",)
_GROUP_KEYS = ("workers", "noise_multiplier", "sampling_rate")
_FORM = "a list of workers, or a mapping with 'workers'"


@dataclass(frozen=True)
class GroupsFile:
    """A structure with the values that some of its groups set for themselves.

    Attributes:
        structure: Who is in which group.
        own: Group name -> its `noise_multiplier` or `sampling_rate`, where it has one of its own.
    """

    structure: Groups
    own: Mapping[str, Mapping[str, float]]

    def values(self, key: str, default: float) -> list[float]:
        """Each group's value of `noise_multiplier` or `sampling_rate`, in the order of the groups."""
        return [self.own[name].get(key, default) for name in self.structure.names]


def read_groups(path: Path) -> GroupsFile:
    """Read `groups: {name: [worker, …] | {workers: […], noise_multiplier: σ, sampling_rate: q}}`.

    Raises:
        InputError: The file cannot be read or has another form; one line names file, group and value.
    """
    content = read_yaml(path)
    if not isinstance(content, dict) or "groups" not in content:
        found = "is empty" if content is None else "has no key 'groups'"
        raise InputError(f"{path}: {found}; expected 'groups: {{name: [worker, …], …}}'")
    _check_keys(f"{path}", content, _KEYS)
    groups = content["groups"]
    if not isinstance(groups, dict) or not groups:
        raise InputError(f"{path}: groups: expected a mapping of at least one group name to its workers")
    members: dict[str, list[str]] = {}
    own: dict[str, dict[str, float]] = {}
    for key, value in groups.items():
        name = _name(f"{path}: groups", key)
        members[name], own[name] = _group(f"{path}: groups.{name}", value)
    try:
        return GroupsFile(from_mapping(members), own)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def _group(where: str, value: Any) -> tuple[list[str], dict[str, float]]:
    """A group's workers and its own values."""
    own: dict[str, float] = {}
    if isinstance(value, dict):
        _check_keys(where, value, _GROUP_KEYS)
        own = {key: _number(f"{where}.{key}", value[key]) for key in _GROUP_KEYS[1:] if key in value}
        if "workers" not in value:
            raise InputError(f"{where}: has no key 'workers'; expected {_FORM}")
        value = value["workers"]
    if not isinstance(value, list):
        raise InputError(f"{where}: {_shown(value)}; expected {_FORM}")
    return [_name(where, worker) for worker in value], own


def _name(where: str, value: Any) -> str:
    """A name as text; YAML reads some bare words as something else."""
    if isinstance(value, str) or (isinstance(value, int | float) and not isinstance(value, bool)):
        return str(value)
    raise InputError(f"{where}: the name {_shown(value)} is not a text or a number; put it in quotes")


def _number(where: str, value: Any) -> float:
    """A noise multiplier or a sampling rate; their ranges are checked where all groups' values are."""
    if isinstance(value, float) or (isinstance(value, int) and not isinstance(value, bool) and abs(value) < 1e300):
        return float(value)
    hint = " (YAML reads 1e-3 as text: write 1.0e-3)" if isinstance(value, str) else ""
    raise InputError(f"{where}: {_shown(value)}; expected a number{hint}")


def _check_keys(where: str, value: Mapping[object, Any], known: tuple[str, ...]) -> None:
    for key in value:
        if key not in known:
            raise InputError(f"{where}: unknown key '{key}'; {nearest(str(key), known)}")


def _shown(value: Any) -> str:
    """A value as it may stand in one line."""
    text = "nothing" if value is None else repr(value)
    return text if len(text) <= 40 else f"{text[:37]}…"
