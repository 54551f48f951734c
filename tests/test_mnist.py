"""MNIST from each of its sources, the on-disk form, and what is said about broken files."""

from __future__ import annotations

import errno
import gzip
import hashlib
import json
import resource
import shutil
import subprocess
import sys
import urllib.error
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from data_folders import refused, snapshot
from numpy.typing import NDArray

from fedpapers.data import format as on_disk
from fedpapers.data import mnist
from fedpapers.data.format import Dataset, read_dataset, verify_dataset, write_dataset
from fedpapers.data.mnist import prepare_mnist
from fedpapers.files import sealed

REAL = Path(__file__).parents[1].parent / "shared" / "data" / "mnist"
IMAGES, LABELS = "train-images-idx3-ubyte", "train-labels-idx1-ubyte"


@pytest.fixture
def real_mnist() -> Path:
    if not REAL.is_dir():
        pytest.skip(f"the real MNIST test files are not here: {REAL}")
    return REAL


def idx(array: NDArray[np.uint8]) -> bytes:
    shape = np.array(array.shape, dtype=">u4").tobytes()
    return bytes((0, 0, 8, array.ndim)) + shape + array.tobytes()


def some(n: int, seed: int = 0) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    draw = np.random.default_rng(seed)
    return draw.integers(0, 256, (n, 28, 28), dtype=np.uint8), draw.integers(0, 10, n, dtype=np.uint8)


def write_pair(folder: Path, n: int = 7, images: str = IMAGES, labels: str = LABELS) -> None:
    folder.mkdir(exist_ok=True)
    x, y = some(n)
    for name, array in ((images, x), (labels, y)):
        content = idx(array)
        (folder / name).write_bytes(gzip.compress(content) if name.endswith(".gz") else content)


# Sources


def test_embedded_digits(tmp_path: Path) -> None:
    prepare_mnist("embedded", tmp_path / "mnist")
    data = verify_dataset(tmp_path / "mnist")
    assert data.images.shape == (5000, 28, 28) and data.images.dtype == np.uint8
    assert isinstance(data.images, np.memmap) and not data.images.flags.writeable
    assert np.bincount(data.labels).tolist() == [500] * 10
    # Ink is bright on a dark ground: the border is empty, the middle is not.
    assert data.images[:, 0].mean() < 1 < 50 < data.images[:, 10:18, 12:16].mean()
    assert data.writers is None and data.writer_names == ()
    assert data.about["generated"] is False and data.about["source"] == "embedded"
    assert data.about["counts"]["samples"] == len(data) == 5000


def test_real_test_images_from_a_folder(tmp_path: Path, real_mnist: Path) -> None:
    (tmp_path / "raw").mkdir()
    for name in ("t10k-images-idx3-ubyte.gz", "t10k-labels-idx1-ubyte.gz"):
        shutil.copy(real_mnist / name, tmp_path / "raw" / name)
    prepare_mnist("folder", tmp_path / "mnist", tmp_path / "raw")
    data = verify_dataset(tmp_path / "mnist")
    assert len(data) == 10_000
    assert np.bincount(data.labels).tolist() == [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009]
    assert data.labels[:10].tolist() == [7, 2, 1, 0, 4, 1, 4, 9, 5, 9]
    assert data.about["name"] == "MNIST (10,000 digits)"
    assert [entry["samples"] for entry in data.about["origin"]] == [10_000, 10_000]


def test_real_labels_without_images_are_refused(tmp_path: Path, real_mnist: Path) -> None:
    refused(
        lambda: prepare_mnist("folder", tmp_path / "mnist", real_mnist), "train-labels", "images", "train-images-idx3"
    )
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("mark", ["-", "."])
@pytest.mark.parametrize("end", ["", ".gz"])
def test_each_name_of_the_files_is_known(tmp_path: Path, mark: str, end: str) -> None:
    write_pair(tmp_path / "raw", 5, f"train-images{mark}idx3-ubyte{end}", f"train-labels{mark}idx1-ubyte{end}")
    prepare_mnist("folder", tmp_path / "mnist", tmp_path / "raw")
    data = read_dataset(tmp_path / "mnist")
    x, y = some(5)
    assert np.array_equal(data.images, x) and np.array_equal(data.labels, y)


