"""The question about MultFAug's radio that needs no workflow."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fedpapers.cli.options import Json, answer


def relay(
    layout: Annotated[Path, typer.Argument(help="YAML: devices: [{x: 4.0, y: 0.0, target: 3, dummies: [5]}, …], km.")],
    max_hops: Annotated[int, typer.Option(help="M: the most hops of a route.")],
    cap: Annotated[int, typer.Option(help="b: the most samples of one label on a route.")] = 4,
    sparsify: Annotated[float, typer.Option(help="ρ: share of the pixels that are set to 0.")] = 0.0,
    csr_bits_per_sample: Annotated[float | None, typer.Option(help="Size of each sample instead of the mean.")] = None,
    deadline: Annotated[float | None, typer.Option(help="τ in slots; left out: none.")] = None,
    slot: Annotated[float, typer.Option(help="T_c in seconds.")] = 0.032,
    fading: Annotated[str, typer.Option(help="rayleigh, none, or pattern: and values of h².")] = "rayleigh",
    seed: Annotated[int, typer.Option(help="Of all draws.")] = 0,
    plot: Annotated[Path | None, typer.Option(help="Map of the routes to draw: a .png, .pdf or .svg file.")] = None,
    as_json: Json = False,
) -> None:
    """Routes, latency and label privacy of seed samples that travel over relays (MultFAug)."""
    from fedpapers.relay.layouts import read_layout
    from fedpapers.relay.report import Setting, format_report, relay_report

    setting = Setting(max_hops, cap, sparsify, csr_bits_per_sample, deadline, slot, fading, seed)
    report = relay_report(read_layout(layout), setting)
    if plot:
        from fedpapers.reporting.relay_map import plot_map

        plot_map(report, plot)
    answer(report, format_report(report), as_json)
