"""Data sets of the tests, written to folders in the formats of their makers, and what all their tests ask."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from numpy.typing import NDArray
from PIL import Image

from fedpapers.errors import InputError

Writers = dict[str, tuple[NDArray[np.uint8], NDArray[np.int64]]]


def some_writers(sizes: Iterable[int] = (5, 3, 4), seed: int = 0) -> Writers:
    """Characters by writer: uint8 [n, 28, 28] with ink 255 on a ground of 0, and their classes."""
    draw = np.random.default_rng(seed)
    made: Writers = {}
    for k, n in enumerate(sizes):
        ink = draw.random((n, 28, 28)) < 0.2
        images = np.where(ink, draw.integers(1, 256, ink.shape), 0).astype(np.uint8)
        # The order of the numbers is not that of the names.
        made[f"f{7919 * (k + 1) % 1000}_{k}"] = images, draw.integers(0, 62, n)
    return made


def leaf_users(writers: Writers) -> dict[str, Any]:
    return {
        "users": list(writers),
        "num_samples": [len(y) for _, y in writers.values()],
        "user_data": {
            name: {"x": ((255 - x).reshape(len(x), -1) / 255).tolist(), "y": y.tolist()}
            for name, (x, y) in writers.items()
        },
    }


def write_leaf(folder: Path, writers: Writers, name: str = "all_data_0.json") -> None:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(leaf_users(writers)))


def write_hdf5(folder: Path, writers: Writers, name: str = "fed_emnist_train.h5") -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with h5py.File(folder / name, "w") as file:
        for writer, (x, y) in writers.items():
            group = file.create_group(f"examples/{writer}")
            group["pixels"] = ((255 - x) / 255).astype(np.float32)
            group["label"] = y.astype(np.int32)


def png(image: NDArray[np.uint8]) -> bytes:
    file = io.BytesIO()
    Image.fromarray(image).save(file, "PNG")
    return file.getvalue()


def parquet_rows(writers: Writers) -> dict[str, list[Any]]:
    rows: dict[str, list[Any]] = {"writer_id": [], "image": [], "label": []}
    for writer, (x, y) in writers.items():
        rows["writer_id"] += [writer] * len(y)
        rows["image"] += [{"bytes": png(255 - image), "path": None} for image in x]
        rows["label"] += y.tolist()
    return rows


def write_parquet(folder: Path, rows: dict[str, list[Any]], name: str = "train-00000-of-00001.parquet") -> None:
    folder.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(rows), folder / name)


def write_celeba(folder: Path, images: Iterable[tuple[str, int, bool]], seed: int = 0, size: int = 20) -> None:
    """CelebA's original layout; each image is (file, identity, whether it smiles)."""
    (folder / "img_align_celeba").mkdir(parents=True, exist_ok=True)
    images = list(images)
    for name, *_ in images:
        pixels = np.random.default_rng([seed, *name.encode()]).integers(0, 256, (size + 2, size, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(folder / "img_align_celeba" / name, "JPEG", quality=95)
    head = f"{len(images)}\nMale Smiling Young\n"
    lines = [f"{name}  1 {'1' if smile else '-1':>2} -1\n" for name, _, smile in images]
    (folder / "list_attr_celeba.txt").write_text(head + "".join(lines))
    (folder / "identity_CelebA.txt").write_text("".join(f"{name} {identity}\n" for name, identity, _ in images))


def snapshot(folder: Path) -> dict[str, bytes] | None:
    return {p.name: p.read_bytes() for p in folder.iterdir()} if folder.is_dir() else None


def refused(action: Callable[[], object], *needles: str) -> str:
    with pytest.raises(InputError) as caught:
        action()
    message = str(caught.value)
    assert message.isprintable(), message
    for needle in needles:
        assert needle in message
    return message
