"""What is accounted for: releases with Gaussian noise, read from `dp_accounting` events in any nesting."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from fedpapers.errors import InputError

if TYPE_CHECKING:
    from dp_accounting import DpEvent


class Release(NamedTuple):
    """`times` releases with the same sampling rate (1 = everybody takes part) and noise multiplier."""

    sampling_rate: float
    noise_multiplier: float
    times: int
    known_cohort: bool = False


def releases(event: DpEvent) -> tuple[Release, ...]:
    """The releases of an event, equal ones counted together, in a fixed order.

    Raises:
        InputError: A sampling rate outside (0, 1] or a noise multiplier that is negative or not finite.
        dp_accounting.UnsupportedEventError: An event other than Gaussian ones, sampled or not, and their compositions.
    """
    counts: Counter[Release] = Counter()
    for release in _flat(event, 1):
        check_sampling_rate(release.sampling_rate)
        check_noise_multiplier(release.noise_multiplier)
        counts[release._replace(times=1)] += release.times
    return tuple(kind._replace(times=count) for kind, count in sorted(counts.items()) if count > 0)


def sampled_gaussian(noise_multiplier: float, sampling_rate: float, steps: int) -> DpEvent:
    """The event of `steps` Gaussian releases to Poisson-sampled cohorts."""
    import dp_accounting

    gaussian = dp_accounting.GaussianDpEvent(noise_multiplier)
    return dp_accounting.SelfComposedDpEvent(dp_accounting.PoissonSampledDpEvent(sampling_rate, gaussian), steps)


def _flat(event: DpEvent, count: int) -> Iterator[Release]:
    import dp_accounting

    from fedpapers.privacy.events import KnownCohortDpEvent

    match event:
        case dp_accounting.NoOpDpEvent():
            return
        case dp_accounting.NonPrivateDpEvent():
            yield Release(1.0, 0.0, count)
        case dp_accounting.GaussianDpEvent():
            yield Release(1.0, float(event.noise_multiplier), count)
        case dp_accounting.PoissonSampledDpEvent(event=dp_accounting.GaussianDpEvent()):
            yield Release(float(event.sampling_probability), float(event.event.noise_multiplier), count)
        case KnownCohortDpEvent(event=dp_accounting.GaussianDpEvent()):
            yield Release(float(event.sampling_probability), float(event.event.noise_multiplier), count, True)
        case dp_accounting.SelfComposedDpEvent():
            yield from _flat(event.event, count * event.count)
        case dp_accounting.ComposedDpEvent():
            for part in event.events:
                yield from _flat(part, count)
        case _:
            raise dp_accounting.UnsupportedEventError(f"no accountant here knows {event}")


def check_noise_multiplier(sigma: float) -> None:
    """Refuse a σ that is negative or not finite."""
    if not 0 <= sigma < math.inf:
        raise InputError(f"--noise-multiplier {sigma:g}: expected a finite number of at least 0")


def check_sampling_rate(q: float) -> None:
    """Refuse a q outside (0, 1]."""
    if not 0 < q <= 1:
        raise InputError(f"--sampling-rate {q:g}: expected a number above 0 and at most 1")
