"""The configuration's JSON schema and the page that explains its keys, both made from the models alone."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from fedpapers.experiment.config import Config
from fedpapers.experiment.config_errors import expectation
from fedpapers.experiment.run_config import RunParameters
from fedpapers.experiment.spec import applicable
from fedpapers.federated.algorithms import ALGORITHMS

_TAGS = ("kind", "scheme")
_GRID = "a grid, [see below](#common-and-runs)"

_OPENING = """\
# Configuration

<!-- Made by `fedpapers config reference` from the models in src/fedpapers/experiment: change those, not this page. -->

`config.yaml` says which runs there are and how they are shown. It is checked whole before anything runs: an unknown
key, a missing one or a value that does not fit ends in one line that says where it stands and what was expected.
`fedpapers config check [FILES…]` does the same, and warns of data folders that are not there.

With several files (`--configfile config.yaml more.yaml`) a later one goes before, key by key at every depth; lists are
replaced whole. With this first line an editor completes and checks while you type:

```yaml
# yaml-language-server: $schema=configs/schema.json
```

The path in it starts from the configuration file's own folder. Numbers are as in YAML; infinity is `.inf`. Names are
yours: 1 to 60 characters without a slash.
"""

_GRIDS = """\
### `common` and `runs`

Each name under `runs` is a grid of runs, and `common` holds what a paper's grids share; a grid's own value goes before
the common one. **A list makes a grid:** each key may have one value or a list of them, and every combination of the
values of a grid makes one run. `rounds` alone takes no list, as a longer run holds the shorter ones.

A run needs each key that its algorithm has, from the grid or from `common`. A value that an algorithm does not have is
left out of its runs; in a grid none of whose algorithms has it, it is a mistake. `null` in a grid takes a common value
back. The same run twice in a paper is a mistake; a run that two papers share is trained once. Neither `rounds` nor the
place of the data nor anything under `training` is part of what a run is: more rounds train the same run further. From
another place the data are prepared again all the same, and what follows too unless that is done first and alone:
`docs/reruns.md`.
"""

_APPLICABLE = """\
#### Which algorithm has which key

