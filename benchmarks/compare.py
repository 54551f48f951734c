"""fedpapers' engine beside pfl and Flower on the same tasks, in turns: `make bench`.

results/bench/rounds.csv           one row a round that was timed
results/bench/compared.{csv,md}    one row a case: medians, ratios, memory
results/bench/compared.{png,pdf}   the ratios, with the machine
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from threading import Event, Thread
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from benchmarks.machine import descendants, described, memory_mib
from fedpapers.federated.bench import CASES, benched
from fedpapers.files import write_text
from fedpapers.randomness import Purpose, generator
from fedpapers.reporting import figures

ROOT = Path(__file__).parents[1]
RESULTS, PEERS = ROOT / "results" / "bench", ROOT / ".bench_cache"
BATCH = 10
STARTS = 3  # of every process: where its memory happens to lie changes a peer's time by up to a half
PAUSE = 0.2  # seconds before each round, so that nobody waits for what another side still tidies up
TOLERANCE = 1e-3  # of a peer's update in a round without noise: float32 may choose another pixel where two are as large


@dataclass(frozen=True)
class Case:
    """What is compared: the first side is the one that the others are divided by."""

    name: str
    model: str
    clients: int
    steps: int
    threads: int
    sides: tuple[str, ...]
    turns: int = 5  # of each start


TASKS = (
    Case("FEMNIST, 20 clients × 1 step", "femnist", 20, 1, 2, ("ours", "bound", "pfl", "flower")),
    Case("FEMNIST, 20 clients × 5 steps", "femnist", 20, 5, 2, ("ours", "bound", "pfl", "flower")),
    Case("FEMNIST, 3 clients × 5 steps", "femnist", 3, 5, 2, ("ours", "bound", "pfl", "flower")),
    Case("CelebA, 20 clients × 2 steps", "celeba", 20, 2, 1, ("ours", "bound", "pfl")),
    Case("MNIST, 35 clients × 5 steps", "mnist", 35, 5, 1, ("ours", "groups")),
    Case("CelebA, two rounds of 20 × 2", "celeba", 20, 2, 2, ("two jobs", "one job")),
)
TITLES = {
    "ours": "fedpapers", "bound": "bound", "pfl": "pfl", "flower": "Flower", "groups": "5 groups of 7",
    "two jobs": "2 jobs of 1 thread", "one job": "1 job of 2 threads",
}  # fmt: skip


class Side:
    """A process that plays rounds in turn with others."""

    def __init__(self, what: str, case: Case, threads: int, task: Path, checked: Path) -> None:
        if what in ("pfl", "flower"):
            python, arguments = PEERS / what / "bin" / "python", [str(task), str(checked)]
        else:
            sizes = (case.model, case.clients, case.steps, BATCH, threads)
            python, arguments = Path(sys.executable), [what, *map(str, sizes), str(checked)]
        module = f"benchmarks.side_{what if what in ('pfl', 'flower') else 'ours'}"
        self.log = checked.with_suffix(".log")
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                [str(python), "-m", module, *arguments],
                cwd=ROOT,
                env=_environment(threads),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        self.update = np.load(self._answer()["checked"])

    def go(self) -> None:
        """Begin a round."""
        assert self.process.stdin
        self.process.stdin.write("go\n")
        self.process.stdin.flush()

    def milliseconds(self) -> float:
        """Wait for the end of the round."""
        return float(self._answer()["ms"])

    def stop(self) -> None:
        """No other round; nothing of the side stays."""
        assert self.process.stdin
        own = descendants(self.process.pid)
        self.process.stdin.close()
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(20)
        for pid in own:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait()

    def _answer(self) -> dict[str, Any]:
        assert self.process.stdout
        line = self.process.stdout.readline()
        if not line:
            sys.exit(f"bench: a side has died:\n{self.log.read_text()[-3000:]}")
        return dict(json.loads(line))


def _environment(threads: int) -> dict[str, str]:
    path = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    quiet = {"FLWR_TELEMETRY_ENABLED": "0", "RAY_USAGE_STATS_ENABLED": "0", "RAY_worker_niceness": "0"}
    return os.environ | quiet | {"PYTHONPATH": path, "OMP_NUM_THREADS": str(threads)}


def write_task(case: Case, file: Path) -> None:
    """Leave a case's task for the peers: the engine's own, its clients' samples in the order of the first round."""
    federation = benched(case.model, case.clients, case.steps, BATCH)
    data = federation.clients
    order = np.stack([_order(federation.seed, n, own) for n, own in enumerate(data.train)])
    pixels = data.images[order]
    settings = {
        "model": CASES[case.model][0],
        "threads": case.threads,
        "clients": case.clients,
        "steps": case.steps,
        "batch": BATCH,
    }
    np.savez(
        file,
        settings=json.dumps(settings),
        start=federation.initial_state().shared[0].numpy(),
        pixels=pixels[..., None] if pixels.ndim == 4 else pixels,
        labels=data.labels[order],
    )


