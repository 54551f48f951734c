"""How good generated digits are: improved precision and recall (Kynkäänniemi et al., arXiv 1904.06991), and F1.

The paper says in words that precision grows with the likeness of generated to true images and recall with the variety
that is generated. That it is this measure, per class in the features of a network trained on real digits, is ours.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.neighbors import NearestNeighbors

from fedpapers.augment.seeds import Labels

NEIGHBOURS = 3

Features = NDArray[np.floating]


class Quality(NamedTuple):
    """Precision and recall, means over classes, and their harmonic mean."""

    precision: float
    recall: float
    f1: float


def quality(real: Features, real_labels: Labels, made: Features, made_labels: Labels) -> Quality:
    """Precision, recall and F1 of generated images.

    Args:
        real: Features of real images, shape [n, d]; more than 3 of each class.
        real_labels: Shape [n].
        made: Features of generated images, shape [m, d]; more than 3 of each class that is generated at all.
        made_labels: Shape [m]. A class that is not generated has recall 0 and does not count in the precision.
    """
    classes = np.unique(real_labels)
    found = [_of_class(real[real_labels == one], made[made_labels == one]) for one in classes if one in made_labels]
    precision = sum(one[0] for one in found) / len(found) if found else 0.0
    recall = sum(one[1] for one in found) / len(classes)
    return Quality(precision, recall, harmonic_mean(precision, recall))


def harmonic_mean(precision: float, recall: float) -> float:
    """F1; 0 where both are 0."""
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0


def _of_class(real: Features, made: Features) -> tuple[float, float]:
    return inside(made, real), inside(real, made)


def inside(points: Features, manifold: Features) -> float:
    """The share of points that lie in a ball around a point of `manifold` up to its third nearest neighbour there."""
    balls = NearestNeighbors(n_neighbors=NEIGHBOURS + 1, algorithm="brute").fit(manifold)
    radii = balls.kneighbors(manifold)[0][:, -1]  # the nearest is the point itself
    distances, places = balls.kneighbors(points, n_neighbors=len(manifold))
    return float((distances <= radii[places]).any(axis=1).mean())
