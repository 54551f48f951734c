"""CelebA-like (generated): drawn faces, each identity with features of its own, the mouth says whether it smiles.

Identities differ in skin, hair, shape of the head, eyes, brows, nose, mouth at rest, glasses and beard; the images of
one identity differ in background, light, size, place and turn of the head, in how wide the eyes are open, and in the
smile. An identity depends on the seed and its own number only, not on how many others there are.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw
from PIL import __version__ as pillow_version

from fedpapers.data.celeba import CLASSES, SIDE
from fedpapers.data.generated import check_size, write_generated
from fedpapers.randomness import Purpose, generator

NAME = "CelebA-like (generated)"

# Images per identity of LEAF's CelebA: at least 5, at most 35 (arXiv 1812.01097, Table 1, and CelebA's own tables).
SAMPLES_MEAN, SAMPLES_SD, SAMPLES_LEAST, SAMPLES_MOST = 21.44, 7.63, 5, 35

_LICENCE = "drawn by fedpapers, free to use"
_OVERSAMPLING = 2
_SKINS = ((244, 208, 177), (231, 183, 143), (208, 155, 112), (165, 114, 77), (116, 76, 52), (84, 54, 38))
_HAIRS = ((28, 22, 20), (66, 42, 28), (110, 72, 40), (176, 132, 72), (222, 194, 128), (150, 62, 34), (160, 156, 152))
_EYES = ((70, 46, 30), (104, 78, 44), (66, 98, 66), (78, 112, 150), (96, 110, 116))
_STEPS = 12  # points of a curve
_CIRCLE = [(math.cos(k * math.pi / _STEPS), math.sin(k * math.pi / _STEPS)) for k in range(2 * _STEPS)]

Colour = tuple[int, int, int]
Points = list[tuple[float, float]]


class _Step(IntEnum):
    """What a draw is for. The numbers are part of every result: append, never renumber."""

    LABELS = 0
    FACE = 1
    SAMPLES = 2


@dataclass(frozen=True)
class Face:
    """An identity's features; lengths are in units of half the head's height, places from its middle, down positive.

    Attributes:
        skin: Colour.
        hair: Colour.
        iris: Colour.
        lips: Colour.
        width: Half the head's width.
        jaw: How much narrower the chin is, 0 to 1.
        long_hair: How far the hair falls at the sides.
        fringe: How far it falls over the forehead.
        eye_gap: Half the distance of the eyes.
        eye_size: Half the width of an eye.
        brow: Thickness of the brows.
        nose: Length of the nose.
        mouth: Half the width of the mouth.
        mouth_place: Place of the mouth.
        lip: Thickness of the lips.
        rest: Lift of the corners of the mouth at rest; negative hangs down.
        glasses: Whether they are worn.
        beard: Whether there is one.
    """

    skin: Colour
    hair: Colour
    iris: Colour
    lips: Colour
    width: float
    jaw: float
    long_hair: float
    fringe: float
    eye_gap: float
    eye_size: float
    brow: float
    nose: float
    mouth: float
    mouth_place: float
    lip: float
    rest: float
    glasses: bool
    beard: bool


def prepare_celeba_like(destination: Path, *, identities: int, scale: float, seed: int) -> None:
    """Write generated faces to the folder `destination` in the form of `fedpapers.data.format`.

    Args:
        destination: Where to; left as it was after an error.
        identities: Number of identities, at least 1.
        scale: Images per identity, in units of CelebA's mean of 21.44; positive. An identity has at least 2.
        seed: Of everything; 0 or more.

    Raises:
        InputError: A number is out of its range.
    """
    check_size("celeba", "identities", identities, scale)
    smiles = [draw_smiles(seed, identity, scale) for identity in range(identities)]

    def images(identity: int, own: NDArray[np.int64]) -> NDArray[np.uint8]:
        draw = generator(seed, Purpose.DATA, round=_Step.SAMPLES, group=1, client=identity)
        return draw_images(draw_face(seed, identity), own, draw)

    write_generated(
        destination,
        smiles,
        (SIDE, SIDE, 3),
        images,
        who="identity",
        name=NAME,
        licence=_LICENCE,
        classes=CLASSES,
        origin=[
            {"generator": "fedpapers.data.faces", "identities": identities, "scale": scale, "seed": seed},
            {"package": "pillow", "version": pillow_version},
        ],
    )


def draw_smiles(seed: int, identity: int, scale: float) -> NDArray[np.int64]:
    """Whether an identity smiles in each of its images, 0 or 1, shape [n].

    n has CelebA's mean, standard deviation, least and most (a beta distribution between these), times `scale`. Some
    identities smile more often than others; about half of all images smile.
    """
    draw = generator(seed, Purpose.DATA, round=_Step.LABELS, group=1, client=identity)
    span = SAMPLES_MOST - SAMPLES_LEAST
    mean, variance = (SAMPLES_MEAN - SAMPLES_LEAST) / span, (SAMPLES_SD / span) ** 2
    strength = mean * (1 - mean) / variance - 1
    count = round(scale * (SAMPLES_LEAST + span * float(draw.beta(mean * strength, (1 - mean) * strength))))
    return (draw.random(max(2, count)) < draw.beta(4, 4)).astype(np.int64)


def draw_face(seed: int, identity: int) -> Face:
    """An identity's features."""
    draw = generator(seed, Purpose.DATA, round=_Step.FACE, group=1, client=identity)
    skin = _near(_SKINS[draw.integers(len(_SKINS))], 10, draw)
    man = bool(draw.random() < 0.42)
    return Face(
        skin=skin,
        hair=_near(_HAIRS[draw.integers(len(_HAIRS))], 14, draw),
        iris=_near(_EYES[draw.integers(len(_EYES))], 12, draw),
        lips=_near(_mixed(skin, (188, 52, 62), 0.35 if man else 0.65), 10, draw),
        width=draw.uniform(0.68, 0.84),
        jaw=draw.uniform(0.1, 0.45),
        long_hair=draw.uniform(-0.1, 0.3) if man else draw.uniform(0.5, 1.3),
        fringe=draw.uniform(0.1, 0.42),
        eye_gap=draw.uniform(0.3, 0.4),
        eye_size=draw.uniform(0.12, 0.18),
        brow=draw.uniform(0.03, 0.09),
        nose=draw.uniform(0.25, 0.42),
        mouth=draw.uniform(0.24, 0.36),
        mouth_place=draw.uniform(0.5, 0.6),
        lip=draw.uniform(0.04, 0.08),
        rest=draw.normal(0, 0.03),
        glasses=bool(draw.random() < 0.12),
        beard=man and bool(draw.random() < 0.3),
    )


