"""FEMNIST-like (generated): characters of 62 classes, drawn with matplotlib's fonts, each writer with their own hand.

A hand is a font, the weight of the stroke, slant, width, size, place on the paper, a way to bend each character, the
ink, and how unsteady all this is from one character to the next. Numbers of samples are as in LEAF's FEMNIST, labels
are skewed. A writer depends on the seed and their own number only, not on how many others there are.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from functools import cache
from pathlib import Path

import matplotlib as mpl
import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFilter, ImageFont
from PIL import __version__ as pillow_version

from fedpapers.data.characters import CLASSES, SIDE
from fedpapers.data.generated import check_size, write_generated
from fedpapers.randomness import Purpose, generator

NAME = "FEMNIST-like (generated)"

# Samples per writer of LEAF's FEMNIST (Caldas et al., arXiv 1812.01097, Table 1).
SAMPLES_MEAN, SAMPLES_SD = 226.83, 88.94

_LICENCE = "drawn by fedpapers with fonts that matplotlib ships (DejaVu, STIX, Computer Modern), free to use"
_FONTS = (
    *(f"DejaVuSans{cut}" for cut in ("", "-Bold", "-Oblique", "Mono", "Mono-Oblique")),
    *(f"DejaVuSerif{cut}" for cut in ("", "-Bold", "-Italic")),
    *(f"STIXGeneral{cut}" for cut in ("", "Bol", "Italic", "BolIta")),
    *("cmr10", "cmb10", "cmss10", "cmtt10", "cmti10"),
)
_CELL = 48  # pixels of a glyph's cell, in which a capital is about 24 high
_OVERSAMPLING = 4
_DIGITS = 0.5  # of the samples, as in NIST's forms
_CONCENTRATION = 25.0  # of a writer's labels about the common ones
_BENDS = 4  # knots of the grid that bends a character, in each direction


class _Step(IntEnum):
    """What a draw is for. The numbers are part of every result: append, never renumber."""

    LABELS = 0
    HAND = 1
    SAMPLES = 2


@dataclass(frozen=True, eq=False)
class Hand:
    """How one writer writes.

    Attributes:
        font: Index into the fonts.
        level: Darkness of the blurred glyph at which ink begins; low means a thick stroke.
        slant: Horizontal shift for each unit of height.
        turn: Rotation, radians.
        size: Scale of both directions.
        width: Scale of the horizontal direction, on top of `size`.
        place: Shift of the middle, pixels, shape [2].
        bends: How each class is bent, pixels of the cell, shape [62, 2, 4, 4].
        ink: Brightness of the ink, at most 1.
        softness: Width of the stroke's edge.
        unsteady: Scale of what changes from one character to the next.
        noise: Standard deviation of the paper's noise, of 255.
    """

    font: int
    level: float
    slant: float
    turn: float
    size: float
    width: float
    place: NDArray[np.float64]
    bends: NDArray[np.float64]
    ink: float
    softness: float
    unsteady: float
    noise: float


def prepare_femnist_like(destination: Path, *, writers: int, scale: float, seed: int) -> None:
    """Write generated characters to the folder `destination` in the form of `fedpapers.data.format`.

    Args:
        destination: Where to; left as it was after an error.
        writers: Number of writers, at least 1.
        scale: Samples per writer, in units of LEAF's mean of 226.83; positive. A writer has at least 2.
        seed: Of everything; 0 or more.

    Raises:
        InputError: A number is out of its range.
    """
    check_size("femnist", "writers", writers, scale)
    labels = [draw_labels(seed, writer, scale) for writer in range(writers)]

    def images(writer: int, own: NDArray[np.int64]) -> NDArray[np.uint8]:
        draw = generator(seed, Purpose.DATA, round=_Step.SAMPLES, client=writer)
        return draw_characters(draw_hand(seed, writer), own, draw)

    write_generated(
        destination,
        labels,
        (SIDE, SIDE),
        images,
        who="writer",
        name=NAME,
        licence=_LICENCE,
        classes=CLASSES,
        origin=[
            {"generator": "fedpapers.data.glyphs", "writers": writers, "scale": scale, "seed": seed},
            {"package": "matplotlib", "version": mpl.__version__, "fonts": list(_FONTS)},
            {"package": "pillow", "version": pillow_version},
        ],
    )


def draw_labels(seed: int, writer: int, scale: float) -> NDArray[np.int64]:
    """The classes of a writer's characters in the order of writing, shape [n].

    n is gamma-distributed with LEAF's mean and standard deviation times `scale`; the shares of the classes are a
    Dirichlet draw about shares in which half of all characters are digits.
    """
    draw = generator(seed, Purpose.DATA, round=_Step.LABELS, client=writer)
    shape = (SAMPLES_MEAN / SAMPLES_SD) ** 2
    count = max(2, round(float(draw.gamma(shape, scale * SAMPLES_MEAN / shape))))
    shares = draw.dirichlet(_CONCENTRATION * _common_shares())
    return draw.choice(len(CLASSES), count, p=shares).astype(np.int64)


def draw_hand(seed: int, writer: int) -> Hand:
    """A writer's hand."""
    draw = generator(seed, Purpose.DATA, round=_Step.HAND, client=writer)
    return Hand(
        font=int(draw.integers(len(_FONTS))),
        level=draw.uniform(0.25, 0.65),
        slant=draw.normal(0.08, 0.18),
        turn=draw.normal(0, 0.06),
        size=draw.uniform(0.78, 1.08),
        width=draw.uniform(0.78, 1.22),
        place=draw.normal(0, 0.8, 2),
        bends=draw.normal(0, 1.1, (len(CLASSES), 2, _BENDS, _BENDS)),
        ink=draw.uniform(0.75, 1),
        softness=draw.uniform(0.12, 0.4),
        unsteady=draw.uniform(0.5, 1.2),
        noise=draw.uniform(0, 9),
    )