def test_train_comes_before_test_and_foreign_files_are_not_called_mnist(tmp_path: Path) -> None:
    raw = tmp_path / "raw"
    write_pair(raw, 5)
    write_pair(raw, 3, "t10k-images-idx3-ubyte.gz", "t10k-labels-idx1-ubyte.gz")
    prepare_mnist("folder", tmp_path / "mnist", raw)
    data = read_dataset(tmp_path / "mnist")
    assert np.array_equal(data.images, np.concatenate([some(5)[0], some(3)[0]]))
    assert [(entry["split"], entry["samples"]) for entry in data.about["origin"]] == [
        ("train", 5),
        ("train", 5),
        ("t10k", 3),
        ("t10k", 3),
    ]
    assert data.about["name"] == "MNIST-format files from 'raw'"
    assert data.about["origin"][2]["md5_uncompressed"] == hashlib.md5(idx(some(3)[0])).hexdigest()


def test_equal_input_gives_equal_bytes_also_over_an_older_data_set(tmp_path: Path) -> None:
    write_pair(tmp_path / "raw")
    prepare_mnist("folder", tmp_path / "a", tmp_path / "raw")
    write_dataset(tmp_path / "b", *with_writers(), **DESCRIPTION, writers=np.array([0, 1] * 3), writer_names=["x", "y"])
    (tmp_path / "b" / "notes.txt").write_text("mine")
    prepare_mnist("folder", tmp_path / "b", tmp_path / "raw")
    after = snapshot(tmp_path / "b")
    assert after is not None and after.pop("notes.txt") == b"mine"
    assert after == snapshot(tmp_path / "a")


def test_unknown_source_and_missing_path(tmp_path: Path) -> None:
    refused(lambda: prepare_mnist("embeded", tmp_path / "mnist"), "embeded", "did you mean 'embedded'?")
    refused(lambda: prepare_mnist("folder", tmp_path / "mnist"), "path")
    refused(
        lambda: prepare_mnist("folder", tmp_path / "mnist", tmp_path / "no"), "no such folder", str(tmp_path / "no")
    )
    assert list(tmp_path.iterdir()) == []


# Broken files


def put(name: str, content: bytes) -> Callable[[Path], object]:
    return lambda folder: (folder / name).write_bytes(content)


def drop(*names: str) -> Callable[[Path], object]:
    return lambda folder: [(folder / name).unlink() for name in names]


def folder_for_file(folder: Path) -> None:
    (folder / IMAGES).unlink()
    (folder / IMAGES).mkdir()


def file_for_folder(folder: Path) -> None:
    shutil.rmtree(folder)
    folder.write_bytes(X)


