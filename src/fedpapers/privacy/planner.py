"""The smallest noise with which nobody leaks more to anybody than was agreed.

The answer is by the best proven bound (`percolation` of `fedpapers leakage`), which falls in every group's noise
multiplier. First the smallest common one that meets all targets is found, then each group's is lowered in turn as far
as the targets allow. The result is a local minimum: no group's can be lowered alone, but another balance between the
groups may exist. Values have three digits, rounded up.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np

from fedpapers.errors import InputError
from fedpapers.groups import Groups
from fedpapers.privacy.group_graph import GroupGraph
from fedpapers.privacy.group_mechanisms import Training
from fedpapers.privacy.leakage import Leakage, Source
from fedpapers.privacy.leakage_report import heading, leakage_report
from fedpapers.privacy.quadrature import Array

SMALLEST, LARGEST = 0.01, 1e6
"""Noise multipliers that are tried, apart from none at all."""

_STEPS_A_DECADE = 900  # 1.00, 1.01, …, 9.99


@dataclass(frozen=True, eq=False)
class Planner:
    """What is given and what is to be met.

    Attributes:
        structure: Who is in which group.
        training: The run.
        rate: Each group's sampling rate in (0, 1], in the order of the groups.
        fixed: Each group's noise multiplier, where it is given; None where it is sought.
        targets: The largest ε from each worker (row) to each other (column), inf for none, shape [N, N].
        delta: δ of all ε.
    """

    structure: Groups
    training: Training
    rate: Sequence[float]
    fixed: Sequence[float | None]
    targets: Array
    delta: float

    def __post_init__(self) -> None:
        if all(value is not None for value in self.fixed):
            raise InputError("plan: every group sets its own noise_multiplier; leave out those that are sought")
        self._leakage([value or 0.0 for value in self.fixed])  # checks the values' ranges

    def noise(self) -> list[float]:
        """Each group's noise multiplier, in the order of the groups.

        Raises:
            InputError: A target cannot be met; the message says which, and why.
        """
        free = [m for m, value in enumerate(self.fixed) if value is None]
        self._check_attainable()
        common = self._smallest(self._concerned, self._with, LARGEST)
        noise = self._with(common)
        for m in free:
            inside = set(self._graph.class_of[self.structure.membership[m]].tolist())
            outside = [c for c in self._concerned if c not in inside]
            sources = [c for c in self._concerned if c in inside] + outside
            noise[m] = self._smallest(sources, partial(_replaced, noise, m), common)
        return noise

    def _check_attainable(self) -> None:
        """Refuse targets that even the largest noise misses."""
        leakage = self._leakage(self._with(LARGEST))
        reached = np.zeros_like(self.targets)
        for c in self._concerned:
            reached[self._graph.class_of == c] = self._row(leakage, c)
        missed = np.argwhere(reached > self.targets)
        if not len(missed):
            return
        source, observer = max(missed.tolist(), key=lambda pair: reached[tuple(pair)])
        others = f" (and {len(missed) - 1} more pairs)" if len(missed) > 1 else ""
        workers = self.structure.workers
        raise InputError(
            f"plan: ε ≤ {self.targets[source, observer]:g} from worker '{workers[source]}' to worker "
            f"'{workers[observer]}'{others} cannot be met: {self._why(source, observer, reached[source, observer])}"
        )

    def _why(self, source: int, observer: int, reached: float) -> str:
        shared = self.structure.membership[:, source] & self.structure.membership[:, observer]
        if self.training.unnoised_inside and shared.any():
            name = self.structure.names[int(np.flatnonzero(shared)[0])]
            return (
                f"both are in group '{name}', where {self.training.algorithm} with S ≥ 2 shows the un-noised models of "
                f"each interval (ε = inf); use dp-ogl, dp-ogl-local or S = 1, or leave the pair without a target"
            )
        fixed = [name for name, value in zip(self.structure.names, self.fixed, strict=True) if value is not None]
        given = f" and the noise that GROUPS.yaml sets for {', '.join(fixed)}" if fixed else ""
        return f"ε = {reached:.4g} even with noise multipliers of {LARGEST:g}{given}"

    def _smallest(self, sources: Sequence[int], noise_at: Callable[[float], list[float]], above: float) -> float:
        """The smallest σ, at most `above`, with which the noise multipliers meet the targets; they do at `above`.

        Sources are independent: each class of them raises what those before it need. The ones that need most should
        come first, as a class that is content costs one look only.
        """
        step, top = 0, _step_of(above)
        for c in sources:
            if step == top:
                break
            step = self._raised(c, noise_at, step, top)
        return _sigma(step)

    def _raised(self, of_class: int, noise_at: Callable[[float], list[float]], low: int, high: int) -> int:
        """The first step from `low` on that meets the targets of one class of sources; `high` does."""
        if self._met(of_class, noise_at(_sigma(low))):
            return low
        if not self._met(of_class, noise_at(_sigma(high - 1))):  # often it is `high` itself
            return high
        high -= 1
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if self._met(of_class, noise_at(_sigma(middle))) else (middle, high)
        return high

    def _met(self, of_class: int, noise: Sequence[float]) -> bool:
        return bool(np.all(self._row(self._leakage(noise), of_class) <= self._strictest[of_class]))

    @cached_property
    def _graph(self) -> GroupGraph:
        return GroupGraph.of(self.structure)

    @cached_property
    def _strictest(self) -> Array:
        """The smallest target from any worker of a class to each worker, shape [C, N]."""
        class_of = self._graph.class_of
        return np.stack([self.targets[class_of == c].min(axis=0) for c in range(int(class_of.max()) + 1)])

    @cached_property
    def _concerned(self) -> list[int]:
        """Classes of sources that have a target."""
        return [int(c) for c in np.flatnonzero(np.isfinite(self._strictest).any(axis=1))]

    def _row(self, leakage: Leakage, of_class: int) -> Array:
        """ε from a worker of a class to each other worker, shape [N]."""
        return np.asarray(Source(leakage, of_class).bounds()["percolation"][self._graph.class_of])

    def _with(self, sigma: float) -> list[float]:
        return [sigma if value is None else value for value in self.fixed]

    def _leakage(self, noise: Sequence[float]) -> Leakage:
        return Leakage(self.structure, noise, self.rate, self.training, self.delta)


def plan_report(planner: Planner) -> dict[str, Any]:
    """The plan, and the leakage that it leads to, ready for JSON.

    Returns:
        The report of `leakage_report`; each group's `noise_multiplier` and whether GROUPS.yaml `set` it; `targets` as a
        matrix like `epsilon`, None where there is no target; and `equal`, whether all that were sought are equal.

    Raises:
        InputError: A target cannot be met.
    """
    noise = planner.noise()
    report = leakage_report(planner.structure, planner.training, noise, planner.rate, planner.delta)
    reached = np.array([[0.0 if value is None else float(value) for value in row] for row in report["epsilon"]])
    if not np.all(reached <= planner.targets):
        raise AssertionError("the planned noise does not meet the targets")
    groups = {
        name: {"noise_multiplier": sigma, "sampling_rate": rate, "set": given is not None}
        for name, sigma, rate, given in zip(planner.structure.names, noise, planner.rate, planner.fixed, strict=True)
    }
    sought = {group["noise_multiplier"] for group in groups.values() if not group["set"]}
    targets = [[None if value == np.inf else value for value in row] for row in planner.targets.tolist()]
    return report | {"noise": groups, "equal": len(sought) == 1, "targets": targets}


def format_plan(report: dict[str, Any]) -> str:
    """A plan for people, without a line break at its end."""
    width = max(len(name) for name in report["noise"])
    lines = [
        *heading(report),
        "Smallest noise multipliers that meet every target (three digits; none can be lowered alone):",
        *(
            f"  {name:<{width}}  σ = {group['noise_multiplier']:g}  (q = {group['sampling_rate']:g}"
            f"{', as GROUPS.yaml sets it' if group['set'] else ''})"
            for name, group in report["noise"].items()
        ),
        "",
        _closest(report),
    ]
    if any(group["noise_multiplier"] == SMALLEST and not group["set"] for group in report["noise"].values()):
        lines.append(f"σ = {SMALLEST:g} is the smallest noise that is tried: less than it may do.")
    if any(group["noise_multiplier"] == 0 for group in report["noise"].values()):
        lines.append("σ = 0: no target needs noise there; what has no target may leak without limit.")
    return "\n".join(lines)


def _closest(report: dict[str, Any]) -> str:
    """The pair whose ε is nearest to its target."""
    workers = report["workers"]
    room = [
        (target - float(epsilon), workers[i], workers[j], epsilon, target)
        for i, (row, wanted) in enumerate(zip(report["epsilon"], report["targets"], strict=True))
        for j, (epsilon, target) in enumerate(zip(row, wanted, strict=True))
        if target is not None
    ]
    if not room:
        return "No pair has a target."
    _, source, observer, epsilon, target = min(room)
    return f"Closest to its target: from worker '{source}' to worker '{observer}' ε = {epsilon:.4g} of {target:g}."


def _replaced(noise: Sequence[float], place: int, sigma: float) -> list[float]:
    return [*noise[:place], sigma, *noise[place + 1 :]]


def _sigma(step: int) -> float:
    """0, then the noise multipliers of three digits from `SMALLEST` on, in order."""
    if step == 0:
        return 0.0
    decade, digits = divmod(step - 1, _STEPS_A_DECADE)
    return float(f"{100 + digits}e{decade - 4}")


def _step_of(sigma: float) -> int:
    """The step of a noise multiplier that `_sigma` gives."""
    if sigma == 0:
        return 0
    digits, exponent = f"{sigma:.2e}".split("e")
    return (int(exponent) + 2) * _STEPS_A_DECADE + int(digits.replace(".", "")) - 99
