"""The map of a layout: devices, server, and the hops of the routes."""

from __future__ import annotations

import cmath
import itertools
import math
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from fedpapers.errors import InputError, nearest
from fedpapers.files import replacing
from fedpapers.reporting import figures

FORMATS = ("png", "pdf", "svg")

_DEVICE = 13  # points
_BESIDE_AT = 12.0  # points from the middle of a device to that of its number
_COLOURS = list(figures.palette([str(label) for label in range(10)]).values())
_HOP = {"arrowstyle": "-|>", "color": "0.35", "linewidth": 1.1, "shrinkB": _DEVICE / 2 + 1}
_INSIDE: dict[str, Any] = {"ha": "center", "va": "center_baseline", "weight": "bold", "zorder": 4}
_BESIDE: dict[str, Any] = {
    "ha": "center",
    "va": "center",
    "fontsize": 7,
    "bbox": {"boxstyle": "round,pad=0.1", "facecolor": "white", "edgecolor": "none"},
    "zorder": 1.5,
}


def check_format(path: Path) -> None:
    """Refuse a file name whose ending is no format of the map.

    Raises:
        InputError: The ending is unknown or missing.
    """
    ending = path.suffix[1:].lower()
    if ending not in FORMATS:
        raise InputError(f"--plot {path}: expected a name that ends in .png, .pdf or .svg; {nearest(ending, FORMATS)}")


def plot_map(report: dict[str, Any], path: Path) -> None:
    """Draw the routes of a `relay` report; the ending of `path` says in which format.

    Raises:
        InputError: As `check_format`.
    """
    check_format(path)
    figures.start()
    figure, axes = plt.subplots(figsize=(6.6, 5.4))
    for route in report["routes"]:
        _draw_hops(axes, report["devices"], route["devices"])
    _draw_devices(axes, report)
    axes.plot(0, 0, marker="s", markersize=_DEVICE, color="black", zorder=3)
    axes.annotate("S", (0, 0), color="white", **_INSIDE)
    _label(axes, report)
    with replacing(path) as temporary:
        ending = path.suffix[1:].lower()
        metadata = {"png": {"Software": None}, "pdf": {"CreationDate": None, "Producer": None}, "svg": {"Date": None}}
        figure.savefig(temporary, format=ending, metadata=metadata[ending], bbox_inches="tight")
    plt.close(figure)


def _draw_hops(axes: Axes, devices: list[dict[str, Any]], route: list[int]) -> None:
    points = [(devices[i]["x"], devices[i]["y"]) for i in route] + [(0.0, 0.0)]
    for here, there in itertools.pairwise(points):
        axes.annotate("", xy=there, xytext=here, arrowprops=_HOP, zorder=1)


def _draw_devices(axes: Axes, report: dict[str, Any]) -> None:
    references = {route["devices"][0] for route in report["routes"]}
    ends = _ends(report)
    for i, device in enumerate(report["devices"]):
        place, colour = (device["x"], device["y"]), _COLOURS[device["target"]]
        edge = 2.2 if i in references else 0.5
        look: dict[str, Any] = {"color": colour, "markeredgecolor": "black", "markeredgewidth": edge}
        axes.plot(*place, marker="o", markersize=_DEVICE, zorder=2, **look)
        # Ten colours are too many to tell apart, so that the label stands there too.
        axes.annotate(f"{device['target']}", place, color=_ink(colour), **_INSIDE)
        axes.annotate(f"{i}", place, xytext=_free_side(place, ends[i]), textcoords="offset points", **_BESIDE)


def _ends(report: dict[str, Any]) -> dict[int, list[tuple[float, float]]]:
    """Device -> the other ends of its hops."""
    devices = report["devices"]
    ends: dict[int, list[tuple[float, float]]] = {i: [] for i in range(len(devices))}
    for route in report["routes"]:
        for here, there in itertools.pairwise(route["devices"]):
            ends[here].append((devices[there]["x"], devices[there]["y"]))
            ends[there].append((devices[here]["x"], devices[here]["y"]))
        ends[route["devices"][-1]].append((0.0, 0.0))
    return ends


def _free_side(place: tuple[float, float], ends: list[tuple[float, float]]) -> tuple[float, float]:
    """Where beside a device its number stands, in points: of 16 directions that farthest from any of its hops."""
    hops = [cmath.phase(complex(x - place[0], y - place[1])) for x, y in ends]
    sides = [cmath.rect(1.0, math.pi / 8 * (k + 0.5)) for k in range(16)]
    best = max(sides, key=lambda side: min(abs(cmath.phase(side * cmath.rect(1.0, -hop))) for hop in hops))
    return (_BESIDE_AT * best.real, _BESIDE_AT * best.imag)


def _ink(colour: tuple[float, float, float]) -> str:
    """Black or white, whichever has more contrast on a colour (relative luminance of WCAG, gamma 2.2)."""
    luminance = sum(weight * part**2.2 for weight, part in zip((0.2126, 0.7152, 0.0722), colour, strict=True))
    return "black" if luminance > 0.18 else "white"


def _label(axes: Axes, report: dict[str, Any]) -> None:
    look: dict[str, Any] = {"linestyle": "", "markersize": 8, "markeredgecolor": "black"}
    marks = [
        Line2D([], [], marker="o", color=_COLOURS[target], label=f"target label {target}", **look)
        for target in sorted({device["target"] for device in report["devices"]})
    ]
    look["markeredgewidth"] = 2
    marks.append(Line2D([], [], marker="o", color="white", label="first of a route", **look))
    marks.append(Line2D([], [], marker="s", color="black", label="server", **look))
    axes.legend(handles=marks, loc="center left", bbox_to_anchor=(1.01, 0.5))
    hops = max(len(route["devices"]) for route in report["routes"])
    title = f"{len(report['routes'])} routes of up to {hops} hops; small numbers: devices"
    axes.set(xlabel="x in km", ylabel="y in km", aspect="equal", title=title)
    axes.margins(0.08)
