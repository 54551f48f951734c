"""How a sample is made smaller: pixels set to 0, and a compressed sparse row (CSR) form."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedpapers.relay.layouts import IntArray

ROWS = COLUMNS = 28
PIXELS = ROWS * COLUMNS
VALUE_BITS = 8
DENSE_BITS = PIXELS * VALUE_BITS
MEAN_NONZEROS = 151.12
"""Pixels of an MNIST test image that are not 0, in the mean over all 10,000."""


def zeroed_pixels(rho: float) -> int:
    """⌊784 ρ⌋: how many pixels of an image are set to 0 at the compression rate ρ in [0, 1) (the paper)."""
    return math.floor(PIXELS * rho)


def sparsify(images: NDArray[np.uint8], rho: float, draw: np.random.Generator) -> NDArray[np.uint8]:
    """Set ⌊784 ρ⌋ uniformly drawn pixels of each image to 0, whatever their value (the paper's Q_ρ).

    Args:
        images: Shape [n, 28, 28].
        rho: In [0, 1).
        draw: The pixels are drawn without replacement, and independently for each image (ours).
    """
    flat = images.reshape(len(images), PIXELS).copy()
    count = zeroed_pixels(rho)
    chosen = np.argpartition(draw.random(flat.shape), count, axis=1)[:, :count]
    np.put_along_axis(flat, chosen, 0, axis=1)
    return flat.reshape(images.shape)


def sparsified_nonzeros(nonzeros: IntArray, rho: float, draw: np.random.Generator) -> IntArray:
    """The number of pixels that are not 0 after `sparsify`, drawn without the image: a hypergeometric number is lost.

    Args:
        nonzeros: Pixels of each image that are not 0, any shape.
        rho: In [0, 1).
        draw: One draw an image.
    """
    return nonzeros - draw.hypergeometric(nonzeros, PIXELS - nonzeros, zeroed_pixels(rho))


def csr_bits(nonzeros: Any, rows: int = ROWS, columns: int = COLUMNS) -> Any:
    """Bits of a CSR matrix: 8 a value, and the tightest fixed widths for column indices and row pointers (ours).

    nnz · (8 + ⌈log₂ columns⌉) + (rows + 1) · ⌈log₂(rows · columns + 1)⌉; for an image 13 nnz + 290.

    Args:
        nonzeros: A number, or an array of any shape.
        rows: Rows of the matrix.
        columns: Columns of the matrix.
    """
    column_bits, pointer_bits = (columns - 1).bit_length(), (rows * columns).bit_length()
    return nonzeros * (VALUE_BITS + column_bits) + (rows + 1) * pointer_bits


def value_bits(nonzeros: Any) -> Any:
    """Bits of the values alone. They cannot be decoded; only to compare with the paper's "1/5 of the original"."""
    return nonzeros * VALUE_BITS


def mean_sample_bits(rho: float) -> float:
    """CSR bits of an MNIST image with the mean number of pixels that are not 0, after sparsification."""
    return float(csr_bits(MEAN_NONZEROS * (1 - zeroed_pixels(rho) / PIXELS)))
