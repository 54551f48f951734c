"""FEMNIST in its three folder formats: the same data set from each, LEAF's sampling, and what broken folders say."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from data_folders import (
    Writers,
    leaf_users,
    parquet_rows,
    png,
    refused,
    snapshot,
    some_writers,
    write_hdf5,
    write_leaf,
    write_parquet,
)

from fedpapers.data.femnist import prepare_femnist
from fedpapers.data.format import Dataset, read_dataset, verify_dataset
from fedpapers.data.inspect import data_inspect
from fedpapers.data.writers import sample_writers, split_as_leaf

REAL = Path(__file__).parents[1].parent / "shared" / "data" / "mnist_by_writer_100.npz"


def prepared(folder: Path, **options: Any) -> Dataset:
    out = folder.with_name(f"{folder.name}-out")
    prepare_femnist(folder, out, **options)
    return verify_dataset(out)


def check(data: Dataset, writers: Writers) -> None:
    """The data set holds these writers by name, each one's samples in order."""
    names = sorted(writers)
    assert data.writer_names == tuple(names)
    assert np.array_equal(data.images, np.concatenate([writers[name][0] for name in names]))
    assert np.array_equal(data.labels, np.concatenate([writers[name][1] for name in names]))
    assert data.writers is not None
    assert data.writers.tolist() == [k for k, name in enumerate(names) for _ in writers[name][1]]


def same_but_for_their_origin(*folders: Path) -> None:
    contents = [snapshot(folder) for folder in folders]
    abouts = []
    for content in contents:
        assert content is not None
        about = json.loads(content.pop("about.json"))
        del about["origin"], about["seal"]
        abouts.append(about)
    assert all(content == contents[0] for content in contents)
    assert all(about == abouts[0] for about in abouts)


# The formats


def test_real_writers_are_the_same_in_all_formats(tmp_path: Path) -> None:
    if not REAL.is_file():
        pytest.skip(f"the real digits by writer are not here: {REAL}")
    real = np.load(REAL)
    writers = {str(w): (real["x"][real["writer"] == w], real["y"][real["writer"] == w]) for w in set(real["writer"])}
    names = list(writers)
    for part in range(2):
        write_leaf(tmp_path / "json", {w: writers[w] for w in names[part::2]}, f"all_data_{part}.json")
    write_parquet(tmp_path / "parquet", parquet_rows(writers))
    write_hdf5(tmp_path / "hdf5", writers)
    for kind in ("json", "parquet", "hdf5"):
        check(prepared(tmp_path / kind), writers)
    same_but_for_their_origin(*(tmp_path / f"{kind}-out" for kind in ("json", "parquet", "hdf5")))
    about = read_dataset(tmp_path / "json-out").about
    assert about["name"] == "FEMNIST (11,705 characters of 100 writers)" and about["generated"] is False
    found = data_inspect(tmp_path / "parquet")
    assert found == {"kind": "writer-parquet", "clients": 100, "samples": 11_705, "classes": 10, "problems": []}


def test_the_order_of_files_users_and_rows_does_not_matter(tmp_path: Path) -> None:
    writers = some_writers()
    a, b, c = writers
    write_leaf(tmp_path / "json", {c: writers[c], a: writers[a]}, "all_data_1.json")
    write_leaf(tmp_path / "json", {b: writers[b]}, "all_data_0.json")
    rows = parquet_rows(writers)
    order = np.argsort([k % 3 for k in range(12)], kind="stable")  # of each writer still ascending, but interleaved
    mixed = sorted(order.tolist(), key=lambda k: (k % 5 if rows["writer_id"][k] == a else 9, k))
    write_parquet(tmp_path / "parquet", {name: [column[k] for k in mixed] for name, column in rows.items()})
    write_hdf5(tmp_path / "hdf5", writers)
    for kind in ("json", "parquet", "hdf5"):
        check(prepared(tmp_path / kind), writers)
    same_but_for_their_origin(*(tmp_path / f"{kind}-out" for kind in ("json", "parquet", "hdf5")))