X, Y = (idx(array) for array in some(7))
ZIPPED = gzip.compress(X)
BAD = {
    "wrong magic": (put(IMAGES, b"PK\3\4" + X[4:]), IMAGES, "50 4b 03 04"),
    "labels in place of images": (put(IMAGES, Y), IMAGES, "magic"),
    "images in place of labels": (put(LABELS, X), LABELS, "magic"),
    "wrong dtype": (put(IMAGES, b"\0\0\x0c\3" + X[4:]), IMAGES, "int32"),
    "truncated": (put(IMAGES, X[:-1]), IMAGES, "truncated"),
    "truncated header": (put(IMAGES, X[:9]), IMAGES, "truncated"),
    "truncated magic": (put(IMAGES, X[:3]), IMAGES, "magic"),
    "trailing bytes": (put(IMAGES, X + b"\0"), IMAGES, "more bytes"),
    "trailing bytes, gzipped": (put(IMAGES, gzip.compress(X + b"\0")), IMAGES, "more bytes"),
    "four billion images": (put(IMAGES, X[:4] + b"\xff\xff\xff\xff" + X[8:]), IMAGES, "4294967295"),
    "four billion labels, gzipped": (put(LABELS, gzip.compress(Y[:4] + b"\xff" * 4 + Y[8:])), LABELS, "truncated"),
    "huge images": (put(IMAGES, X[:4] + b"\xff" * 12 + X[16:]), IMAGES, "28 × 28"),
    "no images": (put(IMAGES, X[:4] + b"\0" * 4 + X[8:16]), IMAGES, "no elements"),
    "32 × 32": (put(IMAGES, idx(np.zeros((7, 32, 32), np.uint8))), IMAGES, "32 × 32"),
    "fewer labels": (put(LABELS, idx(some(6)[1])), LABELS, "6 labels for the 7 images"),
    "label 10": (put(LABELS, Y[:-1] + b"\x0a"), LABELS, "label 6 is 10"),
    "empty": (put(IMAGES, b""), IMAGES, "empty"),
    "empty gzip": (put(IMAGES, gzip.compress(b"")), IMAGES, "empty"),
    "gzip cut": (put(IMAGES, ZIPPED[:-20]), IMAGES, "corrupt gzip"),
    "gzip checksum": (put(IMAGES, ZIPPED[:-8] + b"\0\0\0\0" + ZIPPED[-4:]), IMAGES, "corrupt gzip"),
    "gzip garbage": (put(IMAGES, ZIPPED[:10] + b"\xff" * 200), IMAGES, "corrupt gzip"),
    "no labels": (drop(LABELS), LABELS, IMAGES),
    "no images file": (drop(IMAGES), IMAGES, LABELS),
    "nothing": (drop(IMAGES, LABELS), IMAGES, "no MNIST files"),
    "a folder in place of a file": (folder_for_file, IMAGES, "cannot be read"),
    "a file in place of the folder": (file_for_folder, "raw", "not a folder"),
}


@pytest.mark.parametrize("case", BAD)
@pytest.mark.parametrize("existing", [False, True], ids=["new", "over"])
def test_broken_files_are_refused_in_one_line_and_leave_nothing(tmp_path: Path, case: str, existing: bool) -> None:
    spoil, name, needle = BAD[case]
    raw, destination = tmp_path / "raw", tmp_path / "mnist"
    write_pair(raw)
    if existing:
        prepare_mnist("folder", destination, raw)
    before = snapshot(destination)
    spoil(raw)
    refused(lambda: prepare_mnist("folder", destination, raw), name, needle)
    assert snapshot(destination) == before
    assert sorted(p.name for p in tmp_path.iterdir()) == (["mnist", "raw"] if existing else ["raw"])


def test_a_false_header_takes_no_memory(tmp_path: Path) -> None:
    write_pair(tmp_path / "raw")
    (tmp_path / "raw" / LABELS).write_bytes(Y[:4] + b"\xff" * 4 + Y[8:])
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    refused(lambda: prepare_mnist("folder", tmp_path / "mnist", tmp_path / "raw"), "truncated")
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000  # KiB


def test_a_full_disk_leaves_the_older_data_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_pair(tmp_path / "raw")
    prepare_mnist("folder", tmp_path / "mnist", tmp_path / "raw")
    before = snapshot(tmp_path / "mnist")
    write_pair(tmp_path / "raw", 9)

    def full(path: Path, value: object) -> None:
        path.write_bytes(b"{")
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(on_disk, "write_json", full)
    for destination in (tmp_path / "mnist", tmp_path / "new"):
        with pytest.raises(OSError, match="No space"):
            prepare_mnist("folder", destination, tmp_path / "raw")
    assert snapshot(tmp_path / "mnist") == before
    assert snapshot(tmp_path / "new") == {}


# Download


