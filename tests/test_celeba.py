"""CelebA in its original layout: read by name, in little memory; and what broken folders say."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from data_folders import refused, snapshot, write_celeba
from PIL import Image

from fedpapers.data.celeba import prepare_celeba
from fedpapers.data.format import read_dataset, verify_dataset
from fedpapers.data.inspect import data_inspect

# Identity 7 has 6 images, 12 has 5, 3 has 4 and 101 a single one; the names are not in the order of the identities.
IMAGES = [
    (f"{k:06}.jpg", identity, k % 3 == 0) for k, identity in enumerate([7, 12, 7, 3, 12, 7, 101, 3] * 2 + [12, 7], 1)
][:-2]
ATTRIBUTES, IDENTITIES = "list_attr_celeba.txt", "identity_CelebA.txt"


def expected_images(folder: Path, least: int) -> tuple[list[int], list[str]]:
    counts = {identity: sum(i == identity for _, i, _ in IMAGES) for _, identity, _ in IMAGES}
    kept = sorted((identity, name) for name, identity, _ in IMAGES if counts[identity] >= least)
    return [identity for identity, _ in kept], [name for _, name in kept]


def test_the_original_layout(tmp_path: Path) -> None:
    write_celeba(tmp_path / "raw", IMAGES, size=178)
    prepare_celeba(tmp_path / "raw", tmp_path / "out", min_samples=4)
    data = verify_dataset(tmp_path / "out")
    identities, names = expected_images(tmp_path / "raw", 4)
    assert [int(data.writer_names[k]) for k in data.writers] == identities  # type: ignore[union-attr]
    assert data.writer_names == ("3", "7", "12")  # ascending as numbers
    smiling = {name: smile for name, _, smile in IMAGES}
    assert data.labels.tolist() == [int(smiling[name]) for name in names]
    for row, name in enumerate(names):
        with Image.open(tmp_path / "raw" / "img_align_celeba" / name) as picture:
            assert np.array_equal(data.images[row], np.asarray(picture.resize((84, 84), Image.Resampling.BICUBIC)))
    assert data.about["classes"] == ["not smiling", "smiling"] and data.about["generated"] is False
    assert data.about["name"] == "CelebA (14 images of 3 identities)"
    found = data_inspect(tmp_path / "raw")
    assert found == {"kind": "celeba", "clients": 4, "samples": 16, "classes": 2, "problems": []}


def test_tables_are_read_by_name(tmp_path: Path) -> None:
    write_celeba(tmp_path / "a", IMAGES)
    write_celeba(tmp_path / "b", IMAGES)
    lines = (tmp_path / "b" / ATTRIBUTES).read_text().splitlines()
    lines[1] = "Young Male Smiling"
    for k, line in enumerate(lines[2:], 2):
        name, male, smile, young = line.split()
        lines[k] = f"{name} {young} {male} {smile}"
    (tmp_path / "b" / ATTRIBUTES).write_text("\r\n".join([*lines[:2], *reversed(lines[2:])]) + "\r\n")
    names = (tmp_path / "b" / IDENTITIES).read_text().splitlines()
    (tmp_path / "b" / IDENTITIES).write_text("\n".join(sorted(names, key=lambda line: line[::-1])) + "\n\n")
    for folder in "ab":
        prepare_celeba(tmp_path / folder, tmp_path / f"{folder}-out")
    a, b = snapshot(tmp_path / "a-out"), snapshot(tmp_path / "b-out")
    assert a is not None and b is not None
    a.pop("about.json"), b.pop("about.json")
    assert a == b


def test_the_minimum_is_five_unless_said_otherwise(tmp_path: Path) -> None:
    images = [(f"{k}.jpg", 1 + (k >= 5), True) for k in range(9)]
    write_celeba(tmp_path / "raw", images)
    prepare_celeba(tmp_path / "raw", tmp_path / "out")
    assert read_dataset(tmp_path / "out").writer_names == ("1",)
    prepare_celeba(tmp_path / "raw", tmp_path / "out", min_samples=1)
    assert read_dataset(tmp_path / "out").writer_names == ("1", "2")
    refused(lambda: prepare_celeba(tmp_path / "raw", tmp_path / "no", min_samples=6), "the largest has 5")
    refused(lambda: prepare_celeba(tmp_path / "raw", tmp_path / "no", min_samples=0), "min_samples is 0")


# Broken folders


def lines(file: str, edit: Callable[[list[str]], object]) -> Callable[[Path], object]:
    def spoil(folder: Path) -> None:
        content = (folder / file).read_text().splitlines()
        edit(content)
        (folder / file).write_text("\n".join(content) + "\n")

    return spoil


def line(file: str, number: int, value: str) -> Callable[[Path], object]:
    return lines(file, lambda content: content.__setitem__(number - 1, value))


def images(name: str, content: bytes | None) -> Callable[[Path], object]:
    def spoil(folder: Path) -> None:
        path = folder / "img_align_celeba" / name
        path.unlink(missing_ok=True)
        if content is not None:
            path.write_bytes(content)

    return spoil


def cut(folder: Path) -> None:
    path = folder / "img_align_celeba" / "000004.jpg"
    path.write_bytes(path.read_bytes()[:-200])


BAD: dict[str, tuple[Callable[[Path], object], tuple[str, ...]]] = {
    "an image is missing": (images("000004.jpg", None), ("img_align_celeba", "lacks 1 image", "'000004.jpg'")),
    "images missing": (
        lambda f: [p.unlink() for p in (f / "img_align_celeba").glob("00001*")],
        ("img_align_celeba", "lacks 7 images", "'000010.jpg'"),
    ),
    "an image in no table": (images("x.jpg", b""), (ATTRIBUTES, "'x.jpg'", "in img_align_celeba")),
    "no images": (
        lambda f: [p.unlink() for p in (f / "img_align_celeba").iterdir()],
        ("img_align_celeba", "no images"),
    ),
    "no folder of images": (lambda f: (f / "img_align_celeba").rename(f / "x"), ("img_align_celeba", "cannot be read")),
    "no attributes": (lambda f: (f / ATTRIBUTES).unlink(), (ATTRIBUTES, "no such file")),
    "no identities": (lambda f: (f / IDENTITIES).unlink(), (IDENTITIES, "no such file")),
    "empty attributes": (lambda f: (f / ATTRIBUTES).write_bytes(b""), (ATTRIBUTES, "empty")),
    "empty identities": (lambda f: (f / IDENTITIES).write_bytes(b"\n"), (IDENTITIES, "empty")),
    "attributes are no text": (lambda f: (f / ATTRIBUTES).write_bytes(b"\xff\xd8\xff"), (ATTRIBUTES, "text")),
    "a line short of a column": (line(ATTRIBUTES, 5, "000003.jpg 1 -1"), ("line 5", "2 attributes; expected 3")),
    "a wrong count": (line(ATTRIBUTES, 1, "17"), ("line 1", "says '17', but 16")),
    "no count": (lines(ATTRIBUTES, lambda c: c.pop(0)), ("line 2", "no attribute 'Smiling'")),
    "Smiling is unknown": (line(ATTRIBUTES, 2, "Male Smile Young"), ("line 2", "no attribute 'Smiling'")),
    "Smiling is 0": (line(ATTRIBUTES, 6, "000004.jpg 1 0 -1"), ("line 6", "Smiling is '0'", "1 or -1")),
    "attributes twice": (line(ATTRIBUTES, 6, "000003.jpg 1 1 -1"), ("line 6", "'000003.jpg'", "twice")),
    "an image without attributes": (
        lines(ATTRIBUTES, lambda c: (c.pop(), c.__setitem__(0, "15"))),
        (ATTRIBUTES, "lacks 1 image", "'000016.jpg'"),
    ),
    "an image without identity": (lines(IDENTITIES, lambda c: c.pop(2)), (IDENTITIES, "lacks 1 image", "'000003.jpg'")),
    "an identity without image": (
        lines(IDENTITIES, lambda c: c.append("000099.jpg 55")),
        ("lacks 1 image", "'000099.jpg'", f"in {IDENTITIES}"),
    ),
    "identities twice": (lines(IDENTITIES, lambda c: c.append(c[0])), ("line 17", "'000001.jpg'", "twice")),
    "an identity is a name": (line(IDENTITIES, 3, "000003.jpg Ann"), ("line 3", "'Ann'", "a number")),
    "a third column": (line(IDENTITIES, 3, "000003.jpg 7 8"), ("line 3", "3 columns")),
    "a name with an escape": (line(IDENTITIES, 3, "\x1b[31m.jpg 7"), (IDENTITIES, "lacks 1 image")),
    "a name outside the folder": (line(IDENTITIES, 3, "../secret.jpg 7"), ("lacks 1 image", "'../secret.jpg'")),
    "no JPEG": (images("000004.jpg", b"<html>"), ("000004.jpg", "neither JPEG nor PNG")),
    "an empty JPEG": (images("000004.jpg", b""), ("000004.jpg", "cannot be decoded")),
    "a JPEG cut": (cut, ("000004.jpg", "cannot be decoded")),
}


@pytest.mark.parametrize("case", BAD)
def test_broken_folders_are_refused_in_one_line_and_leave_nothing(tmp_path: Path, case: str) -> None:
    spoil, needles = BAD[case]
    raw = tmp_path / "raw"
    write_celeba(raw, IMAGES, size=60)
    prepare_celeba(raw, tmp_path / "old", min_samples=1)
    before = snapshot(tmp_path / "old")
    spoil(raw)
    for out in ("old", "new"):
        refused(lambda out=out: prepare_celeba(raw, tmp_path / out, min_samples=1), str(raw), *needles[:1])
    assert snapshot(tmp_path / "old") == before
    assert not (tmp_path / "new").exists() or list((tmp_path / "new").iterdir()) == []
    problems = data_inspect(raw)["problems"]
    assert any(all(needle in problem for needle in needles) for problem in problems), problems
    assert all(problem.isprintable() for problem in problems)


def test_a_missing_folder(tmp_path: Path) -> None:
    refused(lambda: prepare_celeba(tmp_path / "no", tmp_path / "out"), "no such folder")
    assert list(tmp_path.iterdir()) == []


def test_very_many_problems_are_counted(tmp_path: Path) -> None:
    write_celeba(tmp_path, IMAGES)
    with (tmp_path / IDENTITIES).open("a") as file:
        file.write("one two three\n" * 300)
    problems = data_inspect(tmp_path)["problems"]
    assert len(problems) == 101 and problems[-1] == "and 200 more problems"


# Memory

LIMITED = """
import resource, sys
from pathlib import Path
import fedpapers.data.celeba as celeba
data = int(Path("/proc/self/status").read_text().split("VmData:")[1].split()[0]) * 1024
resource.setrlimit(resource.RLIMIT_DATA, (data + (24 << 20),) * 2)
celeba.prepare_celeba(Path(sys.argv[1]), Path(sys.argv[2]))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the limit on anonymous memory is Linux's")
def test_images_are_streamed(tmp_path: Path) -> None:
    many = 4000
    raw = tmp_path / "raw"
    write_celeba(raw, [("0.jpg", 1, True)])
    for k in range(1, many):
        os.link(raw / "img_align_celeba" / "0.jpg", raw / "img_align_celeba" / f"{k}.jpg")
    (raw / ATTRIBUTES).write_text(f"{many}\nSmiling\n" + "".join(f"{k}.jpg {1 - 2 * (k % 2)}\n" for k in range(many)))
    (raw / IDENTITIES).write_text("".join(f"{k}.jpg {k % 200}\n" for k in range(many)))
    subprocess.run([sys.executable, "-c", LIMITED, str(raw), str(tmp_path / "out")], check=True)
    assert (tmp_path / "out" / "images.npy").stat().st_size > 80e6
    assert read_dataset(tmp_path / "out").about["counts"]["writers"] == 200
