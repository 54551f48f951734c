"""What a training job tells people while it runs: a line a round in its log, and `progress.json` for `status`."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Literal

import typer
from pydantic import BaseModel

from fedpapers.files import write_json
from fedpapers.privacy.accounting import rdp_epsilon
from fedpapers.privacy.ledger import Spent
from fedpapers.privacy.releases import Release

DELTA = 1e-5  # of the ε in logs and status; the tables have the configuration's own
_SECONDS_BETWEEN_FILES = 2.0


class News(BaseModel):
    """What `progress.json` holds.

    Attributes:
        round: The last round that was done.
        segment_end: The round at which the job ends.
        accuracy: Of the last evaluation; None before the first.
        epsilon: As in the log, "inf" for no guarantee.
        seconds_per_round: Mean of this job.
        updated: When it was written, in seconds since 1970.
    """

    round: int
    segment_end: int
    accuracy: float | None
    epsilon: float | Literal["inf"]
    seconds_per_round: float
    updated: float


class Progress:
    """Follows one segment; the clock and ε are for people and go into no result."""

    def __init__(self, folder: Path, first: int, last: int) -> None:
        self._file = folder / "progress.json"
        self._first, self._last = first, last
        self._started = time.monotonic()
        self._written = -math.inf
        self._accuracy: float | None = None

    def on_round(self, round: int, accuracy: float | None, spent: list[Spent]) -> None:
        """Print a line for each round, and keep the file fresh."""
        now = time.monotonic()
        each = (now - self._started) / (round - self._first)
        self._accuracy = accuracy if accuracy is not None else self._accuracy
        epsilon = worst_epsilon(spent, DELTA)
        by_clients = any(mechanism.noise == "client" for releases in spent for mechanism, _ in releases)
        shown = _shown(epsilon) + (" (zero-out)" if by_clients else "")
        tested = "      " if accuracy is None else f"{accuracy:.4f}"
        left = each * (self._last - round)
        typer.echo(f"round {round}/{self._last}  accuracy {tested}  ε {shown}  {each:.3f} s/round  {left:.0f} s left")
        if round < self._last and now - self._written < _SECONDS_BETWEEN_FILES:
            return
        self._written = now
        news = News(
            round=round,
            segment_end=self._last,
            accuracy=self._accuracy,
            epsilon="inf" if math.isinf(epsilon) else epsilon,
            seconds_per_round=float(f"{each:.4f}"),
            updated=time.time(),
        )
        write_json(self._file, news.model_dump())


def worst_epsilon(spent: Iterable[Spent], delta: float) -> float:
    """ε, by RDP, of the worker that has spent most, as in the tables.

    Args:
        spent: For each worker what has been released of its data.
        delta: δ.
    """
    return max((_epsilon(releases, delta) for releases in set(spent)), default=0.0)


def _epsilon(spent: Spent, delta: float) -> float:
    """ε without dp-accounting's events, whose import would double the start of a job."""
    releases = []
    for mechanism, times in spent:
        sigma = 0.0 if mechanism.exposed else mechanism.noise_multiplier
        releases.append(Release(mechanism.sampling_rate, sigma, times, mechanism.noise == "client"))
    return rdp_epsilon(releases, delta).value


def _shown(value: float) -> str:
    return "inf (not private)" if math.isinf(value) else f"{value:.3f}"