def test_train_and_test_are_put_together_train_first(tmp_path: Path) -> None:
    writers = some_writers()
    train = {name: (x[:-1], y[:-1]) for name, (x, y) in writers.items()}
    test = {name: (x[-1:], y[-1:]) for name, (x, y) in writers.items()}
    write_leaf(tmp_path / "json", test, "test/all_data_niid_0_test_9.json")
    write_leaf(tmp_path / "json", train, "train/all_data_niid_0_train_9.json")
    write_parquet(tmp_path / "parquet" / "data", parquet_rows(test), "test-00000-of-00001.parquet")
    write_parquet(tmp_path / "parquet" / "data", parquet_rows(train), "train-00000-of-00001.parquet")
    write_hdf5(tmp_path / "hdf5", test, "fed_emnist_test.h5")
    write_hdf5(tmp_path / "hdf5", train, "fed_emnist_train.h5")
    for kind in ("json", "parquet", "hdf5"):
        check(prepared(tmp_path / kind), writers)


def test_users_that_leafs_split_emptied_are_passed_over(tmp_path: Path) -> None:
    writers = some_writers()
    content = leaf_users(writers)
    content["user_data"]["alone"] = {"x": [], "y": []}
    (tmp_path / "json").mkdir()
    (tmp_path / "json" / "all_data_0.json").write_text(json.dumps(content))
    check(prepared(tmp_path / "json"), writers)


def test_a_single_file_and_user_data_first(tmp_path: Path) -> None:
    writers = some_writers()
    path = tmp_path / "mine.json"
    path.write_text(json.dumps(dict(reversed(leaf_users(writers).items()))))
    prepare_femnist(path, tmp_path / "out")
    check(read_dataset(tmp_path / "out"), writers)
    assert data_inspect(path)["kind"] == "leaf-json"


IMAGES: dict[str, Callable[[Any], Any]] = {
    "png, ink on paper": lambda x: {"bytes": png(255 - x), "path": "a.png"},
    "png, light on dark": lambda x: {"bytes": png(x), "path": "a.png"},
    "png in three colours": lambda x: {"bytes": png(np.repeat(255 - x[..., None], 3, axis=2)), "path": None},
    "bare png": lambda x: png(255 - x),
    "raw bytes": lambda x: (255 - x).tobytes(),
    "lists of integers": lambda x: x.tolist(),
    "list of floats": lambda x: ((255 - x).reshape(-1) / 255).tolist(),
}


@pytest.mark.parametrize("case", IMAGES)
@pytest.mark.parametrize("column", ["label", "character"])
def test_parquet_in_each_form(tmp_path: Path, case: str, column: str) -> None:
    writers = some_writers()
    rows = parquet_rows(writers)
    rows["image"] = [IMAGES[case](image) for x, _ in writers.values() for image in x]
    rows[column] = rows.pop("label")
    write_parquet(tmp_path / "parquet", rows)
    check(prepared(tmp_path / "parquet"), writers)


def test_equal_input_gives_equal_bytes_also_over_an_older_data_set(tmp_path: Path) -> None:
    write_leaf(tmp_path / "json", some_writers())
    prepare_femnist(tmp_path / "json", tmp_path / "a")
    before = snapshot(tmp_path / "a")
    prepare_femnist(tmp_path / "json", tmp_path / "a")
    assert snapshot(tmp_path / "a") == before


# LEAF's sampling and split


def sampled_by_leaf(counts: list[int], order: list[int], fraction: float, least: int) -> list[int]:
    """The loop of LEAF's sample.py and remove_users.py, for a given order of the users."""
    wanted = int(fraction * sum(counts))
    taken, total = [0] * len(counts), 0
    while total < wanted:
        user = order.pop(0)
        taken[user] = min(counts[user], wanted - total)
        total += taken[user]
    return [n if n >= least else 0 for n in taken]


@pytest.mark.parametrize("fraction", [0.05, 0.3, 0.77, 1.0])
def test_sampling_follows_leaf(fraction: float) -> None:
    counts = np.random.default_rng(0).integers(1, 300, 200).tolist()
    everybody = sample_writers(counts, fraction, 1, 3)
    assert everybody.sum() == int(fraction * sum(counts))
    # LEAF's order is not ours, but for the order that was drawn the outcome is the same: who is whole, who is cut.
    whole = [k for k in range(200) if everybody[k] == counts[k]]
    cut = [k for k in range(200) if 0 < everybody[k] < counts[k]]
    assert len(cut) <= 1
    order = whole + cut + [k for k in range(200) if k not in whole + cut]
    for least in (1, 100):
        assert sample_writers(counts, fraction, least, 3).tolist() == sampled_by_leaf(counts, order[:], fraction, least)
    if fraction < 1:
        assert sample_writers(counts, fraction, 1, 4).tolist() != everybody.tolist()