All algorithms have the keys that every run needs. Of the others they have:
"""


def schema() -> dict[str, Any]:
    """The JSON schema of `config.yaml`, in the draft that editors know best."""
    head: dict[str, Any] = {"$schema": "http://json-schema.org/draft-07/schema#", "title": "Configuration of fedpapers"}
    head.update(_tidied(Config.model_json_schema()))
    return head


def _tidied(node: Any) -> Any:
    """A schema without titles that repeat the key, and with names checked by one pattern for all."""
    if isinstance(node, list):
        return [_tidied(part) for part in node]
    if not isinstance(node, dict):
        return node
    tidy = {key: _tidied(part) for key, part in node.items() if key != "title" or isinstance(part, dict)}
    for pattern, values in tidy.pop("patternProperties", {}).items():
        tidy["additionalProperties"] = values
        tidy["propertyNames"] = tidy.get("propertyNames", {}) | {"pattern": pattern}
    return tidy


def page() -> str:
    """The reference of all keys, in Markdown."""
    return "\n".join([_OPENING, *_Page(schema()).sections()])


def files() -> dict[Path, str]:
    """Both files, by their places in the checkout."""
    text = json.dumps(schema(), indent=2, ensure_ascii=False) + "\n"
    return {Path("configs/schema.json"): text, Path("docs/config.md"): page()}


class _Page:
    """The page's parts, made from the schema."""

    def __init__(self, schema: dict[str, Any]) -> None:
        self.schema = schema

    def sections(self) -> Iterator[str]:
        """All parts after the opening, in the order of the configuration."""
        sections = {name: self._models(value) for name, value in self.schema["properties"].items()}
        yield "## Keys at the top\n"
        yield _keys(self.schema, {name: f"[see below](#{name})" for name, models in sections.items() if models})
        for name, models in sections.items():
            if models:
                yield f"## `{name}`\n\n{_purpose(self.schema['properties'][name])}{self._known_names(name)}\n"
            for model in models:
                yield from self._section(model)
        for name, value in self.schema["$defs"]["Papers"]["properties"].items():
            yield from self._named(name, self._model(value))
        yield _GRIDS
        yield _grid_keys(self.schema["$defs"]["RunGrid"])
        yield _APPLICABLE
        yield _applicable_keys()

    def _section(self, model: dict[str, Any]) -> Iterator[str]:
        tag = next((key for key in _TAGS if key in model["properties"]), None)
        if tag:
            yield f"### `{tag}:` {expectation(model['properties'][tag], '`')}\n\n{_purpose(model)}\n"
        yield _keys(model, {name: f"[see below](#{name})" for name in self._parts(model)}, without=tag)

    def _named(self, name: str, model: dict[str, Any]) -> Iterator[str]:
        """A part that has one name in the configuration, then its own parts."""
        grids = dict.fromkeys(("common", "runs"), _GRID)
        parts = {key: part for key, part in self._parts(model).items() if key not in grids}
        yield f"### `{name}`\n\n{_purpose(model)}\n"
        yield _keys(model, grids | {key: f"[see below](#{key})" for key in parts})
        for key, part in parts.items():
            yield from self._named(key, part)

    def _parts(self, model: dict[str, Any]) -> dict[str, dict[str, Any]]:
        """The keys of a model that have keys of their own."""
        return {key: part for key, value in model["properties"].items() if (part := self._model(value))}

    def _model(self, value: dict[str, Any]) -> dict[str, Any]:
        """The model of a value that has keys; else nothing."""
        options = [value, *value.get("anyOf", ())]
        return next((self.schema["$defs"][o["$ref"].rpartition("/")[2]] for o in options if "$ref" in o), {})

    def _known_names(self, section: str) -> str:
        names = self.schema["properties"][section].get("propertyNames", {})
        return f" Known names: {expectation(names, '`')}." if names.keys() & {"const", "enum"} else ""

    def _models(self, value: dict[str, Any]) -> list[dict[str, Any]]:
        """The models of a section: its own, or those of the kinds of thing that it names."""
        inner = value.get("additionalProperties", value)
        references = [option["$ref"] for option in inner.get("oneOf", [inner]) if "$ref" in option]
        return [self.schema["$defs"][reference.rpartition("/")[2]] for reference in references]


def _keys(model: dict[str, Any], shown: dict[str, str], without: str | None = None) -> str:
    needed = model.get("required", ())
    rows = (
        (
            f"`{key}`",
            shown.get(key) or expectation(value, "`"),
            "required" if key in needed else _default(value.get("default")),
            _purpose(value),
        )
        for key, value in model["properties"].items()
        if key != without
    )
    return _table(("key", "value", "default", "meaning"), rows)


def _grid_keys(model: dict[str, Any]) -> str:
    choice = applicable("local")
    rows = (
        (
            f"`{key}`",
            expectation(value, "`"),
            "some algorithms" if key in choice else "every run" if _always(key) else "optional",
            _purpose(value),
        )
        for key, value in model["properties"].items()
    )
    return _table(("key", "value", "needed by", "meaning"), rows)


def _always(key: str) -> bool:
    return RunParameters.model_fields[key].is_required()


def _applicable_keys() -> str:
    keys = list(applicable("local"))
    rows = (
        (f"`{name}` ({algorithm.title})", *("✓" if applicable(name)[key] else "" for key in keys))
        for name, algorithm in ALGORITHMS.items()
    )
    return _table(("algorithm", *(f"`{key}`" for key in keys)), rows)


def _purpose(value: dict[str, Any]) -> str:
    return str(value.get("description", ""))


def _default(value: Any) -> str:
    return "none" if value is None else f"`{json.dumps(value)}`"


def _table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    head = list(head)
    lines = [head, ["---"] * len(head), *rows]
    return "".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |\n" for line in lines)
