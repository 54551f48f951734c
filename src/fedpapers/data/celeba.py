"""CelebA: faces of celebrities, 84 × 84, whether they smile, each known by its identity (Liu et al., ICCV 2015).

The original layout: `img_align_celeba/` with the images, `list_attr_celeba.txt` (number of images, names of the
attributes, then a line an image: file and 1 or -1 for each attribute) and `identity_CelebA.txt` (a line an image: file
and number of the identity). Both tables are read by name: their order does not matter. What is generated in place of
it is in `faces`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from PIL import __version__ as pillow_version

from fedpapers.data.characters import Report, refuse, shown
from fedpapers.data.format import ImageStream, one_line, write_dataset
from fedpapers.errors import InputError
from fedpapers.files import sha256

SIDE = 84
CLASSES = ("not smiling", "smiling")
IMAGES, ATTRIBUTES, IDENTITIES = "img_align_celeba", "list_attr_celeba.txt", "identity_CelebA.txt"

_TARGET = "Smiling"
_FORMATS = ("JPEG", "PNG")
_SUFFIXES = (".jpg", ".jpeg", ".png")
_PIECE = 64
_LICENCE = "CelebA by Liu, Luo, Wang and Tang, for non-commercial research only (mmlab.ie.cuhk.edu.hk/projects/CelebA)"


@dataclass(frozen=True)
class Faces:
    """What a folder's tables say: the images that both name and that are there, sorted by identity and file.

    Attributes:
        files: Name of each image.
        smiling: 1 where the face smiles, else 0.
        identities: Number of the identity that each image shows.
    """

    files: tuple[str, ...]
    smiling: tuple[int, ...]
    identities: tuple[int, ...]


def prepare_celeba(path: Path, destination: Path, *, min_samples: int = 5) -> None:
    """Write the CelebA that lies in `path` to the folder `destination` in the form of `fedpapers.data.format`.

    Images are resized to 84 × 84 by Pillow's bicubic filter, as LEAF does with today's Pillow; identities come in
    ascending order, the images of each by their names. One image at a time is in memory.

    Args:
        path: A folder with the original layout.
        destination: Where to; left as it was after an error.
        min_samples: Identities with fewer images are left out; at least 1.

    Raises:
        InputError: A table or the folder of images is missing or malformed, they do not fit together, an image
            cannot be decoded, or no identity is left.
    """
    if min_samples < 1:
        raise InputError(f"celeba: min_samples is {min_samples}; expected at least 1")
    faces = read_faces(path, refuse)
    everybody, owner, counts = np.unique(np.array(faces.identities), return_inverse=True, return_counts=True)
    kept = np.flatnonzero(counts >= min_samples)
    if len(kept) == 0:
        raise InputError(
            f"{path}: none of {len(everybody)} identities has min_samples {min_samples}; expected at least one; the "
            f"largest has {counts.max(initial=0)}"
        )
    rows = np.flatnonzero(counts[owner] >= min_samples)
    files = [path / IMAGES / faces.files[row] for row in rows]
    write_dataset(
        destination,
        ImageStream((len(rows), SIDE, SIDE, 3), _pieces(files)),
        np.array(faces.smiling, dtype=np.int64)[rows],
        name=f"CelebA ({len(rows):,} images of {len(kept):,} identities)",
        source="folder",
        generated=False,
        licence=_LICENCE,
        classes=CLASSES,
        origin=[
            *({"file": name, "sha256": sha256(path / name)} for name in (ATTRIBUTES, IDENTITIES)),
            {"format": "celeba", "samples": len(faces.files), "writers": len(everybody)},
            {"target": _TARGET, "min_samples": min_samples, "resize": "bicubic", "pillow": pillow_version},
        ],
        writers=np.searchsorted(kept, owner[rows]),
        writer_names=[str(everybody[k]) for k in kept],
    )


def has_celeba(path: Path) -> bool:
    """Whether a folder holds any of CelebA's three parts."""
    return any((path / name).exists() for name in (IMAGES, ATTRIBUTES, IDENTITIES))


def read_faces(path: Path, report: Report) -> Faces:
    """Read and compare the tables and the names of the images; what does not fit is told to `report` and left out."""
    if not path.is_dir():
        report(f"{path}: {'not a' if path.exists() else 'no such'} folder; expected one with CelebA's original layout")
        return Faces((), (), ())
    smiling = _read_attributes(path / ATTRIBUTES, report)
    identities = _read_identities(path / IDENTITIES, report)
    present = _present(path / IMAGES, report)
    _compare(path, smiling, identities, present, report)
    usable = sorted((identities[name], name) for name in smiling.keys() & identities.keys() & present)
    return Faces(
        tuple(name for _, name in usable),
        tuple(smiling[name] for _, name in usable),
        tuple(identity for identity, _ in usable),
    )


