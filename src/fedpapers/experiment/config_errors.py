"""What a value of the configuration may be, in words: for messages on one that does not fit, and for the reference."""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterator, Mapping
from typing import Any

from pydantic_core import ErrorDetails

from fedpapers.errors import nearest

_NOUNS = {"integer": "a whole number", "number": "a number", "string": "text"}
_BOUNDS = {"minimum": "of at least", "exclusiveMinimum": "above", "maximum": "at most", "exclusiveMaximum": "below"}


def explain(error: ErrorDetails, content: Any, where: str, schema: Mapping[str, Any]) -> str:
    """One line for a value that does not fit: where it stands, what it is, what was expected.

    Args:
        error: What pydantic found.
        content: The configuration as it was read.
        where: The names of its files.
        schema: The JSON schema of all of it.
    """
    kind, value, loc = error["type"], error["input"], error["loc"]
    if loc[-1:] == ("[key]",):
        path, part = _locate(loc[:-2], content, schema)
        return f"{where}: {'.'.join(path)}: {_wrong_name(value, part['propertyNames'])}"
    path, part = _locate(loc, content, schema)
    place = ": ".join(filter(None, [where, ".".join(path)]))
    if kind in ("unknown_key", "value_error"):
        return f"{place}: {error['msg'].removeprefix('Value error, ')}"
    if kind.startswith("union_tag"):
        key, part = part["discriminator"]["propertyName"], {"enum": list(part["discriminator"]["mapping"])}
        place, value = f"{place}.{key}", value.get(key)
    expected = expectation(part)
    if kind in ("missing", "union_tag_not_found"):
        return f"{place} is missing; expected {expected}"
    if kind == "finite_number":
        expected = expected.replace("a number", "a finite number")
    if isinstance(value, list) and value and part.get("type") != "object":
        expected = f"one value: {expected}"
    words = [word for option in _options(part) for word in option.get("enum", ())]
    near = difflib.get_close_matches(str(value), words, n=1)
    return f"{place} is {shown(value)}; expected {expected}{''.join(f'; did you mean {word}?' for word in near)}"


def expectation(schema: Mapping[str, Any], mark: str = "") -> str:
    """What a value may be, in words, from its JSON schema: for messages and for the reference page.

    A grid axis reads as one of its values. `mark` stands around words that are to be written as they are.
    """
    options = [option for option in _options(schema) if option.get("type") != "null"]
    single = [option for option in options if option.get("type") != "array"]
    return " or ".join(dict.fromkeys(_in_words(option, mark) for option in single or options))


def shown(value: Any) -> str:
    """A value as its writer knows it."""
    match value:
        case None:
            return "empty"
        case list():
            return "a list" if value else "an empty list"
        case Mapping():
            return "keys and values" if value else "empty"
        case bool():
            return str(value).lower()
        case float() if not math.isfinite(value):
            return f".{value}".replace(".-", "-.")
    return repr(value)


def _options(schema: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    for option in schema.get("anyOf", [schema]):
        yield from [option] if option is schema else _options(option)


def _in_words(schema: Mapping[str, Any], mark: str) -> str:
    match schema:
        case {"const": word}:
            return f"{mark}{word}{mark}"
        case {"enum": words}:
            *most, last = (f"{mark}{word}{mark}" for word in words)
            return f"{', '.join(most)} or {last}"
        case {"type": "array", "items": items}:
            return f"a list of {expectation(items, mark)}"
        case {"type": "object", "additionalProperties": {"type": _} as values}:
            return f"names, each with {expectation(values, mark)}"
        case {"type": "integer" | "number" | "string" as kind}:
            limits = (f"{words} {_bound(schema[key])}" for key, words in _BOUNDS.items() if key in schema)
            return f"{_NOUNS[kind]} {' and '.join(limits)}".strip()
    return "keys and values"


def _bound(bound: float) -> str:
    return "2^63" if bound == 2**63 else f"{bound:g}"


def _locate(loc: tuple[int | str, ...], content: Any, schema: Mapping[str, Any]) -> tuple[list[str], Mapping[str, Any]]:
    """A value's path as its writer sees it, and its JSON schema.

    Pydantic's own path also has the kinds of partitions and structures, and a place in a list that is but one value.
    """
    definitions = schema["$defs"]
    path: list[str] = []
    for part in loc:
        kind = schema.get("discriminator", {}).get("mapping", {}).get(part)
        reference = kind or ""
        if kind is None:
            schema = _below(schema, part)
            reference = next((option["$ref"] for option in _options(schema) if "$ref" in option), "")
            if isinstance(content, Mapping):
                path.append(str(part))
                content = content.get(part)
            elif isinstance(content, list) and isinstance(part, int):
                path.append(str(part))
                content = content[part]
        schema = definitions[reference.rpartition("/")[2]] if reference else schema
    return path, schema


def _below(schema: Mapping[str, Any], part: int | str) -> Mapping[str, Any]:
    """The JSON schema of a part of a value."""
    found: Mapping[str, Any] = {}
    for option in _options(schema):
        named = option.get("properties", {}).get(part)
        others = option.get("items") if isinstance(part, int) else option.get("additionalProperties")
        found = named or others or next(iter(option.get("patternProperties", {}).values()), None) or found
    return found


def _wrong_name(name: Any, schema: Mapping[str, Any]) -> str:
    known = schema.get("enum", [schema["const"]] if "const" in schema else [])
    if known:
        return f"unknown key {shown(name)}; {nearest(str(name), known)}"
    return f"the name {shown(name)} cannot be used; expected text of 1 to 60 characters without a slash"