def test_sampling_of_a_folder_keeps_a_writers_first_samples(tmp_path: Path) -> None:
    writers = some_writers([6, 7, 8, 9])
    write_leaf(tmp_path / "json", writers)
    write_hdf5(tmp_path / "hdf5", writers)
    names = sorted(writers)
    taken = sample_writers([len(writers[name][1]) for name in names], 0.6, 2, 5)
    expected = {
        name: (writers[name][0][:n], writers[name][1][:n]) for name, n in zip(names, taken.tolist(), strict=True) if n
    }
    data = prepared(tmp_path / "json", fraction=0.6, min_samples=2, seed=5)
    check(data, expected)
    assert data.about["origin"][-1] == {"fraction": 0.6, "min_samples": 2, "seed": 5}
    prepared(tmp_path / "hdf5", fraction=0.6, min_samples=2, seed=5)
    same_but_for_their_origin(tmp_path / "json-out", tmp_path / "hdf5-out")
    # Inspecting counts before all this.
    assert data_inspect(tmp_path / "json")["samples"] == 30


def test_sampling_out_of_range(tmp_path: Path) -> None:
    write_leaf(tmp_path / "json", some_writers())
    for options, needle in (
        ({"fraction": 0.0}, "fraction is 0.0"),
        ({"fraction": 1.1}, "fraction is 1.1"),
        ({"min_samples": 0}, "min_samples is 0"),
        ({"min_samples": 100}, "the largest has 5"),
    ):
        refused(lambda options=options: prepare_femnist(tmp_path / "json", tmp_path / "out", **options), needle)
    assert [p.name for p in tmp_path.iterdir()] == ["json"]


def test_split_follows_leaf() -> None:
    sizes = [1, 2, 3, 9, 10, 11, 19, 20, 226, 0]
    ends = np.cumsum(sizes)
    samples = [np.arange(end - n, end) for n, end in zip(sizes, ends, strict=True)]
    made = split_as_leaf(samples, [f"c{n}" for n in sizes], 0.9, 0)
    assert made.clients == tuple(f"c{n}" for n in sizes if n >= 2)
    kept = [own for own in samples if len(own) >= 2]
    for own, train, test in zip(kept, made.train, made.test, strict=True):
        assert len(train) == max(1, int(0.9 * len(own))) and len(test) >= 1
        assert np.array_equal(np.sort(np.concatenate([train, test])), own)
    refused(lambda: split_as_leaf([np.arange(1)], ["a"], 0.9, 0), "2 samples")
    refused(lambda: split_as_leaf(samples, [str(n) for n in sizes], 1.0, 0), "train_fraction")


# Broken folders


def in_json(edit: Callable[[dict[str, Any]], object]) -> Callable[[Path], object]:
    def spoil(folder: Path) -> None:
        content = leaf_users(some_writers())
        edit(content)
        (folder / "all_data_0.json").write_text(json.dumps(content))

    return spoil


def in_user(edit: Callable[[dict[str, Any]], object]) -> Callable[[Path], object]:
    return in_json(lambda content: edit(content["user_data"][content["users"][1]]))


def text(edit: Callable[[str], str]) -> Callable[[Path], object]:
    return lambda folder: (folder / "all_data_0.json").write_text(edit((folder / "all_data_0.json").read_text()))


def rename(old: str, new: str) -> Callable[[dict[str, Any]], None]:
    def edit(content: dict[str, Any]) -> None:
        content["users"] = [new if user == old else user for user in content["users"]]
        content["user_data"][new] = content["user_data"].pop(old)

    return edit


