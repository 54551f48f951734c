"""Events that dp-accounting does not have."""

from __future__ import annotations

import attr
from dp_accounting import DpEvent


@attr.s(frozen=True, slots=True, auto_attribs=True)
class KnownCohortDpEvent(DpEvent):  # type: ignore[misc]
    """Poisson sampling in which the adversary sees who was drawn.

    With probability `sampling_probability` a client's update is in the release of `event`, else it is in none, and
    the adversary knows which. dp-accounting's accountants refuse this event by name, as they should.
    """

    sampling_probability: float
    event: DpEvent