def draw_characters(hand: Hand, labels: NDArray[np.int64], draw: np.random.Generator) -> NDArray[np.uint8]:
    """Characters of one hand, each a little different.

    Args:
        hand: The writer's hand.
        labels: Index into the 62 classes of each, shape [n].
        draw: The generator of what changes from one character to the next.

    Returns:
        uint8, shape [n, 28, 28], ink bright on a ground of 0.
    """
    n = len(labels)
    glyphs = np.clip((_glyphs(hand.font) - hand.level) / hand.softness + 0.5, 0, 1)
    darkness = _sample(glyphs, labels, _places(hand, labels, draw))
    ink = np.clip(hand.ink + draw.normal(0, 0.06, (n, 1, 1)) * hand.unsteady, 0.4, 1)
    paper = draw.normal(0, hand.noise, (n, SIDE, SIDE)) * (darkness > 0.02)
    return np.clip(np.rint(255 * darkness * ink + paper), 0, 255).astype(np.uint8)


def _common_shares() -> NDArray[np.float64]:
    letters = np.linspace(1.5, 0.5, len(CLASSES) - 10)
    # The step of 23 puts frequent and rare letters among both cases.
    letters = letters[np.arange(len(letters)) * 23 % len(letters)]
    shares = np.concatenate([np.full(10, _DIGITS / 10), (1 - _DIGITS) * letters / letters.sum()])
    return np.asarray(shares / shares.sum(), dtype=np.float64)


