"""The form in which every prepared data set lies on disk.

A folder holds `images.npy`, `labels.npy`, with known writers also `writers.npy` and `clients.csv`, and `about.json`.
The last is moved into place after all others, so a folder without it is not a data set. Training jobs read these
folders at their start: images stay on disk until they are used, and this module imports nothing heavy.
"""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedpapers.errors import InputError
from fedpapers.files import parse_json, replacing, seal_of, sealed, sha256, write_json

FORMAT = 1

_AGAIN = "prepare the data set again"


@dataclass(frozen=True, eq=False)
class Dataset:
    """A prepared data set; its arrays are read-only memory maps.

    Attributes:
        images: uint8, shape [n, H, W] or [n, H, W, C]; for characters ink is 255 on a ground of 0.
        labels: Class of each image, int64, shape [n], each an index into `about["classes"]`.
        writers: Who wrote each image (or whom it shows), int64, shape [n], an index into `writer_names`; None where
            this is not known.
        writer_names: The writers' names, all different; empty where `writers` is None.
        about: What `about.json` says: `format` (version), `name` (to be shown), `source`, `generated` (whether it is
            not the real data), `licence`, `classes` (names), `image` (shape of one), `counts` (samples, writers,
            labels), `origin` (what it was made from), `files` (size in bytes and SHA-256 of each).
    """

    images: NDArray[np.uint8]
    labels: NDArray[np.int64]
    writers: NDArray[np.int64] | None
    writer_names: tuple[str, ...]
    about: dict[str, Any]

    def __len__(self) -> int:
        return len(self.labels)


@dataclass(frozen=True, eq=False)
class ImageStream:
    """Images that are made while they are written, so that they need not all be in memory.

    Attributes:
        shape: [n, H, W] or [n, H, W, C], all images together.
        pieces: uint8 arrays, shape [any, H, W] or [any, H, W, C], that make n images one after another.
    """

    shape: tuple[int, ...]
    pieces: Iterable[NDArray[np.uint8]]


def write_dataset(
    folder: Path,
    images: NDArray[np.uint8] | ImageStream,
    labels: NDArray[np.int64],
    *,
    name: str,
    source: str,
    generated: bool,
    licence: str,
    classes: Sequence[str],
    origin: Sequence[Mapping[str, Any]],
    writers: NDArray[np.int64] | None = None,
    writer_names: Sequence[str] = (),
) -> None:
    """Write a data set to `folder`, whole or not at all; other files there are left alone.

    All is written beside its place first, so a full disk, or an error in the stream of images, leaves an earlier data
    set as it was. A kill while the files move leaves a folder without `about.json`, which `read_dataset` refuses.

    Args:
        folder: Where to; created where it is missing.
        images: uint8, shape [n, H, W] or [n, H, W, C], n at least 1; may be a memory map, or a stream of the same.
        labels: Integers, shape [n], each an index into `classes`.
        name: What tables and captions call the data set, as "MNIST" or "FEMNIST-like (generated)".
        source: `embedded`, `folder` or `download`.
        generated: Whether the images are not the real ones.
        licence: The licence and where it is stated, one sentence.
        classes: The classes' names.
        origin: What the images were made from: one JSON object for each file, package or generator.
        writers: Integers, shape [n], each an index into `writer_names`; None where writers are not known.
        writer_names: The writers' names, all different.

    Raises:
        ValueError: The arguments do not fit together, which is the caller's mistake, not the user's.
        InputError: What the stream of images raises.
        OSError: The folder cannot be written.
    """
    if not isinstance(images, ImageStream):
        _check_piece(images, images.shape)
        images = ImageStream(images.shape, [images])
    _check_arguments(images.shape, labels, classes, writers, writer_names)
    about: dict[str, Any] = {
        "format": FORMAT,
        "name": name,
        "source": source,
        "generated": generated,
        "licence": licence,
        "classes": list(classes),
        "image": list(images.shape[1:]),
        "counts": {
            "samples": len(labels),
            "writers": None if writers is None else len(writer_names),
            "labels": np.bincount(labels, minlength=len(classes)).tolist(),
        },
        "origin": [dict(entry) for entry in origin],
        "files": {},
    }
    with ExitStack() as stack:
        # The stack moves the files in the reverse order: about.json, opened first, comes last.
        about_file = stack.enter_context(replacing(folder / "about.json"))

        def new(file: str) -> Path:
            return stack.enter_context(replacing(folder / file))

        def done(file: str, written: Path) -> None:
            about["files"][file] = {"bytes": written.stat().st_size, "sha256": sha256(written)}

        path = new("images.npy")
        _save_stream(path, images)
        done("images.npy", path)
        arrays: dict[str, NDArray[Any]] = {"labels.npy": np.asarray(labels, dtype=np.int64)}
        if writers is not None:
            arrays["writers.npy"] = np.asarray(writers, dtype=np.int64)
        for file, array in arrays.items():
            path = new(file)
            _save(path, array)
            done(file, path)
        if writers is not None:
            path = new("clients.csv")
            _write_clients(path, writers, writer_names)
            done("clients.csv", path)
        write_json(about_file, sealed(about))
        # From here to the last move the folder holds old and new files, so it must not pass for a data set.
        (folder / "about.json").unlink(missing_ok=True)
        if writers is None:
            (folder / "writers.npy").unlink(missing_ok=True)
            (folder / "clients.csv").unlink(missing_ok=True)


