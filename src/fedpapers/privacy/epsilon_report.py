"""What `fedpapers epsilon` prints: ε of the Poisson-subsampled Gaussian mechanism, by each accountant."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable
from typing import Any

from fedpapers.errors import InputError
from fedpapers.privacy.accounting import ADVERSARY, RELATION, UNIT, Epsilon, all_epsilons, check_accountant, check_delta
from fedpapers.privacy.releases import check_noise_multiplier, check_sampling_rate, sampled_gaussian

_MOST_STEPS = 2**53


def epsilon_report(
    noise_multiplier: float, sampling_rate: float, steps: int, delta: float, accountants: str | Iterable[str]
) -> dict[str, Any]:
    """What `fedpapers epsilon --json` prints: JSON-safe, infinity is the string "inf".

    Args:
        noise_multiplier: σ ≥ 0, in units of the sensitivity.
        sampling_rate: q in (0, 1].
        steps: T ≥ 0, the number of releases.
        delta: δ in (0, 1).
        accountants: Names, or one text with commas between them.

    Raises:
        InputError: A value is out of its range, or an accountant is unknown.
    """
    names = accountants.split(",") if isinstance(accountants, str) else accountants
    names = list(dict.fromkeys(name.strip() for name in names))
    for name in names:
        check_accountant(name)
    check_noise_multiplier(noise_multiplier)
    check_sampling_rate(sampling_rate)
    _check_steps(steps)
    check_delta(delta)
    answers = all_epsilons(sampled_gaussian(noise_multiplier, sampling_rate, steps), delta, names)
    return {
        "noise_multiplier": noise_multiplier,
        "sampling_rate": sampling_rate,
        "steps": steps,
        "delta": delta,
        "unit": UNIT,
        "relation": RELATION,
        "adversary": ADVERSARY,
        "accountants": {name: _answer_json(name, answer) for name, answer in answers.items()},
        "warnings": _warnings(answers),
    }


def format_report(report: dict[str, Any]) -> str:
    """The text of an `epsilon_report` for people, without a line break at its end."""
    lines = [
        f"σ = {report['noise_multiplier']:g}, q = {report['sampling_rate']:g}, T = {report['steps']}, "
        f"δ = {report['delta']:g}",
        f"unit: one {report['unit']} with all its data; neighbouring relation: {report['relation']}",
        f"adversary: {report['adversary']}",
    ]
    private = report["noise_multiplier"] > 0 or report["steps"] == 0
    lines += [_answer_text(name, answer, private) for name, answer in report["accountants"].items()]
    lines += [f"warning: {warning}" for warning in report["warnings"]]
    return "\n".join(lines)


def _answer_json(name: str, answer: Epsilon) -> dict[str, Any]:
    shown: dict[str, Any] = {"epsilon": _json_number(answer.value)}
    if name == "rdp" or answer.order is not None:
        shown["order"] = answer.order
    if answer.mu is not None:
        shown["mu"] = _json_number(answer.mu)
    if answer.approximation:
        shown["approximation"] = True
    if answer.note is not None:
        shown["note"] = answer.note
    return shown


def _json_number(value: float) -> float | str:
    return value if math.isfinite(value) else "inf"


def _answer_text(name: str, answer: dict[str, Any], private: bool) -> str:
    value = answer["epsilon"]
    shown = f"{value:.5g}" if value != "inf" else "inf" if private else "inf (not private)"
    details = []
    if answer.get("order") is not None:
        details.append(f"order {answer['order']:.8g}")
    if "mu" in answer:
        mu = answer["mu"]
        details.append(f"μ = {mu if mu == 'inf' else format(mu, '.5g')}")
    if answer.get("approximation"):
        details.append("approximation")
    if "note" in answer and private:
        details.append(answer["note"])
    return f"{name}  ε = {shown}" + (f"  ({'; '.join(details)})" if details else "")


def _warnings(answers: dict[str, Epsilon]) -> list[str]:
    """What a reader must know before using these ε."""
    if "gdp" not in answers:
        return []
    warning = "gdp is a central limit: an approximation that can understate ε"
    limit = answers["gdp"].value
    bounds = {name: answer.value for name, answer in answers.items() if name != "gdp" and answer.value < math.inf}
    best = min(bounds, key=lambda name: bounds[name], default=None)
    if best and limit < bounds[best]:
        warning += f"; here it says {limit:.4g} where the {best} bound is {bounds[best]:.4g}"
    return [warning]


def _check_steps(steps: int) -> None:
    try:
        whole = -1 if isinstance(steps, bool) else operator.index(steps)
    except TypeError:
        whole = -1
    if not 0 <= whole <= _MOST_STEPS:
        raise InputError(f"--steps {steps}: expected an integer from 0 to {_MOST_STEPS}")
