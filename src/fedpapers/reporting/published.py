"""What the papers' texts state, and nothing else: the one place for published numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

REAL = {"celeba": "CelebA", "femnist": "FEMNIST"}
"""Data sets of DPFedMTL (arXiv 2011.07179): key -> name."""

HEADLINE = {"celeba": 0.65, "femnist": 9.69}
"""σ at which the paper compares its methods on each data set (its figure 4 and conclusion)."""

LEAST_LATENCY = {10: 2, 25: 3}
"""MultFAug (arXiv 1907.06426): number of devices N -> most hops M at which latency is least."""

MOST_LABEL_PRIVACY = 4
"""MultFAug: M at which label privacy is largest under the tight deadline."""

CSR_SHARE = 1 / 5
"""MultFAug: of a compressed sample in an original one, in bits."""


@dataclass(frozen=True)
class Published:
    """One published accuracy, in percent.

    Attributes:
        accuracy: Mean over clients and runs.
        drop: Points lost by the noise, where stated.
        source: Where it stands.
    """

    accuracy: float
    drop: float | None
    source: str


ACCURACIES: Mapping[tuple[str, str, float], Published] = {
    ("celeba", "dpfedmtl", 0.65): Published(90.25, None, "arXiv 2011.07179, text on figure 3"),
    # Its reference, 76.79 + 4.45 = 81.24 %, is not named there, so that it stands in no cell of another method.
    ("femnist", "dpfedmtl", 9.69): Published(76.79, 4.45, "arXiv 2011.07179, text on figure 3"),
}
"""(data set, algorithm, σ) -> what the text that we have states; the tables themselves are not in it."""


@dataclass(frozen=True)
class Count:
    """What a benchmark says of a data set; `deviation` is the standard deviation of samples per client."""

    data: str
    clients: int
    samples: int
    mean: float
    deviation: float
    classes: int


LEAF = (
    Count("CelebA", 9343, 200_288, 21.44, 7.63, 2),
    Count("FEMNIST, full", 3550, 805_263, 226.83, 88.94, 62),
)
"""LEAF (arXiv 1812.01097), table of its data sets: what DPFedMTL draws its clients from."""


def of_paper(data: str) -> str | None:
    """The key of the paper's data set that data are, or are like, by what they are called; None if none of them.

    Args:
        data: What a prepared data set calls itself: `FEMNIST (805,263 characters of 3,550 writers)`,
            `CelebA-like (generated)`.
    """
    return next((key for key, name in REAL.items() if data.startswith((f"{name} (", f"{name}-like ("))), None)


def accuracy(data: str, algorithm: str, sigma: float | None) -> Published | None:
    """The published accuracy of a method on the real data that data are, or are like; None if unknown."""
    key = of_paper(data)
    return ACCURACIES.get((key, algorithm, sigma)) if key and sigma is not None else None
