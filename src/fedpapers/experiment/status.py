"""Where each run stands: what is finished, what runs now, how long it will take."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from fedpapers.experiment.plan import Plan
from fedpapers.experiment.progress import News
from fedpapers.experiment.run_files import RESULTS
from fedpapers.files import parse_json

_SILENCE = 120.0  # seconds without news after which a job counts as stopped

COLUMNS = ("run", "state", "round", "rounds", "accuracy", "epsilon", "seconds_per_round", "seconds_left")


def status(plan: Plan) -> list[dict[str, Any]]:
    """One row a run of the papers, in their order: see COLUMNS; None where nothing is known yet. Searches are left out.

    ε is by RDP at `progress.DELTA`, of the worker that has spent most. The time left is for all rounds to come, at
    the pace of the run's last segment.
    """
    shown = {planned.id: planned for paper in plan.config.papers.with_runs for planned in plan.tables[paper]}
    return [_row(planned.id, planned.rounds) for planned in shown.values()]


def other_runs(plan: Plan) -> int:
    """How many folders of runs there are that this configuration does not plan."""
    return sum(folder.is_dir() and folder.name not in plan.runs for folder in (RESULTS / "runs").glob("[!.]*"))


def format_status(rows: list[dict[str, Any]], configuration: str, others: int) -> str:
    """A line that sums up, a table for people, and how many `others` a configuration has nothing to do with."""
    done = sum(row["state"] == "finished" for row in rows)
    running = [row for row in rows if row["state"] == "running"]
    lines = [f"{configuration}: {done} of {len(rows)} runs finished, {len(running)} running"]
    shown = [row for row in rows if row["state"] != "waiting"]
    width = max((len(row["run"]) for row in shown), default=3)
    if shown:
        lines.append(f"{'run':{width}}  {'state':8}  {'round':>11}  accuracy  ε (RDP, δ 1e-05)  s/round  s left")
    lines += [
        f"{row['run']:{width}}  {row['state']:8}  {row['round']:>5}/{row['rounds']:<5}  {_text(row['accuracy'], 8, 4)}"
        f"  {_text(row['epsilon'], 16, 3)}  {_text(row['seconds_per_round'], 7, 3)}  {_text(row['seconds_left'], 6, 0)}"
        for row in shown
    ]
    if others:
        told = f"{RESULTS / 'runs'} also holds runs of other configurations: {others}"
        lines.append(f"{told}; fedpapers status FILE shows those of FILE")
    return "\n".join(lines)


def _row(run: str, rounds: int) -> dict[str, Any]:
    progress = _progress(RESULTS / "runs" / run / "progress.json")
    kept = _last_kept(RESULTS / "runs" / run)
    reached = max(kept, progress.get("round", 0))
    fresh = time.time() - progress.get("updated", 0) < _SILENCE
    if kept >= rounds:
        state = "finished"
    elif fresh and progress.get("round", 0) < progress.get("segment_end", 0):
        state = "running"
    else:
        state = "stopped" if reached else "waiting"
    pace = progress.get("seconds_per_round")
    left = None if pace is None else round(pace * max(0, rounds - reached), 1)
    values = (run, state, reached, rounds, progress.get("accuracy"), progress.get("epsilon"), pace, left)
    return dict(zip(COLUMNS, values, strict=True))


def _progress(file: Path) -> dict[str, Any]:
    try:
        return News.model_validate_json(file.read_bytes()).model_dump()
    except (OSError, ValueError):
        return {}


def _last_kept(folder: Path) -> int:
    """The last round whose state is complete: its record, written last, is there and can be read."""
    rounds = [int(file.stem.split("-")[1]) for file in folder.glob("round-[0-9]*.json") if _is_record(file)]
    return max(rounds, default=0)


def _is_record(file: Path) -> bool:
    try:
        return "seal" in parse_json(file.read_bytes())
    except (OSError, ValueError, TypeError):
        return False


def _text(value: float | str | None, width: int, digits: int) -> str:
    shown = "–" if value is None else value if isinstance(value, str) else f"{value:.{digits}f}"
    return f"{shown:>{width}}"