@cache
def _glyphs(font: int) -> NDArray[np.float32]:
    """The 62 characters of a font, blurred, in [0, 1], shape [62, 48, 48], all from one base line."""
    path = Path(mpl.get_data_path()) / "fonts" / "ttf" / f"{_FONTS[font]}.ttf"
    side = _CELL * _OVERSAMPLING
    face = ImageFont.truetype(path, _CELL * _OVERSAMPLING // 2, layout_engine=ImageFont.Layout.BASIC)
    top, bottom = (face.getbbox("H", anchor="ls")[k] for k in (1, 3))
    face = ImageFont.truetype(path, round(face.size * side / 2 / (bottom - top)), layout_engine=ImageFont.Layout.BASIC)
    cells = np.empty((len(CLASSES), _CELL, _CELL), dtype=np.float32)
    for label, character in enumerate(CLASSES):
        image = Image.new("L", (side, side))
        left, upper, right, lower = face.getbbox(character, anchor="ls")
        # The middle of its width is put in the middle; its height stays on the line, half way to the middle.
        base = side * 0.75 - 0.5 * (side * 0.25 + (upper + lower) / 2)
        ImageDraw.Draw(image).text((side / 2 - (left + right) / 2, base), character, fill=255, font=face, anchor="ls")
        image = image.filter(ImageFilter.GaussianBlur(1.1 * _OVERSAMPLING)).reduce(_OVERSAMPLING)
        cells[label] = np.asarray(image, dtype=np.float32)
    # The middle of a thin font's stroke is brought to the darkness of a bold one's.
    strokes = cells[cells > cells.max() * 0.3]
    return np.asarray(np.minimum(cells / np.quantile(strokes, 0.75, method="lower"), 1), dtype=np.float32)


def _places(hand: Hand, labels: NDArray[np.int64], draw: np.random.Generator) -> NDArray[np.float32]:
    """Where in its cell each pixel of each character lies, shape [2, n, 28, 28]: row, column."""
    n = len(labels)
    wobble = hand.unsteady
    size = hand.size * np.exp(draw.normal(0, 0.06, n) * wobble)
    width = hand.width * np.exp(draw.normal(0, 0.06, n) * wobble)
    slant = hand.slant + draw.normal(0, 0.06, n) * wobble
    turn = hand.turn + draw.normal(0, 0.05, n) * wobble
    shift = hand.place + draw.normal(0, 0.7, (n, 2)) * wobble
    bends = hand.bends[labels] + draw.normal(0, 0.5, (n, 2, _BENDS, _BENDS)) * wobble

    rows, columns = np.meshgrid(np.arange(SIDE) - (SIDE - 1) / 2, np.arange(SIDE) - (SIDE - 1) / 2, indexing="ij")
    y, x = (part - shift[:, axis, None, None] for axis, part in enumerate((rows, columns)))
    cos, sin = np.cos(turn)[:, None, None], np.sin(turn)[:, None, None]
    y, x = cos * y - sin * x, sin * y + cos * x
    x = (x + slant[:, None, None] * y) / (size * width)[:, None, None]
    y = y / size[:, None, None]
    # A capital of 24 pixels in the cell becomes one of about 22 on the paper.
    middle, zoom = (_CELL - 1) / 2, 1.08
    return np.asarray(np.stack([y, x]) * zoom + middle + _bent(bends), dtype=np.float32)


def _bent(bends: NDArray[np.float64]) -> NDArray[np.float64]:
    """A smooth field with the given values at a grid of knots: [n, 2, 4, 4] to [2, n, 28, 28]."""
    places = np.linspace(0, _BENDS - 1, SIDE)
    hats = np.maximum(0, 1 - np.abs(places[:, None] - np.arange(_BENDS)))
    hats = hats**2 * (3 - 2 * hats)  # still adds up to 1, and has no kinks
    return np.asarray(np.einsum("rk,ndkl,cl->dnrc", hats, bends, hats, optimize=True), dtype=np.float64)


def _sample(glyphs: NDArray[np.float32], labels: NDArray[np.int64], places: NDArray[np.float32]) -> NDArray[np.float32]:
    """The glyphs' values at fractional places, bilinear, 0 outside; shape [n, 28, 28]."""
    places = np.clip(places, 0, _CELL - 1.001)
    corner = places.astype(np.int32)
    down, right = places - corner
    flat = glyphs.reshape(-1)
    first = labels[:, None, None] * (_CELL * _CELL) + corner[0] * _CELL + corner[1]
    upper = flat[first] * (1 - right) + flat[first + 1] * right
    lower = flat[first + _CELL] * (1 - right) + flat[first + _CELL + 1] * right
    return np.asarray(upper * (1 - down) + lower * down, dtype=np.float32)