A, B, C = some_writers()
BAD_JSON: dict[str, tuple[Callable[[Path], object], tuple[str, ...]]] = {
    "y is shorter": (in_user(lambda u: u["y"].pop()), (B, "x has 3", "y has 2")),
    "x is shorter": (in_user(lambda u: u["x"].pop()), (B, "x has 2", "y has 3")),
    "no y": (in_user(lambda u: u.pop("y")), (B, "x and y")),
    "user is a list": (in_json(lambda c: c["user_data"].update({B: [1]})), (B, "x and y")),
    "a user listed twice": (in_json(lambda c: (c["users"].append(B), c["num_samples"].append(3))), (B, "twice")),
    "a user's data twice": (text(lambda t: t.replace(f'"{B}": {{', f'"{A}": {{')), (A, "already in")),
    "a user in two files": (lambda f: write_leaf(f, {B: some_writers()[B]}, "all_data_1.json"), (B, "all_data_0.json")),
    "num_samples lies": (in_json(lambda c: c["num_samples"].__setitem__(1, 4)), (B, "says 4", "there are 3")),
    "num_samples is short": (in_json(lambda c: c["num_samples"].pop()), ("2 numbers for 3 users",)),
    "num_samples is missing": (in_json(lambda c: c.pop("num_samples")), ("no key 'num_samples'",)),
    "users is missing": (in_json(lambda c: c.pop("users")), ("no key 'users'",)),
    "users are empty": (in_json(lambda c: c.update(users=[], num_samples=[], user_data={})), ("users is empty",)),
    "user_data is missing": (in_json(lambda c: c.pop("user_data")), (A, "not in user_data")),
    "data of an unknown user": (in_json(lambda c: (c["users"].pop(1), c["num_samples"].pop(1))), (B, "not in users")),
    "label 62": (in_user(lambda u: u["y"].__setitem__(2, 62)), (B, "label 2 is 62", "0 to 61")),
    "label -1": (in_user(lambda u: u["y"].__setitem__(0, -1)), (B, "label 0 is -1")),
    "label A": (in_user(lambda u: u["y"].__setitem__(0, "A")), (B, "label 0 is 'A'")),
    "label 1.5": (in_user(lambda u: u["y"].__setitem__(0, 1.5)), (B, "label 0 is 1.5")),
    "783 pixels": (in_user(lambda u: u["x"][1].pop()), (B, "image 1 has 783", "784")),
    "pixels are text": (in_user(lambda u: u["x"][1].__setitem__(5, "1")), (B, "image 1", "not numbers")),
    "NaN": (in_user(lambda u: u["x"][0].__setitem__(0, float("nan"))), ("NaN", A)),
    "huge pixel": (in_user(lambda u: u["x"][2].__setitem__(7, 1.2)), (B, "image 2: pixel 7 is 1.2", "0 (ink) to 1")),
    "0 to 255": (in_user(lambda u: u.update(x=[[255 * v for v in x] for x in u["x"]])), (B, "out of range")),
    "ink on dark": (
        in_json(lambda c: [u.update(x=[[1 - v for v in image] for image in u["x"]]) for u in c["user_data"].values()]),
        ("ground is dark", "paper 1"),
    ),
    "truncated": (text(lambda t: t[: len(t) // 2]), ("truncated",)),
    "empty file": (text(lambda t: ""), ("truncated",)),
    "no JSON": (text(lambda t: "<html>moved</html>"), ("not valid JSON",)),
    "a list": (text(lambda t: "[1, 2]"), ("no key 'users'",)),
    "line break in a name": (in_json(rename(B, "a\nb")), ("'a\\nb'", "unprintable")),
    "escape in a name": (in_json(rename(B, "a\x1b[31m")), ("unprintable",)),
    "no name": (in_json(rename(B, " ")), ("is empty",)),
    "a folder in place of a file": (lambda f: (f / "all_data_1.json").mkdir(), ("all_data_1.json", "cannot be read")),
    "all and train": (lambda f: write_leaf(f, some_writers(), "train/a.json"), ("one of the two",)),
}


def hdf5(edit: Callable[[h5py.File], object]) -> Callable[[Path], object]:
    def spoil(folder: Path) -> None:
        with h5py.File(folder / "fed_emnist_train.h5", "r+") as file:
            edit(file)

    return spoil


def array(name: str, value: Any) -> Callable[[Path], object]:
    def edit(file: h5py.File) -> None:
        del file[f"examples/{B}/{name}"]
        if value is not None:
            file[f"examples/{B}/{name}"] = value

    return hdf5(edit)


ONES = np.ones((3, 28, 28), np.float32)
BAD_HDF5: dict[str, tuple[Callable[[Path], object], tuple[str, ...]]] = {
    "no HDF5": (lambda f: (f / "fed_emnist_train.h5").write_bytes(b"\x89PNG" * 50), ("not an HDF5 file",)),
    "HDF5 cut": (
        lambda f: (f / "fed_emnist_train.h5").write_bytes((f / "fed_emnist_train.h5").read_bytes()[:3000]),
        ("not an HDF5 file",),
    ),
    "no examples": (hdf5(lambda file: file.move("examples", "clients")), ("no group 'examples'",)),
    "no pixels": (array("pixels", None), (B, "no 'pixels'")),
    "no label": (array("label", None), (B, "no 'label'")),
    "fewer labels": (array("label", np.zeros(2, np.int32)), (B, "pixels has 3", "label has 2")),
    "label 62": (array("label", np.array([0, 62, 1])), (B, "label 1 is 62")),
    "float labels": (array("label", np.zeros(3)), (B, "float64")),
    "27 × 28": (array("pixels", ONES[:, 1:]), (B, "(3, 27, 28)")),
    "bytes": (array("pixels", np.zeros((3, 28, 28), np.uint8)), (B, "uint8")),
    "NaN": (array("pixels", ONES * np.nan), (B, "not a finite number")),
    "255": (array("pixels", ONES * 255), (B, "is 255, out of range")),
    "writer is an array": (
        hdf5(lambda file: (file.__delitem__(f"examples/{B}"), file["examples"].__setitem__(B, np.zeros(3)))),
        (B, "pixels and label"),
    ),
    "line break in a name": (hdf5(lambda file: file.move(f"examples/{B}", "examples/a\nb")), ("unprintable",)),
    "the same writers again": (lambda f: write_hdf5(f, some_writers(), "digits_train.h5"), ("already in",)),
}


def rows(edit: Callable[[dict[str, list[Any]]], object]) -> Callable[[Path], object]:
    def spoil(folder: Path) -> None:
        made = parquet_rows(some_writers())
        edit(made)
        write_parquet(folder, made)

    return spoil


def image(value: bytes | None) -> Callable[[Path], object]:
    return rows(lambda r: r["image"].__setitem__(4, {"bytes": value, "path": None}))


def raw(value: Any) -> Callable[[Path], object]:
    return rows(lambda r: r.update(image=[value] * 12))


GOOD_PNG = png(np.full((28, 28), 255, np.uint8))
BAD_PARQUET: dict[str, tuple[Callable[[Path], object], tuple[str, ...]]] = {
    "no parquet": (lambda f: (f / "train-00000-of-00001.parquet").write_bytes(b"no" * 50), ("not a parquet file",)),
    "no label": (rows(lambda r: r.pop("label")), ("no column label",)),
    "no image and writer": (rows(lambda r: (r.pop("image"), r.pop("writer_id"))), ("no column writer_id, image",)),
    "no rows": (rows(lambda r: [column.clear() for column in r.values()]), ("no rows",)),
    "no PNG": (image(b"\x89PNG\r\n\x1a\n" + b"x" * 40), ("row 4", "cannot be decoded")),
    "PNG cut": (image(GOOD_PNG[:-30]), ("row 4", "cannot be decoded")),
    "text for an image": (image(b"hello"), ("row 4", "neither PNG nor JPEG")),
    "no bytes": (image(None), ("row 4", "no bytes")),
    "32 × 32": (image(png(np.zeros((32, 32), np.uint8))), ("row 4", "32 × 32")),
    "16 bits": (image(png(np.zeros((28, 28), np.uint16))), ("row 4", "8 bits")),
    "783 raw": (raw([0] * 783), ("row 0", "(783,)")),
    "raw 256": (raw([256] * 784), ("row 0", "0 to 255")),
    "raw NaN": (raw([float("nan")] * 784), ("row 0", "not a finite number")),
    "ragged": (raw([[1, 2], [3]]), ("row 0", "raw pixels")),
    "label 62": (rows(lambda r: r["label"].__setitem__(3, 62)), ("row 3", "label is 62")),
    "label is null": (rows(lambda r: r["label"].__setitem__(3, None)), ("row 3", "label is None")),
    "label is text": (rows(lambda r: r.update(label=["a"] * 12)), ("row 0", "label is 'a'")),
    "writer is null": (rows(lambda r: r["writer_id"].__setitem__(3, None)), ("row 3", "writer_id is None")),
    "line break in a name": (rows(lambda r: r["writer_id"].__setitem__(3, "a\r\nb")), ("row 3", "unprintable")),
}

WRITE: dict[str, Callable[[Path], object]] = {
    "json": lambda folder: write_leaf(folder, some_writers()),
    "hdf5": lambda folder: write_hdf5(folder, some_writers()),
    "parquet": lambda folder: write_parquet(folder, parquet_rows(some_writers())),
}
BAD = [
    (kind, case, *bad)
    for kind, cases in (("json", BAD_JSON), ("hdf5", BAD_HDF5), ("parquet", BAD_PARQUET))
    for case, bad in cases.items()
]


@pytest.mark.parametrize(("kind", "case", "spoil", "needles"), BAD, ids=[f"{kind}: {case}" for kind, case, *_ in BAD])
def test_broken_folders_are_refused_in_one_line_and_leave_nothing(
    tmp_path: Path, kind: str, case: str, spoil: Callable[[Path], object], needles: tuple[str, ...]
) -> None:
    folder = tmp_path / "raw"
    WRITE[kind](folder)
    prepare_femnist(folder, tmp_path / "old")
    before = snapshot(tmp_path / "old")
    spoil(folder)
    for out in ("old", "new"):
        refused(lambda out=out: prepare_femnist(folder, tmp_path / out), "raw", *needles)
    assert snapshot(tmp_path / "old") == before
    assert not (tmp_path / "new").exists() or list((tmp_path / "new").iterdir()) == []
    found = data_inspect(folder)
    assert any(all(needle in problem for needle in needles) for problem in found["problems"])
    assert all(problem.isprintable() for problem in found["problems"])


def test_inspecting_collects_all_problems_and_counts_the_rest(tmp_path: Path) -> None:
    content = leaf_users(some_writers([5, 3, 4, 2]))
    users = content["users"]
    content["user_data"][users[0]]["y"].pop()
    content["user_data"][users[2]]["x"][0].pop()
    (tmp_path / "all_data_0.json").write_text(json.dumps(content))
    found = data_inspect(tmp_path)
    assert (found["kind"], found["clients"], found["samples"]) == ("leaf-json", 2, 5)
    assert len(found["problems"]) == 2


def test_folders_that_are_missing_empty_or_of_two_formats(tmp_path: Path) -> None:
    both, empty = tmp_path / "both", tmp_path / "empty"
    empty.mkdir()
    write_leaf(both, some_writers())
    write_hdf5(both, some_writers())
    for folder, needle in ((tmp_path / "no", "no such folder"), (empty, "all_data_*.json"), (both, "2 formats")):
        refused(lambda folder=folder: prepare_femnist(folder, tmp_path / "out"), str(folder), needle)
        refused(lambda folder=folder: data_inspect(folder), str(folder), needle)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["both", "empty"]


# The command


def inspect_command(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "fedpapers", "data", "inspect", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_the_command_prints_json_also_with_problems(tmp_path: Path) -> None:
    write_leaf(tmp_path, some_writers())
    answer = inspect_command(str(tmp_path), "--json")
    assert answer.returncode == 0 and answer.stderr == ""
    found = json.loads(answer.stdout)
    assert found.pop("classes") == len(set(np.concatenate([y for _, y in some_writers().values()]).tolist()))
    assert found == {"kind": "leaf-json", "clients": 3, "samples": 12, "problems": []}
    BAD_JSON["label 62"][0](tmp_path)
    answer = inspect_command(str(tmp_path), "--json")
    assert answer.returncode == 1 and answer.stderr == ""
    assert "62" in json.loads(answer.stdout)["problems"][0]
    answer = inspect_command(str(tmp_path / "no"), "--json")
    assert answer.returncode == 2 and answer.stdout == "" and answer.stderr.count("\n") == 1


# Memory

LIMITED = """
import resource, sys
from pathlib import Path
import fedpapers.data.femnist as femnist
data = int(Path("/proc/self/status").read_text().split("VmData:")[1].split()[0]) * 1024
resource.setrlimit(resource.RLIMIT_DATA, (data + (24 << 20),) * 2)
femnist.prepare_femnist(Path(sys.argv[1]), Path(sys.argv[2]))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the limit on anonymous memory is Linux's")
def test_json_is_read_in_little_memory(tmp_path: Path) -> None:
    row = f"[{', '.join(['1.0'] * 700 + ['0.5'] * 84)}]"
    users = [f"u{k}" for k in range(80)]
    x, y = f"[{', '.join([row] * 100)}]", f"[{', '.join(['3'] * 100)}]"
    data = ", ".join(f'"{user}": {{"x": {x}, "y": {y}}}' for user in users)
    head = f'"users": {json.dumps(users)}, "num_samples": {json.dumps([100] * 80)}'
    (tmp_path / "all_data_0.json").write_text(f'{{{head}, "user_data": {{{data}}}}}')
    assert (tmp_path / "all_data_0.json").stat().st_size > 30e6
    subprocess.run([sys.executable, "-c", LIMITED, str(tmp_path), str(tmp_path / "out")], check=True)
    assert len(read_dataset(tmp_path / "out")) == 8000
