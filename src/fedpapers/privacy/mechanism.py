"""The mechanism by which a group releases the sum of its cohort's updates.

One object draws the cohort, bounds each client's influence and adds the noise, and says which event this is for an
accountant: what is counted is what was done. Accountants are elsewhere; they see events only.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from fedpapers.parallel import at_once

if TYPE_CHECKING:
    from dp_accounting import DpEvent

Placement = Literal["central", "client"]

# Scaling a float32 vector rounds each value by up to 2^-24 of it; this much less keeps the norm at most C.
_ROUNDING = 1 - 2.0**-22

_BLOCK = 2**20  # values of noise with a stream of their own; a part of every result: never change


@dataclass(frozen=True)
class Mechanism:
    """Poisson sampling, clipping of each client's update, Gaussian noise.

    Attributes:
        sampling_rate: q in (0, 1]: each member of the group joins a round independently with this probability.
        clipping_norm: C > 0: the largest L2 norm of one client's update; infinite for none.
        noise_multiplier: σ ≥ 0: the noise has standard deviation σ·C in each coordinate; 0 for none.
        noise: Who adds it. `central`: the group's master, once to each sum, that of an empty cohort included.
            `client`: each sampled client, to its own clipped update.
        exposed: Whether members of the group also see sums without noise before the release.
    """

    sampling_rate: float
    clipping_norm: float = math.inf
    noise_multiplier: float = 0.0
    noise: Placement = "central"
    exposed: bool = False

    def __post_init__(self) -> None:
        if self.noise_multiplier > 0 and math.isinf(self.clipping_norm):
            raise ValueError("noise in proportion to an infinite clipping norm")

    def sample(self, members: int, draw: np.random.Generator) -> NDArray[np.bool_]:
        """Which of a group's members join a round, shape [members]; possibly none."""
        return draw.random(members) < self.sampling_rate

    def clip(self, update: Tensor) -> tuple[Tensor, float]:
        """One client's update [P] with a norm of at most C, and the norm that it had.

        An update that is not finite counts as zero, so that a client whose training diverges cannot break the bound.
        """
        norm = torch.linalg.vector_norm(update, dtype=torch.float64).item()
        if not math.isfinite(norm):
            return torch.zeros_like(update), norm
        if norm <= self.clipping_norm:
            return update, norm
        scale = self.clipping_norm / norm * _ROUNDING
        if scale < torch.finfo(update.dtype).tiny:  # such a factor has too few digits left: scale in float64
            return (update.double() * scale).to(update.dtype), norm
        return update * scale, norm

    def add_noise(self, total: Tensor, draws: list[np.random.Generator]) -> Tensor:
        """The release: a sum of clipped updates [P] with the noise of everyone who adds some.

        Args:
            total: The sum, changed in place.
            draws: A generator each; the master's alone if the noise is central, else one a sampled client.
        """
        scale = self.noise_multiplier * self.clipping_norm if self.noise_multiplier else 0.0
        for draw in draws if scale else ():
            _add_normal(total, scale, draw)
        return total

    def event(self) -> DpEvent:
        """What one release costs a member against the other members of its group, as dp-accounting's event.

        With noise from the clients the variance of the sum tells how many took part, so that the presence of a
        client is not hidden: the event is that of a known cohort, and an accountant's relation is zero-out.
        """
        import dp_accounting

        if self.noise_multiplier == 0 or self.exposed:
            return dp_accounting.NonPrivateDpEvent()
        gaussian = dp_accounting.GaussianDpEvent(self.noise_multiplier)
        if self.noise == "client":
            from fedpapers.privacy.events import KnownCohortDpEvent

            return KnownCohortDpEvent(self.sampling_rate, gaussian)
        return dp_accounting.PoissonSampledDpEvent(self.sampling_rate, gaussian)

    def describe(self) -> dict[str, Any]:
        """The mechanism as values that JSON can hold; `Mechanism.of` is it again."""
        finite = math.isfinite(self.clipping_norm)
        return asdict(self) | {"clipping_norm": self.clipping_norm if finite else "inf"}

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Mechanism:
        """The mechanism from plain values."""
        return cls(**{**values, "clipping_norm": float(values["clipping_norm"])})


def _add_normal(values: Tensor, scale: float, draw: np.random.Generator) -> None:
    """Add N(0, scale²) to each value, in place; long vectors in blocks with a stream each, so that all threads draw.

    The number of threads changes nothing.
    """
    blocks = torch.split(values, _BLOCK)
    draws = [draw] if len(blocks) == 1 else draw.spawn(len(blocks))

    def add(block: Tensor, draw: np.random.Generator) -> None:
        noise = draw.standard_normal(len(block), dtype=np.float32)
        block.add_(torch.from_numpy(noise).to(block.device), alpha=scale)

    at_once([partial(add, *pair) for pair in zip(blocks, draws, strict=True)])
