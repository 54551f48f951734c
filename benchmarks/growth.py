"""How the cost of a round grows with clients, cohort, model and groups: `make bench`.

results/bench/growth.csv          one row a setting
results/bench/growth.{png,pdf}    rounds a second
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import matplotlib.pyplot as plt
import pandas as pd
import torch
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter, StrMethodFormatter

from benchmarks.machine import described
from fedpapers.federated.bench import CASES, benched
from fedpapers.federated.rounds import Federation, next_release
from fedpapers.files import write_text
from fedpapers.groups import single, string
from fedpapers.models import MODELS, Layout
from fedpapers.privacy.mechanism import Mechanism
from fedpapers.process import keep_freed_memory
from fedpapers.reporting import figures

RESULTS = Path(__file__).parents[1] / "results" / "bench"
ROUNDS = 7
PANELS = {
    "clients": "clients, of whom 20 are expected in a round",
    "cohort": "clients in a round",
    "parameters": "parameters of the network (20 clients)",
    "groups": "overlapping groups of 7 (q = 1)",
}


def settings() -> Iterator[tuple[str, int, str, Federation]]:
    """What is varied, its value, the network, and the federation."""
    for clients in (20, 100, 1_000, 10_000):
        few = benched("mnist", clients, 1, 10)
        rare = replace(few.mechanism, sampling_rate=20 / clients)
        yield "clients", clients, "mnist-cnn", replace(few, mechanism=rare)
    for cohort in (10, 30, 100, 300, 1_000):
        yield "cohort", cohort, "mnist-cnn", benched("mnist", cohort, 1, 10)
    for cohort in (10, 30, 100):
        yield "cohort", cohort, "femnist-cnn", benched("femnist", cohort, 1, 10)
    for model in CASES:
        name, _, classes = CASES[model]
        yield "parameters", Layout.of(MODELS[name](classes)).size, name, benched(model, 20, 1, 10)
    for groups in (1, 3, 10, 30, 100):
        ring = string(groups, 7, 2) if groups > 1 else single(7)
        many = benched("mnist", len(ring.workers), 1, 10)
        yield "groups", groups, "mnist-cnn", replace(many, groups=ring, mechanism=Mechanism(1.0, 0.5, 1.0))


def milliseconds(federation: Federation) -> float:
    """The median of some rounds, after one to warm up."""
    state, spent = federation.initial_state(), []
    for _ in range(1 + ROUNDS):
        started = time.perf_counter()
        state, _ = next_release(federation, state)
        spent.append(1000 * (time.perf_counter() - started))
    return statistics.median(spent[1:])


def plot(found: pd.DataFrame, machine: str) -> Figure:
    """A panel for each thing that grows."""
    drawn, panels = plt.subplots(2, 2, figsize=(8, 6), layout="constrained")
    colours = figures.palette(sorted(set(found.model)))
    for axes, (what, title) in zip(panels.flat, PANELS.items(), strict=True):
        own = found[found.varied == what]
        for model, line in own.groupby("model", sort=False):
            style = "o-" if len(line) > 1 else "o"
            axes.plot(line.value, 1000 / line.ms, style, color=colours[str(model)], label=str(model))
        axes.set(xscale="log", yscale="log", ylim=(0.2, 100), xlabel=title, ylabel="rounds a second")
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
            axis.set_minor_formatter(NullFormatter())
        axes.legend()
    drawn.supxlabel(f"one thread, one local step, batches of 10; {machine}", fontsize=7)
    return drawn


def main() -> None:
    """Measure and draw."""
    torch.set_num_threads(1)
    rows = [(what, value, model, milliseconds(federation)) for what, value, model, federation in settings()]
    found = pd.DataFrame(rows, columns=["varied", "value", "model", "ms"])
    RESULTS.mkdir(parents=True, exist_ok=True)
    write_text(RESULTS / "growth.csv", found.to_csv(index=False))
    figures.start()
    figures.save(plot(found, described()), str(RESULTS / "growth.png"), str(RESULTS / "growth.pdf"))
    print(found.to_string(index=False))


if __name__ == "__main__":
    keep_freed_memory()
    main()