def read_dataset(folder: Path) -> Dataset:
    """Open a prepared data set without reading its images.

    Sizes, shapes and types are checked against `about.json`, and labels and writers for their range; the checksums
    are not, because that would read every byte (see `verify_dataset`).

    Raises:
        InputError: The folder holds no data set, one of another format version, or one whose files are missing or
            do not fit what `about.json` says.
    """
    about = _read_about(folder / "about.json")
    for file, entry in about["files"].items():
        _check_size(folder / file, entry["bytes"])
    n = about["counts"]["samples"]
    images = _load(folder / "images.npy", np.dtype(np.uint8), (n, *about["image"]))
    labels = _load(folder / "labels.npy", np.dtype(np.int64), (n,))
    _check_range(folder / "labels.npy", labels, len(about["classes"]), "a class")
    count = about["counts"]["writers"]
    if count is None:
        return Dataset(images, labels, None, (), about)
    writers = _load(folder / "writers.npy", np.dtype(np.int64), (n,))
    _check_range(folder / "writers.npy", writers, count, "a writer")
    return Dataset(images, labels, writers, _read_clients(folder / "clients.csv", count), about)


def verify_dataset(folder: Path) -> Dataset:
    """Open a prepared data set as `read_dataset` does, after comparing every file with its checksum.

    Raises:
        InputError: As `read_dataset`, or a file has another SHA-256 than `about.json` says.
    """
    dataset = read_dataset(folder)
    for file, entry in dataset.about["files"].items():
        found = sha256(folder / file)
        if found != entry["sha256"]:
            raise InputError(
                f"{folder / file}: the SHA-256 is {found}; expected {entry['sha256']} as about.json says; {_AGAIN}"
            )
    return dataset


def one_line(error: BaseException) -> str:
    """An exception's own text on one line, to be quoted in an `InputError`."""
    return " ".join(str(error).split()) or type(error).__name__


def _check_arguments(
    shape: tuple[int, ...],
    labels: NDArray[np.int64],
    classes: Sequence[str],
    writers: NDArray[np.int64] | None,
    writer_names: Sequence[str],
) -> None:
    if len(shape) not in (3, 4) or 0 in shape:
        raise ValueError(f"images: {shape}; expected [n, H, W] or [n, H, W, C], not empty")
    if (writers is None) != (len(writer_names) == 0):
        raise ValueError("writers and writer_names: one is given without the other")
    if len(set(writer_names)) != len(writer_names):
        raise ValueError(f"writer_names: '{Counter(writer_names).most_common(1)[0][0]}' stands there twice")
    for what, values, count in (("labels", labels, len(classes)), ("writers", writers, len(writer_names))):
        if values is None:
            continue
        if values.shape != shape[:1] or values.dtype.kind not in "iu":
            raise ValueError(f"{what}: {values.dtype} {values.shape}; expected integers [{shape[0]}]")
        if values.min() < 0 or values.max() >= count:
            raise ValueError(f"{what}: from {values.min()} to {values.max()}; expected 0 to {count - 1}")


def _save(path: Path, array: NDArray[Any]) -> None:
    # Through an open file: given a name, np.save appends ".npy" to it.
    with path.open("wb") as file:
        np.save(file, np.ascontiguousarray(array), allow_pickle=False)