def draw_images(face: Face, smiles: NDArray[np.int64], draw: np.random.Generator) -> NDArray[np.uint8]:
    """Images of one identity, each a little different.

    Args:
        face: The features.
        smiles: 1 where the face smiles, else 0, shape [n].
        draw: The generator of what changes from one image to the next.

    Returns:
        uint8, shape [n, 84, 84, 3].
    """
    drawn = np.stack([_draw_image(face, bool(smile), draw) for smile in smiles]).astype(np.float32)
    n = len(smiles)
    # Light from a side, its strength and colour, and the camera's noise.
    ramp = np.linspace(-1, 1, SIDE, dtype=np.float32)
    slopes = draw.normal(0, 0.1, (2, n, 1, 1)).astype(np.float32)
    light = 1 + slopes[0] * ramp[None, None, :] + slopes[1] * ramp[None, :, None]
    colour = np.exp(draw.normal(0, 0.12, (n, 1, 1, 1)) + draw.normal(0, 0.04, (n, 1, 1, 3))).astype(np.float32)
    noise = draw.standard_normal((n, SIDE, SIDE, 1), dtype=np.float32) * 4
    return np.asarray(np.clip(np.rint(drawn * light[..., None] * colour + noise), 0, 255), dtype=np.uint8)


@dataclass(frozen=True)
class _Pencil:
    """Draws in the head's own units: they are scaled, turned and moved to the picture."""

    canvas: ImageDraw.ImageDraw
    middle: tuple[float, float]
    unit: float
    turn: float

    def at(self, points: Sequence[tuple[float, float]]) -> Points:
        cos, sin = math.cos(self.turn) * self.unit, math.sin(self.turn) * self.unit
        right, down = self.middle
        return [(right + cos * x - sin * y, down + sin * x + cos * y) for x, y in points]

    def fill(self, points: Sequence[tuple[float, float]], colour: Colour) -> None:
        self.canvas.polygon(self.at(points), fill=colour)

    def line(self, points: Sequence[tuple[float, float]], thickness: float, colour: Colour) -> None:
        self.canvas.line(self.at(points), fill=colour, width=max(1, round(thickness * self.unit)), joint="curve")


def _draw_image(face: Face, smile: bool, draw: np.random.Generator) -> NDArray[np.uint8]:
    side = SIDE * _OVERSAMPLING
    background = _near((128, 128, 128), 50, draw)
    picture = Image.new("RGB", (side, side), background)
    pencil = _Pencil(
        ImageDraw.Draw(picture),
        (side * (0.5 + draw.normal(0, 0.02)), side * (0.53 + draw.normal(0, 0.02))),
        side * draw.uniform(0.34, 0.4),
        draw.normal(0, 0.07),
    )
    gaze, open_eyes = draw.normal(0, 0.02), draw.uniform(0.4, 0.65)
    lift = face.rest + (draw.uniform(0.1, 0.2) if smile else draw.normal(-0.01, 0.02))
    opening = draw.uniform(0, 0.12) if draw.random() < (0.7 if smile else 0.2) else 0.0
    _draw_head(pencil, face, _near((110, 100, 110), 50, draw))
    # Smiling narrows the eyes and widens the mouth.
    _draw_eyes(pencil, face, open_eyes * (0.8 if smile else 1.0), gaze)
    _draw_mouth(pencil, face, face.mouth * (1.15 if smile else 1.0), lift, opening, teeth=smile)
    return np.asarray(picture.reduce(_OVERSAMPLING))


