"""Figures and tables of MultFAug's radio, from the tables of the study of layouts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from fedpapers.reporting import figures

_BAND = 2  # standard errors
_AXES = {"rho": "compression rate ρ", "max_hops": "most hops M", "dummies": "dummy labels l"}
_LATENCIES = {"reference": "reference device", "system": "system"}
_ARRIVALS = {
    "label_privacy": "label privacy",
    "seeds": "seeds at the server",
    "coverage": "coverage of the target label",
}
_MAPS = {"own_map": "a map of each set's own", "common_map": "one common map"}
_BY_HOPS = {  # quantity: its name and digits in the table
    "reference": ("latency, reference, s", 3),
    "system": ("latency, system, s", 3),
    "reference_alone": ("latency, reference, band not shared, s", 3),
    "hops": ("hops of a route", 3),
    "routes": ("routes", 3),
    "outages": ("lost slots of a route", 1),
    "samples": ("samples of a route at the server, no deadline", 2),
    "label_privacy": ("label privacy", 4),
    "label_privacy_without_floor": ("label privacy without floor", 4),
    "seeds": ("seeds at the server", 2),
    "labels": ("labels at the server", 3),
    "coverage": ("coverage of the target label", 4),
    "own_seeds": ("seeds of the target label", 3),
}


def read_curves(path: str) -> pd.DataFrame:
    """A table of the study; a deadline that is not there is NaN."""
    return pd.read_csv(path)


def plot_latency(curves: pd.DataFrame) -> Figure:
    """Latency over ρ, M and l: a column for each axis, the reference device above, the system below (Fig. 3)."""
    figure, grid = plt.subplots(2, 3, sharex="col", layout="constrained", figsize=(9.6, 5.8))
    for row, (quantity, name) in zip(grid, _LATENCIES.items(), strict=True):
        for axes, axis in zip(row, _AXES, strict=True):
            of_axis = curves[(curves["axis"] == axis) & (curves["quantity"] == quantity)]
            for devices, look in _looks(of_axis).items():
                _line(axes, of_axis[of_axis["devices"] == devices], axis, look | {"label": f"N = {devices}"})
            axes.set_ylim(bottom=0)
        row[0].set_ylabel(f"latency in s, {name}")
    _label_columns(grid[-1], curves)
    for axes, letter in zip(grid[0], "abc", strict=True):
        axes.set_title(f"({letter})", loc="left")
    figure.legend(*grid[0][0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
    return figure


def plot_arrivals(curves: pd.DataFrame, deadlines: Mapping[str, int]) -> Figure:
    """Label privacy, seeds and coverage over M, for each N and deadline (Fig. 6c and what it rests on).

    Args:
        curves: The table of arrivals.
        deadlines: Name -> τ in slots: which deadlines to show.
    """
    figure, row = plt.subplots(1, len(_ARRIVALS), layout="constrained", figsize=(10.2, 3.9))
    for axes, (quantity, name) in zip(row, _ARRIVALS.items(), strict=True):
        _by_deadline(axes, curves[curves["quantity"] == quantity], "max_hops", deadlines)
        axes.set(title=name, xlabel=_AXES["max_hops"])
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    row[1].set_ylim(bottom=0)
    figure.legend(*row[0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
    return figure


def plot_sample_privacy(curves: pd.DataFrame, deadlines: Mapping[str, int]) -> Figure:
    """Sample privacy over ρ on both maps, for each N and deadline (the right axis of Fig. 5)."""
    figure, row = plt.subplots(1, len(_MAPS), sharey=True, layout="constrained", figsize=(8, 4))
    over_rho = curves[curves["axis"] == "rho"]
    for axes, (quantity, name) in zip(row, _MAPS.items(), strict=True):
        _by_deadline(axes, over_rho[over_rho["quantity"] == quantity], "rho", deadlines)
        axes.set(title=name, xlabel=_AXES["rho"])
    row[0].set_ylabel("sample privacy (1 / mean distance)")
    figure.legend(*row[0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
    return figure


def hops_table(latency: pd.DataFrame, arrivals: pd.DataFrame, deadlines: Mapping[str, int]) -> pd.DataFrame:
    """One row a quantity, N and deadline, one column an M: mean and standard error.

    Args:
        latency: The table of latency.
        arrivals: The table of arrivals.
        deadlines: Name -> τ in slots.
    """
    names = {slots: f"τ = {slots} ({name})" for name, slots in deadlines.items()}
    by_hops = latency[latency["axis"] == "max_hops"].assign(deadline="–")
    curves = pd.concat([by_hops, arrivals.assign(deadline=arrivals["deadline"].map(names).fillna("none"))])
    rows = []
    for quantity, (title, digits) in _BY_HOPS.items():
        of_quantity = curves[curves["quantity"] == quantity]
        for (devices, deadline), own in of_quantity.groupby(["devices", "deadline"], sort=False):
            columns = zip(own["max_hops"], own["mean"], own["standard_error"], strict=True)
            cells = {f"M = {hops}": with_error(mean, error, digits) for hops, mean, error in columns}
            rows.append({"Mean over layouts": title, "N": str(devices), "Deadline": str(deadline), **cells})
    return pd.DataFrame(rows)


def payload_table(payloads: pd.DataFrame) -> pd.DataFrame:
    """One row a compression rate: CSR bits, and shares of the dense image by three ways of counting (Table M)."""
    rows = []
    for rho in payloads["rho"].unique():
        forms = payloads[payloads["rho"] == rho].set_index("form")
        share = forms["mean_bits"] / forms["dense_bits"]
        csr = forms.loc["csr"]
        dense, wide = (int(forms.loc[form, "dense_bits"]) for form in ("csr", "csr_wide"))
        rows.append({
            "ρ": f"{rho:g}",
            "Pixels set to 0": f"{csr['zeroed_pixels']:.0f}",
            "CSR bits, mean (sd)": f"{csr['mean_bits']:.0f} ({csr['sd_bits']:.0f})",
            f"CSR / dense ({dense} bits)": f"{share['csr']:.3f}",
            "Values alone / dense": f"{share['values']:.3f}",
            f"CSR / dense, pixels of 32 bits ({wide} bits)": f"{share['csr_wide']:.3f}",
            "Images larger than at the ρ before": "–" if pd.isna(csr["grown"]) else f"{csr['grown']:.1%}",
        })  # fmt: skip
    return pd.DataFrame(rows)


def with_error(mean: float, error: float, digits: int) -> str:
    """`mean ± standard error`; without an error that is 0."""
    return f"{mean:.{digits}f} ± {error:.{digits}f}" if error else f"{mean:.{digits}f}"


def _looks(curves: pd.DataFrame) -> dict[int, dict[str, Any]]:
    """N -> colour and marker."""
    names = [str(devices) for devices in dict.fromkeys(curves["devices"])]
    colours = figures.palette(names)
    return {
        int(name): {"color": colours[name], "marker": marker, "ms": 5}
        for name, marker in zip(names, figures.MARKERS, strict=False)
    }


def _by_deadline(axes: Axes, curves: pd.DataFrame, axis: str, deadlines: Mapping[str, int]) -> None:
    """A line for each N and deadline; full ones for the first deadline."""
    for devices, look in _looks(curves).items():
        for (name, slots), style in zip(deadlines.items(), ("-", "--"), strict=True):
            own = curves[(curves["devices"] == devices) & (curves["deadline"] == slots)]
            label = f"N = {devices}, τ = {slots} slots ({name})"
            _line(axes, own, axis, look | {"ls": style, "label": label, "mfc": "white" if style == "--" else None})


def _line(axes: Axes, own: pd.DataFrame, axis: str, look: dict[str, Any]) -> None:
    """A curve and its band."""
    axes.plot(own[axis], own["mean"], **look)
    half = _BAND * own["standard_error"]
    axes.fill_between(own[axis], own["mean"] - half, own["mean"] + half, color=look["color"], alpha=0.25, lw=0)


def _label_columns(row: Any, curves: pd.DataFrame) -> None:
    """What is on the axes, and what is held."""
    usual = curves.loc[curves["axis"] == "rho"].iloc[0]
    held = {"rho": f"M = {usual['max_hops']}, l = {usual['dummies']}", "max_hops": f"ρ = 0, l = {usual['dummies']}",
            "dummies": f"ρ = 0, M = {usual['max_hops']}"}  # fmt: skip
    for axes, (axis, name) in zip(row, _AXES.items(), strict=True):
        axes.set_xlabel(f"{name}   ({held[axis]})")
        if axis != "rho":
            axes.xaxis.set_major_locator(MaxNLocator(integer=True))
