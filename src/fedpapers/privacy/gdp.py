"""Gaussian differential privacy: ε of a Gaussian trade-off function, and the central limit of DPFedMTL."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
from scipy import special

from fedpapers.privacy.releases import Release


def gaussian_epsilon(mu: float, delta: float) -> float:
    """ε of the Gaussian trade-off function G_μ at δ: δ(ε) = Φ(−ε/μ + μ/2) − e^ε Φ(−ε/μ − μ/2).

    With a = −ε/μ + μ/2 and Mills' ratio M(x) = Φ(−x)/φ(x), this is φ(a) (M(−a) − M(μ − a)): nothing overflows.
    """
    from scipy import optimize  # not above: it would add a tenth to the start of each training job

    def log_excess(a: float) -> float:
        gap = special.erfcx(-a / math.sqrt(2)) - special.erfcx((mu - a) / math.sqrt(2))
        return float(np.log(gap / 2) - a * a / 2 - math.log(delta))

    highest = min(mu / 2, 30.0)  # μ/2 means ε = 0; at 30, δ(ε) is 1
    if log_excess(highest) <= 0:
        return 0.0
    a = float(optimize.bisect(log_excess, special.ndtri(delta) - 1, highest, xtol=1e-14, maxiter=200))
    return max(0.0, mu * (mu / 2 - a))


def limit_mu(ledger: Iterable[Release]) -> float:
    """μ of the central limit: μ² = Σ q² T (exp(1/σ²) − 1), for σ > 0; infinite where that overflows."""
    parts = []
    for release in ledger:
        inverse = 1 / release.noise_multiplier
        growth = np.sqrt(np.expm1(inverse * inverse))
        parts.append(release.sampling_rate * math.sqrt(release.times) * growth)
    return math.hypot(*parts)