def _order(seed: int, client: int, own: Any) -> Any:
    return generator(seed, Purpose.BATCHES, round=1, group=0, client=client).permutation(own)


def play(case: Case, folder: Path) -> list[dict[str, Any]]:
    """Time a case with processes that are started anew some times."""
    task = folder / "task.npz"
    write_task(case, task)
    return [{"case": case.name, "start": start} | row for start in range(STARTS) for row in _played(case, task)]


def _played(case: Case, task: Path) -> list[dict[str, Any]]:
    """Time each side's round, then each side's next one, and so on."""
    sides: dict[str, list[Side]] = {}
    for what in case.sides:
        own = {"two jobs": ("ours", 2, 1), "one job": ("ours", 1, case.threads)}.get(what, (what, 1, case.threads))
        start = partial(Side, own[0], case, own[2], task)
        sides[what] = [start(task.parent / f"{len(sides)}-{k}.npy") for k in range(own[1])]
    _check(sides, np.load(task)["start"])
    rows = []
    for turn in range(-1, case.turns):  # the first one warms up
        for k in range(len(sides)):  # each time another one begins: what a side leaves behind hits the others in turn
            what, own = list(sides.items())[(k + turn) % len(sides)]
            spent = _turn(own, 2 if "job" in what else 1)
            rows.append({"side": what, "turn": turn, "ms": spent})
    peaks = {what: _peak(own) for what, own in sides.items()}
    for own in sides.values():
        for side in own:
            side.stop()
    return [row | {"memory_mib": peaks[row["side"]]} for row in rows if row["turn"] >= 0]


