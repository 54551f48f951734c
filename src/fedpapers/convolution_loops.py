"""The loops of `convolution`, compiled by Numba at their first call and kept for the next process.

Images, outputs and gradients are [batch, height, width, channels], C-contiguous, all float32 or all float64. Of the
four pixels of a square, numbered by rows, `places` has the one that is largest, of several the first; at an odd edge a
square has two pixels or one. NaN counts as largest, as in PyTorch.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.floating[Any]]
Places = NDArray[np.uint8]
Loop = TypeVar("Loop", bound=Callable[..., None])


def compiled(loop: Loop) -> Loop:
    """The loop in machine code, which runs without Python's lock; products and sums may be fused."""

    def machine_code(kept: bool) -> Loop:
        make = numba.njit(cache=kept, nogil=True, error_model="numpy", fastmath={"contract", "nsz"})
        return cast(Loop, make(loop))

    try:
        return machine_code(kept=True)
    except RuntimeError:  # it can be kept neither beside this file nor in the user's own folder
        return machine_code(kept=False)


@compiled
def normalise_and_pool(
    images: Floats, weight: Floats, bias: Floats, eps: float,
    outputs: Floats, largest: Floats, places: Places, sums: Floats, mean: Floats, scale: Floats,
) -> None:  # fmt: skip
    """Group normalisation with weight and bias, ReLU, largest value of each square.

    Normalisation keeps the order of a channel's pixels, or turns it around where its weight is negative. So the largest
    pixels are found first, and only they are normalised. (Where a weight is 0 all are equal, and PyTorch lets the first
    one learn; here it is the largest.)

    Args:
        images: What is normalised.
        weight: [channels].
        bias: [channels].
        eps: What is added to a variance.
        outputs: The result, half as high and wide.
        largest: The pixels of the images that the result has.
        places: Their places in their squares.
        sums: Of an image's pixels, [batch, channels].
        mean: [batch, groups].
        scale: 1 / √(variance + eps), [batch, groups].
    """
    batch, height, width, channels = images.shape
    each, zero = channels // mean.shape[1], images.dtype.type(0)
    sign = np.where(weight >= 0, 1, -1).astype(images.dtype)
    moments, of_row = np.empty((2, channels), np.float64), np.empty((2, channels), images.dtype)
    factor, constant = np.empty((2, channels), images.dtype)
    for k in range(batch):
        moments[:] = 0
        for row in range(outputs.shape[1]):
            of_row[:] = 0
            _find_largest(images[k], row, sign, largest[k, row], places[k, row])
            _add_moments(images[k], row, of_row)
            moments += of_row
        sums[k] = moments[0]
        for group in range(mean.shape[1]):
            first, second = moments[:, group * each : (group + 1) * each].sum(axis=1) / (height * width * each)
            variance = second - first**2
            mean[k, group] = first
            # What overflows must show: a scale of 0 would make the outputs the bias, as if nothing were wrong.
            scale[k, group] = 1 / np.sqrt(max(variance, 0.0) + eps) if variance < np.inf else np.nan
        for c in range(channels):
            factor[c] = scale[k, c // each] * weight[c]
            constant[c] = bias[c] - factor[c] * mean[k, c // each]
        for row in range(outputs.shape[1]):
            for column in range(outputs.shape[2]):
                found, output = largest[k, row, column], outputs[k, row, column]
                for c in range(channels):
                    value = factor[c] * found[c] + constant[c]
                    output[c] = zero if value <= zero else value


@compiled
def normalise_and_pool_backward(
    gradient: Floats, weight: Floats,
    outputs: Floats, largest: Floats, places: Places, sums: Floats, mean: Floats, scale: Floats,
    images: Floats, of_channels: Floats, of_weight: Floats, of_bias: Floats,
) -> None:  # fmt: skip
    """Replace the images by their gradient, and fill in those of weight and bias; all else is as it was left.

    With x̂ = (x − μ)·s, n pixels in a group, g the gradient of those that are the largest of their square and above 0,
    and sums over the group: ∂x = s·(γg − Σγg/n − x̂·Σγgx̂/n), here as factor·g + slope·x + constant.
    `of_channels` [channels] is the sum of the images' gradient over images and pixels: that of a bias before.
    """
    batch, height, width, channels = images.shape
    pixels, each, zero = height * width, channels // mean.shape[1], images.dtype.type(0)
    total, of_row = np.empty((2, channels), np.float64), np.empty((2, channels), images.dtype)
    centre, factor, slope, constant = np.empty((4, channels), images.dtype)
    of_all = np.zeros((3, channels), np.float64)
    for k in range(batch):
        for c in range(channels):
            centre[c] = mean[k, c // each]
        total[:] = 0
        for row in range(outputs.shape[1]):
            of_row[:] = 0
            for column in range(outputs.shape[2]):
                own, found, output = gradient[k, row, column], largest[k, row, column], outputs[k, row, column]
                for c in range(channels):
                    value = zero if output[c] <= zero else own[c]
                    of_row[0, c] += value
                    of_row[1, c] += value * (found[c] - centre[c])
            total += of_row
        for group in range(mean.shape[1]):
            here, s = slice(group * each, (group + 1) * each), np.float64(scale[k, group])
            total[1, here] *= s
            by_mean, by_product = (total[:, here] * weight[here]).sum(axis=1) / (pixels * each)
            factor[here] = s * weight[here]
            slope[here] = -(s**2) * by_product
            constant[here] = s**2 * by_product * mean[k, group] - s * by_mean
        of_all[0] += factor * total[0] + slope * sums[k] + constant * pixels
        of_all[1] += total[1]
        of_all[2] += total[0]
        for row in range(height):
            for column in range(width):
                square, pixel = (k, row // 2, column // 2), images[k, row, column]
                own, output, place = gradient[square], outputs[square], places[square]
                number = np.uint8(2 * (row % 2) + column % 2)
                for c in range(channels):
                    learns = zero if output[c] <= zero or place[c] != number else factor[c] * own[c]
                    pixel[c] = constant[c] + slope[c] * pixel[c] + learns
    of_channels[:], of_weight[:], of_bias[:] = of_all[0], of_all[1], of_all[2]


@compiled
def _find_largest(image: Floats, row: int, sign: Floats, largest: Floats, places: Places) -> None:
    """For a row of squares the pixels [squares, channels] that are largest when multiplied by a sign; their places."""
    height, width, channels = image.shape
    upper, lower = (
        image[2 * row],
        image[min(2 * row + 1, height - 1)],
    )  # past the edge a pixel again: only NaN wins
    one, two, three = np.uint8(1), np.uint8(2), np.uint8(3)
    for square in range(len(largest)):
        left, right = 2 * square, min(2 * square + 1, width - 1)
        first, second, third, fourth = upper[left], upper[right], lower[left], lower[right]
        for c in range(channels):  # one after the other for each channel: so the compiler makes vectors of it
            best, place = first[c] * sign[c], np.uint8(0)
            value = second[c] * sign[c]
            best, place = (value, one) if value > best or value != value else (best, place)
            value = third[c] * sign[c]
            best, place = (value, two) if value > best or value != value else (best, place)
            value = fourth[c] * sign[c]
            best, place = (value, three) if value > best or value != value else (best, place)
            largest[square, c], places[square, c] = best * sign[c], place


@compiled
def _add_moments(image: Floats, row: int, moments: Floats) -> None:
    """Add to [2, channels] the sums over a row of squares of its pixels, and of their second powers."""
    height, width, channels = image.shape
    upper, lower = image[2 * row], image[min(2 * row + 1, height - 1)]
    one, zero = image.dtype.type(1), image.dtype.type(0)
    below = one if 2 * row + 1 < height else zero
    for square in range((width + 1) // 2):
        left, right = 2 * square, min(2 * square + 1, width - 1)
        beside = one if 2 * square + 1 < width else zero
        first, second, third, fourth = upper[left], upper[right], lower[left], lower[right]
        for c in range(channels):
            a, b, d, e = first[c], second[c], third[c], fourth[c]
            moments[0, c] += a + beside * b + below * (d + beside * e)
            moments[1, c] += a * a + beside * (b * b) + below * (d * d + beside * (e * e))
