"""FEMNIST as LEAF writes it: JSON (Caldas et al., arXiv 1812.01097; github.com/TalwalkarLab/leaf).

A file is an object with `users` (names), `num_samples` (one number a user) and `user_data`: user -> `{"x": [[784
pixels in [0, 1], paper 1 and ink 0], …], "y": [classes]}`. A folder holds `all_data_*.json`, or `train/` and `test/`
with such files, which LEAF's own split makes. Files have hundreds of megabytes, so they are parsed user by user.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import ijson
import numpy as np
from numpy.typing import NDArray

from fedpapers.data.characters import (
    CLASSES,
    PIXELS,
    SIDE,
    Report,
    Samples,
    Seen,
    in_order,
    label_problem,
    name_problem,
    pixel_problem,
    shown,
    to_bytes,
)
from fedpapers.data.format import one_line

_BUFFER = 1 << 20
_MOST_LEVELS = 1000  # of brackets; the parser's memory grows with their square


class _Shallow:
    """A file whose open brackets are counted while it is read. Those in names count too."""

    _OTHERS = bytes(set(range(256)) - set(b"[]{}"))

    def __init__(self, file: BinaryIO) -> None:
        self._file, self._open = file, 0

    def read(self, size: int = -1) -> bytes:
        """Some bytes.

        Raises:
            ijson.JSONError: More brackets are open than LEAF's files have by far.
        """
        content = self._file.read(size)
        brackets = np.frombuffer(content.translate(None, self._OTHERS), dtype=np.uint8)
        levels = self._open + np.cumsum(np.where((brackets == ord("[")) | (brackets == ord("{")), 1, -1))
        if len(levels):
            self._open = int(levels[-1])
            if levels.max() > _MOST_LEVELS:
                raise ijson.JSONError("nested too deep")
        return content


def find_json(path: Path) -> list[Path]:
    """LEAF's files in a folder, train before test; empty where there are none. A file stands for itself."""
    if path.is_file():
        return [path] if path.suffix == ".json" else []
    return in_order(
        [*path.glob("all_data*.json"), *(file for split in ("train", "test") for file in path.glob(f"{split}/*.json"))]
    )


def read_json(files: list[Path], report: Report) -> Iterator[Samples]:
    """The samples of each user of LEAF's files; a user with a problem is told to `report` and left out."""
    divided = [file for file in files if file.parent.name in ("train", "test")]
    if 0 < len(divided) < len(files):
        report(f"{files[0].parent}: both all_data_*.json and {divided[0].parent.name}/*.json; expected one of the two")
    seen = Seen()
    for file in files:
        try:
            yield from _read_file(file, seen, report)
        except UnicodeDecodeError:
            report(f"{file}: not valid JSON: not in UTF-8; expected a file of LEAF; fetch or make it again")
        except ijson.JSONError as error:
            report(f"{file}: {_json_problem(file, error)}{seen.last(file)}")
        except OSError as error:
            report(f"{file}: cannot be read: {error.strerror or one_line(error)}; expected a JSON file of LEAF")


def _json_problem(path: Path, error: Exception) -> str:
    text = one_line(error)
    if "nested" in text:
        return "nested too deep; expected lists and objects of a few levels, as LEAF writes them"
    if "premature EOF" in text or _is_cut(path):
        return "truncated: the JSON ends too early; expected a whole file; fetch or make it again"
    if "NaN" in text or "Infinity" in text:
        return "holds NaN or Infinity, which is no JSON; expected pixels from 0 (ink) to 1 (paper)"
    return f"not valid JSON: {text.split(' (right here)')[0][:160]}; expected a file of LEAF; fetch or make it again"


def _is_cut(path: Path) -> bool:
    """Whether a file begins as a JSON object but does not end as one."""
    with path.open("rb") as file:
        begins = file.read(64).lstrip().startswith(b"{")
        file.seek(-min(64, path.stat().st_size), os.SEEK_END)
        return begins and not file.read().rstrip().endswith(b"}")


