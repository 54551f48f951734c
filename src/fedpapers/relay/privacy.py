"""How well labels and samples are hidden, by the paper's two measures; neither is differential privacy."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.spatial.distance import pdist

from fedpapers.relay.layouts import FloatArray

if TYPE_CHECKING:
    from sklearn.decomposition import PCA

LEAST_SAMPLES = 3


def label_privacy(labels: ArrayLike, dummies: ArrayLike) -> FloatArray:
    """1 − 1 / max(n, 1 + l): the chance that a guess of the reference device's target label is wrong.

    The paper: 1 − |target labels| / |labels seen|, and the bound 1 − 1 / (1 + l) of a direct transmission, which stays
    a floor here (ours) when fewer labels arrive. Without the floor, 1 − 1 / n or 0, it is that of l = 0.

    Args:
        labels: n, the distinct labels that arrived from the device's route.
        dummies: l, the device's number of dummy labels; broadcast against `labels`.
    """
    return np.asarray(1 - 1 / np.maximum(np.asarray(labels), 1 + np.asarray(dummies)))


def own_map_privacy(samples: NDArray[Any]) -> float:
    """The inverse of the mean distance of samples on the two-dimensional map of the set itself.

    The map is that of classical multidimensional scaling of the Euclidean distances (the paper); the mean over all
    pairs and its inverse are ours. A map of its own spreads a small set more, so that sets of different
    sizes do not compare.

    Args:
        samples: Pixels divided by 255, shape [n ≥ 3, …].

    Returns:
        The privacy; infinite where all samples are equal.
    """
    from sklearn.manifold import ClassicalMDS

    points = _points(samples)
    return _inverse_mean_distance(ClassicalMDS(n_components=2).fit_transform(points))


@dataclass(frozen=True, eq=False)
class CommonMap:
    """One map for many sets of samples (ours): privacy on it compares sets of different sizes.

    Attributes:
        axes: The two principal axes of the samples that made the map. For these samples they give the map of classical
            multidimensional scaling; others are added by projection.
    """

    axes: PCA

    @classmethod
    def of(cls, samples: NDArray[Any]) -> CommonMap:
        """The map of fixed samples, pixels divided by 255, shape [n ≥ 3, …]; sparsified like those to be shown."""
        from sklearn.decomposition import PCA

        return cls(PCA(n_components=2, svd_solver="full").fit(_points(samples)))

    def privacy(self, samples: NDArray[Any]) -> float:
        """As `own_map_privacy`, on this map."""
        return _inverse_mean_distance(self.axes.transform(_points(samples)))


def _points(samples: NDArray[Any]) -> FloatArray:
    if len(samples) < LEAST_SAMPLES:
        raise ValueError(f"a map of {len(samples)} samples; expected at least {LEAST_SAMPLES}")
    return samples.reshape(len(samples), -1).astype(np.float64)


def _inverse_mean_distance(points: FloatArray) -> float:
    mean = float(pdist(points).mean())
    return 1 / mean if mean > 0 else math.inf