def _draw_head(pencil: _Pencil, face: Face, clothes: Colour) -> None:
    shade = _mixed(face.skin, (0, 0, 0), 0.18)
    wide = face.width
    pencil.fill(_oval(0, -0.12 + face.long_hair / 2, wide + 0.2, 1.0 + face.long_hair / 2), face.hair)
    pencil.fill(_oval(0, 2.0, 1.5, 0.9), clothes)
    pencil.fill([(-0.3, 0.6), (0.3, 0.6), (0.36, 1.35), (-0.36, 1.35)], shade)
    for side in (-1, 1):
        pencil.fill(_oval(side * wide * 0.98, 0.02, 0.09, 0.17), shade)
    outline = [(x * (1 - face.jaw * max(y, 0.0) ** 2), y) for x, y in _oval(0, 0, wide, 1.0)]
    pencil.fill(outline, face.skin)
    if face.beard:
        low = [(x, y) for x, y in outline if y > 0.35]
        pencil.fill(low, _mixed(face.skin, face.hair, 0.6))
    top = [(x * 1.03, y * 1.03) for x, y in _oval(0, 0, wide, 1.0) if y < -1 + 2.2 * face.fringe]
    pencil.fill(sorted(top), face.hair)
    pencil.fill(_oval(0, -1.02 + face.fringe, wide * 0.8, face.fringe * 0.55), face.hair)
    nose = [(-0.02, -0.1), (-0.1, -0.1 + face.nose), (0.0, -0.05 + face.nose), (0.1, -0.1 + face.nose)]
    pencil.line(nose, 0.04, shade)


def _draw_eyes(pencil: _Pencil, face: Face, opening: float, gaze: float) -> None:
    height = face.eye_size * opening
    for side in (-1, 1):
        x, y = side * face.eye_gap, -0.15
        pencil.fill(_oval(x, y, face.eye_size, height), (240, 238, 234))
        pencil.fill(_oval(x + gaze, y, min(height, 0.09), height * 0.95), face.iris)
        pencil.fill(_oval(x + gaze, y, 0.035, min(height, 0.04)), (16, 14, 14))
        pencil.line([(x - face.eye_size, y), (x, y - height * 1.3), (x + face.eye_size, y)], 0.03, (40, 30, 28))
        brow = [(x - side * 0.16, y - 0.18), (x, y - 0.24), (x + side * 0.2, y - 0.17)]
        pencil.line(brow, face.brow, _mixed(face.hair, (30, 22, 20), 0.4))
        if face.glasses:
            ring = _oval(x, y + 0.02, 0.25, 0.2)
            pencil.line([*ring, ring[0]], 0.035, (34, 32, 36))
    if face.glasses:
        pencil.line([(-face.eye_gap + 0.25, -0.15), (face.eye_gap - 0.25, -0.15)], 0.035, (34, 32, 36))


def _draw_mouth(pencil: _Pencil, face: Face, width: float, lift: float, opening: float, teeth: bool) -> None:
    """The mouth: its middle line's ends are `lift` above its middle; the lips stand `opening` apart."""
    along = np.linspace(-1, 1, _STEPS + 1)
    line = face.mouth_place + lift * (0.5 - along**2)
    gap = (opening / 2) * (1 - along**2)

    def curve(offset: NDArray[Any]) -> Points:
        return list(zip((along * width).tolist(), (line + offset).tolist(), strict=True))

    lips = face.lip * (1 - 0.8 * along**2)
    pencil.fill([*curve(-gap - lips), *reversed(curve(gap + 1.3 * lips))], face.lips)
    if opening > 0.02:
        pencil.fill([*curve(-gap), *reversed(curve(gap))], (244, 240, 234) if teeth else (70, 24, 28))
    else:
        pencil.line(curve(gap * 0), 0.03, _mixed(face.lips, (40, 10, 14), 0.6))
    if lift > 0.07:  # the folds beside a smile
        for side in (-1, 1):
            fold = [(side * width * 0.95, 0.3), (side * width * 1.25, face.mouth_place - 0.05)]
            pencil.line(fold, 0.025, _mixed(face.skin, (0, 0, 0), 0.25))


def _oval(x: float, y: float, width: float, height: float) -> Points:
    """Points of an ellipse with the given middle and half axes."""
    return [(x + width * cos, y + height * sin) for cos, sin in _CIRCLE]


def _near(colour: Colour, spread: float, draw: np.random.Generator) -> Colour:
    red, green, blue = (
        min(max(round(c + d), 0), 255) for c, d in zip(colour, draw.normal(0, spread, 3).tolist(), strict=True)
    )
    return red, green, blue


def _mixed(one: Colour, other: Colour, share: float) -> Colour:
    red, green, blue = (round((1 - share) * a + share * b) for a, b in zip(one, other, strict=True))
    return red, green, blue