def check_images(path: Path, files: tuple[str, ...], report: Report) -> None:
    """Decode every image, as fast as its format allows, and tell `report` of those that cannot be."""
    for name in files:
        try:
            _load(path / IMAGES / name, fast=True)
        except InputError as error:
            report(str(error))


def _lines(path: Path, report: Report) -> list[str]:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        report(f"{path}: no such file; expected CelebA's {IMAGES}/, {ATTRIBUTES} and {IDENTITIES} side by side")
        return []
    except (OSError, UnicodeDecodeError) as error:
        report(f"{path}: cannot be read as text: {one_line(error)}; fetch it again")
        return []
    if not any(line.strip() for line in lines):
        report(f"{path}: empty; expected a line for each image")
    return lines


def _read_attributes(path: Path, report: Report) -> dict[str, int]:
    """Image -> 1 where it smiles, else 0."""
    lines = _lines(path, report)
    if not lines:
        return {}
    names = lines[1].split() if len(lines) > 1 else []
    if _TARGET not in names:
        report(f"{path}, line 2: no attribute '{_TARGET}'; expected the names of the attributes, after a first line "
               f"with the number of images")  # fmt: skip
        return {}
    column = names.index(_TARGET) + 1
    smiling: dict[str, int] = {}
    rows = 0
    for number, line in enumerate(lines[2:], start=3):
        values = line.split()
        if not values:
            continue
        rows += 1
        where = f"{path}, line {number}"
        if len(values) != len(names) + 1:
            report(f"{where}: {len(values) - 1} attributes; expected {len(names)} after the image's name")
        elif values[column] not in ("1", "-1"):
            report(f"{where}: {_TARGET} is {shown(values[column])}; expected 1 or -1")
        elif values[0] in smiling:
            report(f"{where}: image {shown(values[0])} stands there twice; expected each once")
        else:
            smiling[values[0]] = int(values[column] == "1")
    if lines[0].strip() != str(rows):
        report(f"{path}, line 1: says {shown(lines[0].strip())}, but {rows} images follow; expected their number")
    return smiling


def _read_identities(path: Path, report: Report) -> dict[str, int]:
    """Image -> the number of whom it shows."""
    identities: dict[str, int] = {}
    for number, line in enumerate(_lines(path, report), start=1):
        values = line.split()
        if not values:
            continue
        where = f"{path}, line {number}"
        if len(values) != 2:
            report(f"{where}: {len(values)} column{'s' * (len(values) != 1)}; expected 2, image and identity")
        elif not (values[1].isascii() and values[1].isdigit() and len(values[1]) < 10):
            report(f"{where}: the identity is {shown(values[1])}; expected a number")
        elif values[0] in identities:
            report(f"{where}: image {shown(values[0])} stands there twice; expected each once")
        else:
            identities[values[0]] = int(values[1])
    return identities


def _present(path: Path, report: Report) -> set[str]:
    try:
        with os.scandir(path) as entries:
            present = {entry.name for entry in entries if Path(entry.name).suffix.lower() in _SUFFIXES}
    except OSError as error:
        report(f"{path}: cannot be read: {error.strerror}; expected the folder of the images")
        return set()
    if not present:
        report(f"{path}: no images; expected *.jpg")
    return present


def _compare(
    path: Path, smiling: dict[str, int], identities: dict[str, int], present: set[str], report: Report
) -> None:
    """Tell which images one of the three parts has and another one lacks; parts that are missing are told already."""
    parts = {ATTRIBUTES: smiling.keys(), IDENTITIES: identities.keys(), IMAGES: present}
    everything = set().union(*parts.values())
    for part, names in parts.items():
        if names and (lacking := everything - names):
            first = min(lacking)
            elsewhere = next(other for other, known in parts.items() if first in known)
            report(f"{path / part}: lacks {len(lacking)} image{'s' * (len(lacking) != 1)}, the first {shown(first)}, "
                   f"which is in {elsewhere}; expected every image in {IMAGES}/ and both tables")  # fmt: skip


def _pieces(files: list[Path]) -> Iterator[NDArray[np.uint8]]:
    for start in range(0, len(files), _PIECE):
        yield np.stack([_load(file) for file in files[start : start + _PIECE]])


def _load(path: Path, fast: bool = False) -> NDArray[np.uint8]:
    """An image as uint8 [84, 84, 3]; `fast`, a JPEG is decoded at a lower resolution, to see whether it can be."""
    try:
        with Image.open(path, formats=_FORMATS) as picture:
            if fast:
                picture.draft("RGB", (SIDE // 2, SIDE // 2))
            rgb = picture.convert("RGB")
            return np.asarray(rgb.resize((SIDE, SIDE), Image.Resampling.BICUBIC))
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
        problem = "neither JPEG nor PNG" if "cannot identify" in str(error) else one_line(error)[:120]
        raise InputError(f"{path}: cannot be decoded: {problem}; expected a whole JPEG; fetch it again") from None
