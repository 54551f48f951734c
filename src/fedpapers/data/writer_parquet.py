"""FEMNIST as parquet, as it lies on public hubs: a row a sample, in one or more `*.parquet` files.

Columns: `writer_id` (text or integer), `image`, and `label` or `character` (integer, in LEAF's order of the classes).
An image is a struct whose `bytes` are a PNG, or the same bytes bare, or raw pixels: 784 bytes, or a list of 784 (or 28
lists of 28) integers up to 255 or floats up to 1. The files lie in the folder itself or in its `data/`.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray
from PIL import Image

from fedpapers.data.characters import (
    PIXELS,
    SIDE,
    Report,
    Samples,
    in_order,
    label_problem,
    name_problem,
    pixel_problem,
    shown,
    to_bytes,
)
from fedpapers.data.format import one_line

_LABELS = ("label", "character")
_ROWS = 2048
_MAGIC = (b"\x89PNG", b"\xff\xd8\xff")


def find_parquet(path: Path) -> list[Path]:
    """The parquet files in a folder, train before test; empty where there are none. A file stands for itself."""
    if path.is_file():
        return [path] if path.suffix == ".parquet" else []
    return in_order(path.glob("*.parquet")) or in_order(path.glob("data/*.parquet"))


def read_parquet(files: list[Path], report: Report) -> Iterator[Samples]:
    """The samples, some rows at a time, by writer; a row with a problem is told to `report` and left out."""
    for path in files:
        try:
            with pq.ParquetFile(path) as file:
                yield from _read_file(path, file, report)
        except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
            report(f"{path}: not a parquet file, or a broken one: {one_line(error)[:160]}; fetch it again")


def _read_file(path: Path, file: Any, report: Report) -> Iterator[Samples]:
    names = file.schema_arrow.names
    label = next((name for name in _LABELS if name in names), None)
    missing = [name for name in ("writer_id", "image") if name not in names] + ([] if label else ["label"])
    if missing:
        report(f"{path}: no column {', '.join(missing)}; expected writer_id, image and label (or character)")
        return
    if file.metadata.num_rows == 0:
        report(f"{path}: no rows; expected at least one")
    first = 0
    for batch in file.iter_batches(_ROWS, columns=["writer_id", "image", label]):
        writers, images, labels = (batch.column(name).to_pylist() for name in ("writer_id", "image", label))
        yield from _group(path, first, writers, images, labels, report)
        first += batch.num_rows


def _group(
    path: Path, first: int, writers: list[Any], images: list[Any], labels: list[Any], report: Report
) -> Iterator[Samples]:
    """The rows of one batch by writer, each writer's in the order of the file."""
    rows: dict[str, list[tuple[NDArray[np.uint8], int]]] = {}
    for row, (writer, image, label) in enumerate(zip(writers, images, labels, strict=True), start=first):
        problem = _writer_problem(writer) or _label_problem(label)
        if not problem:
            pixels, problem = _decode(image)
        if problem:
            report(f"{path}: row {row}: {problem}")
        else:
            rows.setdefault(str(writer), []).append((pixels, label))
    for writer, samples in rows.items():
        yield Samples(
            writer, np.stack([image for image, _ in samples]), np.array([label for _, label in samples], np.int64)
        )


def _writer_problem(writer: Any) -> str | None:
    if not isinstance(writer, (str, int)):
        return f"writer_id is {writer!r:.40}; expected a name or a number"
    problem = name_problem(str(writer))
    return f"the writer_id {shown(str(writer))} {problem}" if problem else None


def _label_problem(label: Any) -> str | None:
    if type(label) is not int:
        return f"label is {label!r:.40}; expected an integer"
    problem = label_problem(np.array([label]))
    return problem.replace("label 0", "label") if problem else None


def _decode(image: Any) -> tuple[NDArray[np.uint8], str | None]:
    """One image as uint8 [28, 28], or what is wrong with it."""
    if isinstance(image, dict):
        image = image.get("bytes")
    if isinstance(image, bytes):
        return _decode_bytes(image)
    if isinstance(image, list):
        return _decode_list(image)
    return _NOTHING, "the image has no bytes; expected a PNG or raw pixels in the file itself"


def _decode_bytes(content: bytes) -> tuple[NDArray[np.uint8], str | None]:
    if len(content) == PIXELS and not content.startswith(_MAGIC):
        return np.frombuffer(content, np.uint8).reshape(SIDE, SIDE), None
    try:
        with Image.open(io.BytesIO(content), formats=("PNG", "JPEG")) as picture:
            if picture.size != (SIDE, SIDE):
                return _NOTHING, f"an image of {picture.width} × {picture.height} pixels; expected 28 × 28"
            if picture.mode.startswith(("I", "F")):
                return _NOTHING, f"an image with pixels of type {picture.mode}; expected 8 bits of grey"
            return np.asarray(picture.convert("L")), None
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
        return _NOTHING, f"the image cannot be decoded: {_decoding(error)}; expected a PNG or 784 raw bytes"


def _decoding(error: Exception) -> str:
    return "neither PNG nor JPEG" if "cannot identify" in str(error) else one_line(error)[:80]


def _decode_list(values: list[Any]) -> tuple[NDArray[np.uint8], str | None]:
    try:
        pixels = np.array(values)
    except ValueError:
        pixels = np.empty(0)
    if pixels.shape not in ((PIXELS,), (SIDE, SIDE)) or pixels.dtype.kind not in "iuf":
        return _NOTHING, f"raw pixels of shape {pixels.shape}; expected 784 or 28 × 28 numbers"
    pixels = pixels.reshape(SIDE, SIDE)
    if pixels.dtype.kind == "f":
        problem = pixel_problem(pixels[None])
        return (_NOTHING, problem) if problem else (to_bytes(pixels), None)
    if pixels.min() < 0 or pixels.max() > 255:
        return _NOTHING, f"pixels from {pixels.min()} to {pixels.max()}; expected 0 to 255"
    return pixels.astype(np.uint8), None


_NOTHING = np.empty((0, 0), np.uint8)