@pytest.fixture
def mirror(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A dead mirror, a mirror with a wrong file, and a good one, all on this disk."""
    good, wrong = tmp_path / "good", tmp_path / "wrong"
    write_pair(good, 5, f"{IMAGES}.gz", f"{LABELS}.gz")
    write_pair(good, 3, "t10k-images-idx3-ubyte.gz", "t10k-labels-idx1-ubyte.gz")
    sums = {path.name: hashlib.md5(path.read_bytes()).hexdigest() for path in good.iterdir()}
    wrong.mkdir()
    (wrong / f"{IMAGES}.gz").write_bytes(b"<html>moved</html>")
    mirrors = [(tmp_path / name).as_uri() + "/" for name in ("dead", "wrong", "good")]
    monkeypatch.setattr(mnist, "_resources", lambda: (mirrors, sums))
    return good


def test_download_takes_the_first_mirror_with_the_right_file(tmp_path: Path, mirror: Path) -> None:
    prepare_mnist("download", tmp_path / "mnist")
    assert len(read_dataset(tmp_path / "mnist")) == 8
    assert read_dataset(tmp_path / "mnist").about["source"] == "download"
    assert snapshot(tmp_path / "mnist-download") == snapshot(mirror)


def test_download_fetches_only_what_is_missing_or_broken(tmp_path: Path, mirror: Path) -> None:
    prepare_mnist("download", tmp_path / "mnist")
    cache = tmp_path / "mnist-download"
    (cache / f"{LABELS}.gz").write_bytes(b"broken")
    (mirror / f"{IMAGES}.gz").unlink()
    prepare_mnist("download", tmp_path / "mnist")
    assert gzip.decompress((cache / f"{LABELS}.gz").read_bytes()) == idx(some(5)[1])


def test_download_refuses_wrong_checksums(tmp_path: Path, mirror: Path) -> None:
    (mirror / f"{IMAGES}.gz").write_bytes(ZIPPED)
    message = refused(lambda: prepare_mnist("download", tmp_path / "mnist"), f"{IMAGES}.gz", "wrong checksum", "dead")
    assert mirror.as_uri() in message
    assert sorted(p.name for p in tmp_path.iterdir() if p.name.startswith("mnist")) in ([], ["mnist-download"])
    assert not (tmp_path / "mnist-download" / f"{IMAGES}.gz").exists()


def test_download_without_a_network_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def offline(*_: object, **__: object) -> None:
        raise urllib.error.URLError(OSError(-2, "Name or service not known"))

    monkeypatch.setattr("urllib.request.urlopen", offline)
    mirrors, sums = mnist._resources()
    assert sorted(sums) == [
        f"{split}-{kind}-ubyte.gz" for split in ("t10k", "train") for kind in ("images-idx3", "labels-idx1")
    ]
    assert len(mirrors) >= 2
    refused(
        lambda: prepare_mnist("download", tmp_path / "mnist"),
        *("no network", "source: embedded", "source: folder", "Name or service not known", *mirrors),
    )
    assert list(tmp_path.iterdir()) == []


# The on-disk form

DESCRIPTION = {
    "name": "Strokes (generated)",
    "source": "embedded",
    "generated": True,
    "licence": "none",
    "classes": ["a", "b", "c"],
    "origin": [{"generator": "test"}],
}


def with_writers() -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    draw = np.random.default_rng(1)
    return draw.integers(0, 256, (6, 4, 5, 3), dtype=np.uint8), np.array([0, 1, 2, 2, 1, 0])


@pytest.fixture
def written(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    images, labels = with_writers()
    names = ['Ann, "A"', "Ben\nB", "Çelik", "nobody"]
    write_dataset(folder, images, labels, **DESCRIPTION, writers=np.array([2, 2, 0, 1, 2, 0]), writer_names=names)
    return folder


def test_round_trip_with_writers_and_colours(written: Path) -> None:
    data = verify_dataset(written)
    images, labels = with_writers()
    assert np.array_equal(data.images, images) and np.array_equal(data.labels, labels)
    assert data.writers is not None and data.writers.tolist() == [2, 2, 0, 1, 2, 0]
    assert data.labels.dtype == data.writers.dtype == np.int64
    assert data.writer_names == ('Ann, "A"', "Ben\nB", "Çelik", "nobody")
    assert data.about["counts"] == {"samples": 6, "writers": 4, "labels": [2, 2, 2]}
    assert {key: data.about[key] for key in DESCRIPTION} == DESCRIPTION
    assert sorted(p.name for p in written.iterdir()) == [
        "about.json",
        "clients.csv",
        "images.npy",
        "labels.npy",
        "writers.npy",
    ]


def change(folder: Path, file: str, edit: Callable[[bytes], bytes]) -> None:
    (folder / file).write_bytes(edit((folder / file).read_bytes()))


def describe(folder: Path, edit: Callable[[dict[str, object]], object]) -> None:
    about = json.loads((folder / "about.json").read_text())
    edit(about)
    about.pop("seal", None)
    (folder / "about.json").write_text(json.dumps(sealed(about)))


def replace_labels(folder: Path, labels: NDArray[np.int64]) -> None:
    np.save(folder / "labels.npy", labels)


DAMAGE: dict[str, tuple[Callable[[Path], object], str]] = {
    "no about": (lambda f: (f / "about.json").unlink(), "about.json"),
    "no folder": (shutil.rmtree, "about.json"),
    "about is cut": (lambda f: change(f, "about.json", lambda b: b[:40]), "about.json"),
    "about is a list": (lambda f: change(f, "about.json", lambda b: b"[]"), "about.json"),
    "another version": (lambda f: describe(f, lambda a: a.update(format=2)), "version is 2"),
    "no version": (lambda f: describe(f, lambda a: a.pop("format")), "version is None"),
    "no counts": (lambda f: describe(f, lambda a: a.pop("counts")), "incomplete"),
    "no file list": (lambda f: describe(f, lambda a: a.pop("files")), "incomplete"),
    "negative count": (lambda f: describe(f, lambda a: a["counts"].update(samples=-1)), "about.json"),
    "another count": (lambda f: describe(f, lambda a: a["counts"].update(samples=5)), "images.npy"),
    "another number of writers": (lambda f: describe(f, lambda a: a["counts"].update(writers=9)), "clients.csv"),
    "images missing": (lambda f: (f / "images.npy").unlink(), "images.npy"),
    "images cut": (lambda f: change(f, "images.npy", lambda b: b[:-1]), "images.npy"),
    "images of another shape": (lambda f: np.save(f / "images.npy", np.zeros((6, 5, 4, 3), np.uint8)), "images.npy"),
    "no array": (lambda f: change(f, "images.npy", lambda b: b"x" * len(b)), "images.npy"),
    "broken header": (lambda f: change(f, "labels.npy", lambda b: b[:10] + b"(" * 50 + b[60:]), "labels.npy"),
    "label 3": (lambda f: replace_labels(f, np.array([0, 1, 2, 3, 1, 0])), "row 3 is 3"),
    "label -1": (lambda f: replace_labels(f, np.array([-1, 1, 2, 2, 1, 0])), "row 0 is -1"),
    "float labels": (lambda f: replace_labels(f, np.zeros(6)), "float64"),
    "no writers": (lambda f: (f / "writers.npy").unlink(), "writers.npy"),
    "other clients": (lambda f: change(f, "clients.csv", lambda b: b.replace(b"nobody", "Çelik".encode())), "clients"),
}


@pytest.mark.parametrize("case", DAMAGE)
def test_damaged_folders_are_refused_in_one_line(written: Path, case: str) -> None:
    damage, needle = DAMAGE[case]
    damage(written)
    refused(lambda: read_dataset(written), str(written), needle, "prepare")


def test_only_verifying_reads_every_byte(written: Path) -> None:
    change(written, "images.npy", lambda content: content[:-1] + bytes((content[-1] ^ 1,)))
    assert isinstance(read_dataset(written), Dataset)
    refused(lambda: verify_dataset(written), "images.npy", "SHA-256")


def test_arguments_that_do_not_fit_are_the_callers_mistake(tmp_path: Path) -> None:
    images, labels = with_writers()
    for bad in (
        {"images": images.astype(np.float32)},
        {"images": images[:0], "labels": labels[:0]},
        {"labels": labels[:5]},
        {"labels": labels + 1},
        {"writers": labels},
        {"writers": labels, "writer_names": ["a", "b", "b"]},
    ):
        with pytest.raises(ValueError, match=r"expected|twice|without"):
            write_dataset(tmp_path / "data", **({"images": images, "labels": labels} | DESCRIPTION | bad))
    assert list(tmp_path.iterdir()) == []


def test_training_jobs_import_nothing_heavy() -> None:
    code = (
        "import sys, fedpapers.data.format, fedpapers.data.partition;"
        "print([m for m in ('torch', 'torchvision', 'pandas', 'scipy', 'mlxtend', 'matplotlib') if m in sys.modules])"
    )
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "[]"