def _save_stream(path: Path, images: ImageStream) -> None:
    head = {"descr": np.lib.format.dtype_to_descr(np.dtype(np.uint8)), "fortran_order": False, "shape": images.shape}
    count = 0
    with path.open("wb") as file:
        np.lib.format.write_array_header_1_0(file, head)
        for piece in images.pieces:
            _check_piece(piece, images.shape)
            file.write(np.ascontiguousarray(piece).data)
            count += len(piece)
    if count != images.shape[0]:
        raise ValueError(f"images: {count} came; expected {images.shape[0]}")


def _check_piece(piece: NDArray[np.uint8], shape: tuple[int, ...]) -> None:
    if piece.dtype != np.uint8 or piece.shape[1:] != shape[1:]:
        raise ValueError(f"images: {piece.dtype} {piece.shape}; expected uint8 {shape}")


def _write_clients(path: Path, writers: NDArray[np.int64], writer_names: Sequence[str]) -> None:
    samples = np.bincount(writers, minlength=len(writer_names)).tolist()
    with path.open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(("writer", "samples"))
        table.writerows(zip(writer_names, samples, strict=True))


def _read_clients(path: Path, count: int) -> tuple[str, ...]:
    try:
        with path.open(newline="", encoding="utf-8") as file:
            names = tuple(row["writer"] for row in csv.DictReader(file))
    except (KeyError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{path}: not a table with a column 'writer': {one_line(error)}; {_AGAIN}") from None
    if len(set(names)) != count or len(names) != count:
        raise InputError(
            f"{path}: {len(set(names))} different writers in {len(names)} rows; expected {count}; {_AGAIN}"
        )
    return names


def _read_about(path: Path) -> dict[str, Any]:
    try:
        about = parse_json(path.read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        raise InputError(
            f"{path}: no such file, so {path.parent} is not a prepared data set, or its preparation was interrupted; "
            f"{_AGAIN}"
        ) from None
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: cannot be read as JSON: {one_line(error)}; {_AGAIN}") from None
    version = about.get("format") if isinstance(about, dict) else None
    if version != FORMAT:
        raise InputError(f"{path}: the format version is {version!r}; expected {FORMAT}; {_AGAIN}")
    if not _is_complete(about):
        raise InputError(f"{path}: the description is incomplete or of wrong types; {_AGAIN}")
    if about.pop("seal", None) != seal_of(about):
        raise InputError(f"{path}: not the description that was written; {_AGAIN}")
    return dict(about)


def _is_complete(about: dict[str, Any]) -> bool:
    try:
        writers = about["counts"]["writers"]
        files = {"images.npy", "labels.npy"} | (set() if writers is None else {"writers.npy", "clients.csv"})
        numbers = [about["counts"]["samples"], 0 if writers is None else writers, *about["image"]]
        numbers += [entry["bytes"] for entry in about["files"].values()]
        texts = [about["name"], about["source"], about["licence"], *about["classes"]]
        texts += [entry["sha256"] for entry in about["files"].values()]
        return (
            set(about["files"]) == files
            and all(type(number) is int and number >= 0 for number in numbers)
            and all(isinstance(text, str) for text in texts)
            and isinstance(about["generated"], bool)
        )
    except (KeyError, TypeError, AttributeError):
        return False


def _check_size(path: Path, expected: int) -> None:
    try:
        size = path.stat().st_size
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}; {_AGAIN}") from None
    if size != expected:
        raise InputError(f"{path}: {size} bytes; expected {expected} as about.json says; {_AGAIN}")


def _load(path: Path, dtype: np.dtype[Any], shape: tuple[int, ...]) -> NDArray[Any]:
    try:
        array: NDArray[Any] = np.load(path, mmap_mode="r", allow_pickle=False)
    except Exception as error:  # NumPy parses the header with Python's own parser, which has errors of many types.
        problem = one_line(error).split(". ")[0][:160]  # NumPy goes on to say how to load pickles, which nobody should
        raise InputError(f"{path}: not a NumPy array file: {problem}; {_AGAIN}") from None
    if array.dtype != dtype or array.shape != shape:
        raise InputError(f"{path}: {array.dtype} {array.shape}; expected {dtype} {shape} as about.json says; {_AGAIN}")
    return array


def _check_range(path: Path, values: NDArray[np.int64], count: int, what: str) -> None:
    if len(values) and (values.min() < 0 or values.max() >= count):
        row = int(np.argmax((values < 0) | (values >= count)))
        raise InputError(f"{path}: row {row} is {values[row]}; expected {what} from 0 to {count - 1}; {_AGAIN}")