def _turn(own: list[Side], rounds: int) -> float:
    """Milliseconds until some rounds are done, at once where there is a process for each of them."""
    time.sleep(PAUSE)
    started = time.perf_counter()
    for _ in range(rounds // len(own)):
        for side in own:
            side.go()
        spent = [side.milliseconds() for side in own]
    return spent[0] if rounds == 1 else 1000 * (time.perf_counter() - started)


def _peak(own: list[Side]) -> float:
    """The most memory that the processes of a side hold in a round that is not timed."""
    done, seen = Event(), [0.0]

    def watch() -> None:
        while not done.wait(0.01):
            seen.append(sum(memory_mib(side.process.pid) for side in own))

    watcher = Thread(target=watch)
    watcher.start()
    _turn(own, len(own))
    done.set()
    watcher.join()
    return max(seen)


def _check(sides: dict[str, list[Side]], start: Any) -> None:
    """Refuse peers whose parameters after one round without noise are others than ours."""
    for what in {"pfl", "flower"} & set(sides):
        ours, theirs = (sides[one][0].update - start for one in ("ours", what))
        error = np.linalg.norm(ours - theirs) / np.linalg.norm(ours)
        print(f"  {TITLES[what]}: after a round without noise within {error:.1e} of ours", flush=True)
        if not error <= TOLERANCE:
            sys.exit(f"bench: {what} does not compute the same round")


def table(rounds: pd.DataFrame) -> pd.DataFrame:
    """One row a case and side: median and quartiles of a round, of the ratio to the first side, and memory."""
    rows = []
    for name, of_case in rounds.groupby("case", sort=False):
        first = of_case[of_case.side == of_case.side.iloc[0]].set_index(["start", "turn"]).ms
        for side, own in of_case.groupby("side", sort=False):
            ratios = own.set_index(["start", "turn"]).ms / first
            low, median, high = np.percentile(ratios, [25, 50, 75])
            rows.append(
                {
                    "case": name,
                    "side": TITLES[str(side)],
                    "ms": own.ms.median(),
                    "fastest_ms": own.ms.min(),
                    "ratio": median,
                    "ratio_q1": low,
                    "ratio_q3": high,
                    "memory_mib": own.memory_mib.max(),
                }
            )
    return pd.DataFrame(rows)


def markdown(found: pd.DataFrame, machine: str) -> str:
    """The table for people."""
    shown = pd.DataFrame(
        {
            "case": found.case.where(~found.case.duplicated(), ""),
            "side": found.side,
            "ms": found.ms.map("{:.0f}".format) + found.fastest_ms.map(" ({:.0f})".format),
            "ratio": [f"{r.ratio:.2f} ({r.ratio_q1:.2f} to {r.ratio_q3:.2f})" for r in found.itertuples()],
            "MiB": found.memory_mib.map("{:.0f}".format),
        }
    )
    return f"{shown.to_markdown(index=False, disable_numparse=True)}\n\n{machine}\n"


def plot(found: pd.DataFrame, machine: str) -> Figure:
    """How many times as long as the first side each other takes, with quartiles."""
    others = found[~((found.ratio == 1) & (found.ratio_q1 == found.ratio_q3))].iloc[::-1].reset_index(drop=True)
    colours = figures.palette(list(TITLES.values()))
    drawn, axes = plt.subplots(figsize=(7, 0.5 + 0.32 * len(others)))
    errors = np.stack([others.ratio - others.ratio_q1, others.ratio_q3 - others.ratio])
    axes.barh(range(len(others)), others.ratio, xerr=errors, color=[colours[side] for side in others.side])
    axes.set_yticks(range(len(others)), [f"{r.case}: {r.side}" for r in others.itertuples()])
    for k, row in enumerate(others.itertuples()):
        axes.text(row.ratio_q3 + 0.08, k, f"{row.ratio:.2f}", va="center")
    axes.axvline(1, color="black", linewidth=1)
    axes.set_xlim(0, 1.1 * others.ratio_q3.max())
    axes.set_xlabel(f"time of a round, in rounds of fedpapers (last line: of two jobs)\n{machine}", fontsize=7)
    axes.grid(axis="y", visible=False)
    return drawn


def main() -> None:
    """Play all cases and write what came out."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="cases whose name has this in it")
    parser.add_argument("--turns", type=int, help="rounds of each side in each start, in place of the usual number")
    options = parser.parse_args()
    rows: list[dict[str, Any]] = []
    for case in TASKS:
        if options.only in case.name:
            print(case.name, flush=True)
            with tempfile.TemporaryDirectory() as folder:
                rows += play(Case(**vars(case) | ({"turns": options.turns} if options.turns else {})), Path(folder))
            print(markdown(table(pd.DataFrame([row for row in rows if row["case"] == case.name])), ""), flush=True)
    RESULTS.mkdir(parents=True, exist_ok=True)
    machine = described()
    rounds = pd.DataFrame(rows)
    found = table(rounds)
    write_text(RESULTS / "rounds.csv", rounds.to_csv(index=False))
    write_text(RESULTS / "compared.csv", found.to_csv(index=False))
    write_text(RESULTS / "compared.md", markdown(found, machine))
    figures.start()
    figures.save(plot(found, machine), str(RESULTS / "compared.png"), str(RESULTS / "compared.pdf"))
    print(markdown(found, machine), end="")


if __name__ == "__main__":
    main()