def _read_file(path: Path, seen: Seen, report: Report) -> Iterator[Samples]:
    counts = _counts(path, report)
    if counts is None:
        return
    left = dict.fromkeys(counts)
    with path.open("rb") as file:
        for user, data in ijson.kvitems(_Shallow(file), "user_data", use_float=True, buf_size=_BUFFER):
            left.pop(user, None)
            where = f"{path}: user {shown(user)}"
            # LEAF's split leaves users with a single sample in user_data, emptied, and takes them out of users.
            if user not in counts and data == {"x": [], "y": []}:
                continue
            if problem := name_problem(user):
                report(f"{path}: the name of user {shown(user)} {problem}")
            elif (before := seen.before(user, path)) is not None:
                report(f"{where}: already in {before}; expected each user once")
            else:
                samples = _samples(user, data, where, report)
                if samples is not None:
                    _check_count(counts, user, len(samples.labels), where, report)
                    yield samples
    for user in left:
        report(f"{path}: user {shown(user)}: in users but not in user_data; expected both")


def _counts(path: Path, report: Report) -> dict[str, Any] | None:
    """User -> what num_samples says; None where the file has not LEAF's form."""
    users, numbers = _value(path, "users"), _value(path, "num_samples")
    for key, value in (("users", users), ("num_samples", numbers)):
        if not isinstance(value, list):
            problem = "no key" if value is None else "no list under the key"
            report(f"{path}: {problem} '{key}'; expected users, num_samples and user_data, as LEAF writes them")
            return None
    assert isinstance(users, list) and isinstance(numbers, list)
    if len(users) != len(numbers):
        report(f"{path}: num_samples has {len(numbers)} numbers for {len(users)} users; expected as many")
        return None
    counts: dict[str, Any] = {}
    for user, number in zip(users, numbers, strict=True):
        if not isinstance(user, str):
            report(f"{path}: users holds {user!r:.80}; expected names")
        elif user in counts:
            report(f"{path}: user {shown(user)} is listed twice in users; expected each once")
        else:
            counts[user] = number
    if not counts and not users:
        report(f"{path}: users is empty; expected at least one")
    return counts


def _value(path: Path, key: str) -> Any:
    # LEAF writes user_data last, so this stops before the bulk of the file.
    with path.open("rb") as file:
        return next(iter(ijson.items(_Shallow(file), key, use_float=True, buf_size=_BUFFER)), None)


def _check_count(counts: dict[str, Any], user: str, found: int, where: str, report: Report) -> None:
    if user not in counts:
        report(f"{where}: in user_data but not in users; expected both")
    elif counts[user] != found:
        report(f"{where}: num_samples says {counts[user]!r:.40}, but there are {found}; expected the same")


def _samples(user: str, data: Any, where: str, report: Report) -> Samples | None:
    x, y = (data.get("x"), data.get("y")) if isinstance(data, dict) else (None, None)
    if not isinstance(x, list) or not isinstance(y, list):
        report(f"{where}: no lists x and y; expected {{'x': images, 'y': classes}}")
        return None
    if len(x) != len(y):
        report(f"{where}: x has {len(x)} images, y has {len(y)} classes; expected as many")
        return None
    labels, problem = _labels(y)
    if not problem:
        images, problem = _images(x)
    if problem:
        report(f"{where}: {problem}")
        return None
    return Samples(user, images, labels)


def _labels(y: list[Any]) -> tuple[NDArray[np.int64], str | None]:
    for row, label in enumerate(y):
        if type(label) is not int:
            return np.empty(0, np.int64), f"label {row} is {label!r:.40}; expected 0 to {len(CLASSES) - 1}"
    labels = np.array(y, dtype=np.int64)
    return labels, label_problem(labels)


def _images(x: list[Any]) -> tuple[NDArray[np.uint8], str | None]:
    nothing = np.empty((0, SIDE, SIDE), np.uint8)
    for row, image in enumerate(x):
        size = len(image) if isinstance(image, list) else 0
        if size != PIXELS:
            return nothing, f"image {row} has {size} pixels; expected {PIXELS} (28 × 28)"
        if not set(map(type, image)) <= {float, int}:
            return nothing, f"image {row} has pixels that are not numbers; expected 0 (ink) to 1 (paper)"
    pixels = np.array(x, dtype=np.float64).reshape(-1, PIXELS)
    if problem := pixel_problem(pixels):
        return nothing, problem
    return to_bytes(pixels).reshape(-1, SIDE, SIDE), None
