"""Reading and writing of files such that a kill at any moment leaves no half-written one."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from fedpapers.errors import InputError

try:  # libyaml reads large files several times as fast
    from yaml import CSafeLoader as SafeLoader
except ImportError:
    from yaml import SafeLoader  # type: ignore[assignment]

_MOST_VALUES = 10_000_000  # of a YAML file


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Give a temporary path beside `path`, and move it there once the block has ended well."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name[:40]}.")
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        with temporary.open("rb+") as written:
            os.fsync(written.fileno())
        temporary.chmod(0o666 & ~_umask())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """Write `text` to `path`, whole or not at all."""
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def write_json(path: Path, value: Any) -> None:
    """Write `value` as indented JSON, whole or not at all."""
    write_text(path, json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n")


def canonical_json(value: Any) -> str:
    """The one text of a JSON value: sorted keys, no spaces, shortest floats."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def parse_json(text: str | bytes) -> Any:
    """The value of a JSON text.

    Raises:
        ValueError: It is not JSON, or nested too deep.
    """
    try:  # json itself would let half a surrogate pass in bytes
        return json.loads(text if isinstance(text, str) else text.decode())
    except RecursionError:
        raise ValueError("nested too deep") from None


def seal_of(content: Mapping[str, Any]) -> str:
    """A checksum of what a JSON object says."""
    return hashlib.sha256(canonical_json(content).encode(errors="surrogatepass")).hexdigest()


def sealed(content: Mapping[str, Any]) -> dict[str, Any]:
    """A JSON object with a checksum of the rest of it as its last key; see `read_sealed`."""
    return {**content, "seal": seal_of(content)}


def read_sealed(path: Path) -> dict[str, Any]:
    """Read a JSON object that was `sealed`, without its seal.

    Raises:
        InputError: It is missing, damaged or edited.
    """
    try:
        content = parse_json(path.read_bytes())
        whole = content.pop("seal") == seal_of(content)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        raise InputError(f"{path}: missing or damaged; delete it to make it again") from None
    if not whole:
        raise InputError(f"{path}: not what was written; delete it to make it again")
    return dict(content)


def sha256(path: Path) -> str:
    """The SHA-256 of a file's bytes, in hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def read_yaml(path: Path) -> Any:
    """Read a YAML file.

    Raises:
        InputError: The file is missing, not YAML, or has the same key twice.
    """
    try:
        content = yaml.load(path.read_text(encoding="utf-8"), Loader=_UniqueKeyLoader)  # noqa: S506 (a SafeLoader)
        if _expanded(content, {}) > _MOST_VALUES:
            raise InputError(f"{path}: its aliases stand for more than {_MOST_VALUES:,} values; expected fewer")
        return content
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot be read: {error}") from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f"{path}, line {mark.line + 1}" if mark else f"{path}"
        problem = getattr(error, "problem", None) or getattr(error, "reason", None) or "is not YAML"
        raise InputError(f"{where}: {problem}") from None
    except RecursionError:
        raise InputError(f"{path}: nested too deep; expected a few levels") from None
    except ValueError as error:  # a date that does not exist, say
        raise InputError(f"{path}: {error}") from None


def _expanded(value: Any, known: dict[int, int]) -> int:
    """How many values there are once each alias is replaced by what it stands for."""
    if not isinstance(value, dict | list):
        return 1
    if id(value) not in known:
        known[id(value)] = _MOST_VALUES  # a part of itself, unless its parts say otherwise
        parts = value.values() if isinstance(value, dict) else value
        known[id(value)] = 1 + sum(_expanded(part, known) for part in parts)
    return known[id(value)]


class _UniqueKeyLoader(SafeLoader):
    """A safe loader that refuses a key given twice; YAML itself lets the last one win."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[str] = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise yaml.constructor.ConstructorError(None, None, "a key is a list or a mapping", key.start_mark)
            if key.value in seen and key.tag != "tag:yaml.org,2002:merge":
                raise yaml.constructor.ConstructorError(
                    None, None, f"the key '{key.value}' stands here twice", key.start_mark
                )
            seen.add(key.value)
        return super().construct_mapping(node, deep)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
