"""Which files of a folder a data set is made from, whether or not they are as they should be."""

from __future__ import annotations

from pathlib import Path

from fedpapers.data.celeba import ATTRIBUTES, IDENTITIES, IMAGES
from fedpapers.data.femnist import find_formats


def files_in(path: Path, kind: str) -> list[Path]:
    """The files of a folder on which a data set depends, as far as they are there.

    Of CelebA's images the folder stands for all: they are 202,599, and it changes with each that comes or goes.

    Args:
        path: The folder.
        kind: `mnist`, `femnist` or `celeba`.
    """
    match kind:
        case "mnist":
            return sorted(path.glob("*ubyte*"))
        case "femnist":
            return sorted(file for _, files in find_formats(path) for file in files)
        case "celeba":
            return [part for name in (ATTRIBUTES, IDENTITIES, IMAGES) if (part := path / name).exists()]
    raise ValueError(f"no data set of kind {kind}")
