"""Where the devices are and which labels they hold: drawn at random, or read from a user's file."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedpapers.errors import InputError, nearest
from fedpapers.files import read_yaml
from fedpapers.randomness import Purpose, generator

LABELS = 10
SIDE_KM = 10.0
MOST_DEVICES = 10_000  # of a layout: time grows with their square

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

_KEYS = ("x", "y", "target", "dummies")
_FARTHEST_KM = 1e6


@dataclass(frozen=True, eq=False)
class Layouts:
    """L independent layouts of N devices each, around a server at the origin.

    Attributes:
        positions: Coordinates in km, shape [L, N, 2].
        targets: Each device's target label, of which it has few samples, shape [L, N].
        dummies: The other labels that it sends too, shape [L, N, l]; -1 where a device has fewer than l.
    """

    positions: FloatArray
    targets: IntArray
    dummies: IntArray

    @property
    def dummy_counts(self) -> IntArray:
        """The number of each device's dummy labels, shape [L, N]."""
        return np.asarray((self.dummies >= 0).sum(axis=-1))


def draw_layouts(layouts: int, devices: int, dummies: int, seed: int) -> Layouts:
    """Layouts with devices uniform on the plane of 10 × 10 km and targets uniform on 0 to 9 (the paper's setting).

    Layout number i does not depend on how many are drawn. A device's l dummies are the first l of its permutation of
    the other nine labels, so that more dummies contain the fewer.

    Args:
        layouts: L.
        devices: N.
        dummies: l, the number of dummy labels of each device, 0 to 9.
        seed: Of positions and labels; each has a stream of its own.
    """
    positions = (generator(seed, Purpose.LAYOUT).random((layouts, devices, 2)) - 0.5) * SIDE_KM
    numbers = generator(seed, Purpose.LABELS).random((layouts, devices, LABELS))
    targets = (numbers[..., 0] * LABELS).astype(np.int64)
    others = np.argsort(numbers[..., 1:], axis=-1)[..., :dummies]
    return Layouts(positions, targets, others + (others >= targets[..., None]))


def read_layout(path: Path) -> Layouts:
    """One layout from a YAML file: `devices: [{x: 4.0, y: 0.0, target: 3, dummies: [5]}, …]`, x and y in km.

    Raises:
        InputError: The file is not such a layout; the message names the device and its key.
    """
    content = read_yaml(path)
    if not isinstance(content, Mapping):
        raise InputError(f"{path}: expected the key 'devices' with a list of devices")
    _check_keys(f"{path}", content, ("devices",))
    listed = content["devices"]
    if not isinstance(listed, list) or not listed:
        raise InputError(f"{path}: devices: expected a list of at least one device {{{': …, '.join(_KEYS)}: …}}")
    if len(listed) > MOST_DEVICES:
        raise InputError(f"{path}: devices: {len(listed):,} devices; expected at most {MOST_DEVICES:,}")
    devices = [_device(f"{path}: devices[{i}]", device) for i, device in enumerate(listed)]
    dummies = np.full((1, len(devices), max(len(listed) for _, _, listed in devices)), -1, dtype=np.int64)
    for i, (_, _, own) in enumerate(devices):
        dummies[0, i, : len(own)] = own
    positions = np.array([[position for position, _, _ in devices]], dtype=np.float64)
    return Layouts(positions, np.array([[target for _, target, _ in devices]], dtype=np.int64), dummies)


def _device(where: str, device: Any) -> tuple[tuple[float, float], int, list[int]]:
    if not isinstance(device, Mapping):
        raise InputError(f"{where}: expected {{{': …, '.join(_KEYS)}: …}}, found {device!r}")
    _check_keys(where, device, _KEYS)
    position = (_coordinate(f"{where}.x", device["x"]), _coordinate(f"{where}.y", device["y"]))
    target = _label(f"{where}.target", device["target"])
    listed = device["dummies"]
    if not isinstance(listed, list):
        raise InputError(f"{where}.dummies: expected a list of labels, [] for none; found {listed!r}")
    if len(listed) >= LABELS:
        raise InputError(f"{where}.dummies: {len(listed)} labels; expected at most {LABELS - 1}, the other labels")
    dummies = [_label(f"{where}.dummies[{k}]", label) for k, label in enumerate(listed)]
    for k, label in enumerate(dummies):
        if label == target:
            raise InputError(f"{where}.dummies[{k}]: {label} is the device's target label; expected another one")
        if label in dummies[:k]:
            raise InputError(f"{where}.dummies[{k}]: {label} is listed twice; expected distinct labels")
    return position, target, dummies


def _check_keys(where: str, given: Mapping[Any, Any], known: tuple[str, ...]) -> None:
    for key in given:
        if key not in known:
            raise InputError(f"{where}: unknown key '{key}'; {nearest(str(key), known)}")
    for key in known:
        if key not in given:
            raise InputError(f"{where}: the key '{key}' is missing; expected {', '.join(known)}")


def _coordinate(where: str, value: Any) -> float:
    number = _number(value)
    if number is None or not abs(number) <= _FARTHEST_KM:
        raise InputError(f"{where}: {value!r}; expected kilometres from the server, within ±{_FARTHEST_KM:g}")
    return number


def _number(value: Any) -> float | None:
    """A finite number; YAML leaves 1e-3 a text, which is meant as a number too."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def _label(where: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < LABELS:
        raise InputError(f"{where}: {value!r}; expected a label from 0 to {LABELS - 1}")
    return value
