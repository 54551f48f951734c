"""A run's result is the same however it is cut into segments and killed; what does not belong to it is refused."""

from __future__ import annotations

import csv
import itertools
import json
import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from torch import nn

from fedpapers.errors import InputError
from fedpapers.experiment import store
from fedpapers.experiment.spec import Run
from fedpapers.experiment.store import read_record, read_record_of_run, read_state, state_path, write_state
from fedpapers.experiment.train import Segment, train_segment
from fedpapers.federated.rounds import State
from fedpapers.files import sealed, sha256
from fedpapers.models import Layout

CPU = torch.device("cpu")
OUTPUTS = ("safetensors", "metrics.csv", "clients.csv", "json")


def quiet(*_: Any) -> None:
    """Stand where progress is shown."""


@pytest.fixture(scope="module")
def segment_of(digits: Path, partition_of: Callable[[Run], Path]) -> Callable[..., Segment]:
    def segment(run: Run, folder: Path, first: int, last: int) -> Segment:
        return Segment(run, folder, first, last, digits, partition_of(run), device="cpu")

    return segment


def outputs(folder: Path, last: int) -> dict[str, Any]:
    """All that a run leaves after round `last`, without what tells when and where: state, metrics, clients, ledger."""
    records = [json.loads(path.read_text()) for path in sorted(folder.glob("round-*.json"))]
    assert [record["last"] for record in records[:-1]] == [record["first"] for record in records[1:]]
    tables = [list(csv.reader(path.open())) for path in sorted(folder.glob("round-*.metrics.csv"))]
    assert len({tuple(table[0]) for table in tables}) == 1
    end = state_path(folder, last)
    for record in records:
        read_record(state_path(folder, record["last"]))
    return {
        "state": end.read_bytes(),
        "metrics": [row for table in tables for row in table[1:]],
        "clients": end.with_suffix(".clients.csv").read_bytes(),
        "ledger": records[-1]["ledger"],
        "run": (folder / "run.json").read_bytes(),
    }


# Segments and kills


def command(segment: Segment) -> list[str]:
    options = {
        "run": segment.run.model_dump_json(exclude_none=True), "folder": segment.folder, "first": segment.first,
        "last": segment.last, "data": segment.dataset, "partition": segment.partition, "device": "cpu",
    }  # fmt: skip
    return [sys.executable, "-m", "fedpapers", "train", *(f"--{key}={value}" for key, value in options.items())]


def train_and_kill(segment: Segment, round: int, delay: float) -> None:
    """Train as the workflow does, and kill the process some time after a round was reported."""
    with subprocess.Popen(command(segment), stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith(f"round {round}/"):
                time.sleep(delay)
                process.send_signal(signal.SIGKILL)
                break
    assert process.returncode == -signal.SIGKILL, "it ended before it was killed"


@pytest.mark.workflow
def test_segments_and_kills_do_not_change_a_run(
    make_run: Callable[..., Run], segment_of: Callable[..., Segment], tmp_path: Path
) -> None:
    run = make_run(local_steps=10)
    train_segment(segment_of(run, tmp_path / "whole", 0, 60), quiet)
    expected = outputs(tmp_path / "whole", 60)
    assert [int(row[0]) for row in expected["metrics"]] == list(range(0, 61, 5))
    assert {entry["releases"] for entry in expected["ledger"]} == {60} and len(expected["ledger"]) == 5

    segments = [segment_of(run, tmp_path / "cut", first, first + 20) for first in (0, 20, 40)]
    for segment in segments:
        train_segment(segment, quiet)
    assert outputs(tmp_path / "cut", 60) == expected

    moments = np.random.default_rng(int.from_bytes(os.urandom(4)))
    for segment in (replace(segment, folder=tmp_path / "killed") for segment in segments):
        round, delay = int(moments.integers(segment.first + 1, segment.first + 10)), moments.uniform(0, 0.05)
        train_and_kill(segment, round, delay)
        left = {path.name for path in segment.folder.glob(f"round-{segment.last:06d}*")}
        assert not left, f"killed {delay} s after round {round}"
        if segment.last == 60:
            subprocess.run(command(segment), check=True, capture_output=True)
        else:
            train_segment(segment, quiet)
    assert outputs(tmp_path / "killed", 60) == expected


def train_and_die(segment: Segment, move: int, moved: bool) -> None:
    """Train until the file of number `move` is about to be moved into its place, or has just been."""
    count, replace_file = itertools.count(), Path.replace

    def replace_or_die(source: Path, target: Path) -> None:
        dies = next(count) == move
        if moved or not dies:
            replace_file(source, target)
        if dies:
            os.kill(os.getpid(), signal.SIGKILL)

    Path.replace = replace_or_die  # type: ignore[method-assign,assignment]
    train_segment(segment, quiet)


@pytest.mark.workflow
def test_a_kill_between_any_two_files_leaves_whole_ones(
    make_run: Callable[..., Run], segment_of: Callable[..., Segment], tmp_path: Path
) -> None:
    run = make_run()
    for first in (0, 5):
        train_segment(segment_of(run, tmp_path / "whole", first, first + 5), quiet)
    expected = outputs(tmp_path / "whole", 10)
    processes = multiprocessing.get_context("forkserver")
    processes.set_forkserver_preload(["pytest", "hypothesis.extra.numpy", "fedpapers.experiment.train"])
    shutil.copytree(tmp_path / "whole", tmp_path / "half", ignore=shutil.ignore_patterns("round-000010*"))
    seen = set()
    for move, moved in itertools.product(range(5), (False, True)):
        folder = tmp_path / f"killed-{move}-{moved}"
        shutil.copytree(tmp_path / "half", folder)
        segment = segment_of(run, folder, 5, 10)
        process = processes.Process(target=train_and_die, args=(segment, move, moved))
        process.start()
        process.join()
        assert process.exitcode == -signal.SIGKILL
        left = [kind for kind in OUTPUTS if state_path(folder, 10).with_suffix(f".{kind}").exists()]
        for kind in left[:3]:
            name = state_path(folder, 10).with_suffix(f".{kind}").name
            assert kind == "json" or (folder / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
        if "json" in left:
            assert read_record(state_path(folder, 10))["last"] == 10
        seen.add(tuple(left))
        train_segment(segment, quiet)
        assert outputs(folder, 10) == expected
    assert seen == {OUTPUTS[:n] for n in range(5)}, "the record comes last"


# States that do not belong to the run


@pytest.fixture(scope="module")
def one_round(
    make_run: Callable[..., Run], segment_of: Callable[..., Segment], tmp_path_factory: pytest.TempPathFactory
) -> Callable[..., Path]:
    """The folder of a run of one round, made once for each description; not to be changed."""
    made: dict[str, Path] = {}

    def folder(**given: Any) -> Path:
        run = make_run(**given)
        if run.hash not in made:
            made[run.hash] = tmp_path_factory.mktemp("one-round")
            train_segment(segment_of(run, made[run.hash], 0, 1), quiet)
        return made[run.hash]

    return folder


def flip_a_bit(path: Path, at: int) -> None:
    content = bytearray(path.read_bytes())
    content[at] ^= 0x10
    path.write_bytes(content)


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-100])


def with_metadata(path: Path, metadata: dict[str, str] | None) -> None:
    save_file(load_file(path), path, metadata=metadata)


def record_again(state: Path) -> None:
    """Make the record fit the files, as if they had been written so."""
    path = state.with_suffix(".json")
    record = json.loads(path.read_text())
    del record["seal"]
    record["sha256"] = {name: sha256(state.with_name(name)) for name in record["sha256"]}
    path.write_text(json.dumps(sealed(record)))


def check_refused(segment: Segment, file: Path) -> str:
    before = sorted(segment.folder.iterdir())
    with pytest.raises(InputError) as caught:
        train_segment(segment, quiet)
    message = str(caught.value)
    assert message.startswith(f"{file}: ") and "\n" not in message
    assert sorted(segment.folder.iterdir()) == before
    return message


@pytest.fixture
def resumed(
    make_run: Callable[..., Run], one_round: Callable[..., Path], segment_of: Callable[..., Segment], tmp_path: Path
) -> Segment:
    """The second segment of a run, whose first one is to be damaged."""
    shutil.copytree(one_round(), tmp_path / "run")
    return segment_of(make_run(), tmp_path / "run", 1, 2)


def test_a_segment_of_another_run_or_round_is_refused_in_a_runs_folder(
    make_run: Callable[..., Run], one_round: Callable[..., Path], tmp_path: Path
) -> None:
    folder = tmp_path / f"mine_{make_run().hash}"
    shutil.copytree(one_round(), folder)
    assert read_record_of_run(state_path(folder, 1))["last"] == 1
    shutil.copytree(one_round(seed=2), folder, dirs_exist_ok=True)
    with pytest.raises(InputError, match=r"round-000001\.json: of another run or round; delete round-000001"):
        read_record_of_run(state_path(folder, 1))


DAMAGES: dict[str, Callable[[Path], object]] = {
    "truncated": truncate,
    "no bytes": lambda path: path.write_bytes(b""),
    "missing": Path.unlink,
    "bit flip in the header": lambda path: flip_a_bit(path, 20),
    "bit flip in a number": lambda path: flip_a_bit(path, -7),
    "a pickle": lambda path: path.write_bytes(b"\x80\x04\x95\x0b\x00\x00\x00\x00\x00\x00\x00\x8c\x07unwanted."),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_state_is_refused(resumed: Segment, damage: str) -> None:
    state = state_path(resumed.folder, 1)
    DAMAGES[damage](state)
    check_refused(resumed, state)


@pytest.mark.parametrize("damage", ["truncated", "no bytes", "bit flip in the header", "a pickle"])
def test_a_damaged_state_is_refused_even_if_it_was_recorded_so(resumed: Segment, damage: str) -> None:
    state = state_path(resumed.folder, 1)
    DAMAGES[damage](state)
    record_again(state)
    check_refused(resumed, state)


@pytest.mark.parametrize(
    "given",
    [
        {"model": "mnist-cnn"},
        {"structure": {"kind": "string", "groups": 4, "size": 3, "shared": 1}},
        {"algorithm": "local", "grouping": None},
        {"algorithm": "dpfedmtl", "private_layers": "last", "grouping": None},
    ],
)
def test_the_state_of_another_architecture_or_structure_is_refused(
    resumed: Segment, one_round: Callable[..., Path], given: dict[str, Any]
) -> None:
    state = state_path(resumed.folder, 1)
    shutil.copy(state_path(one_round(**given), 1), state)
    record_again(state)
    assert "another model's parameters" in check_refused(resumed, state)


@pytest.mark.parametrize(
    "metadata",
    [None, {"fedpapers": '{"format":2,"round":1}'}, {"fedpapers": "{}"}, {"fedpapers": "[]"}, {"fedpapers": "?"},
     {"fedpapers": '{"format":1}'}, {"fedpapers": '{"format":1,"round":7}'}, {"fedpapers": '{"format":1,"round":"1"}'}],
)  # fmt: skip
def test_a_state_of_another_format_or_round_is_refused(resumed: Segment, metadata: dict[str, str] | None) -> None:
    state = state_path(resumed.folder, 1)
    with_metadata(state, metadata)
    record_again(state)
    check_refused(resumed, state)


@pytest.mark.parametrize("change", [{"seed": 2}, {"noise_multiplier": 0.4}, {"clipping_norm": 0.6}])
def test_the_segment_of_another_run_is_refused(
    resumed: Segment, one_round: Callable[..., Path], change: dict[str, Any]
) -> None:
    for file in one_round(**change).glob("round-000001.*"):
        shutil.copy(file, resumed.folder)
    check_refused(resumed, state_path(resumed.folder, 1).with_suffix(".json"))


def edit(path: Path, **changed: Any) -> None:
    record = json.loads(path.read_text()) | changed
    path.write_text(json.dumps({key: value for key, value in record.items() if value is not None}))


RECORDS: dict[str, Callable[[Path], object]] = {
    "missing": Path.unlink,
    "truncated": truncate,
    "no bytes": lambda path: path.write_bytes(b""),
    "not text": lambda path: path.write_bytes(b"\xff\xfe\x00"),
    "a list": lambda path: path.write_text("[]"),
    "empty": lambda path: path.write_text("{}"),
    "another format": lambda path: edit(path, format=0),
    "no checksums": lambda path: edit(path, sha256={}),
    "checksums in a list": lambda path: edit(path, sha256=[1]),
    "no ledger": lambda path: edit(path, ledger=None),
    "fewer releases in the ledger": lambda path: path.write_text(
        path.read_text().replace('"releases": 1', '"releases": 0')
    ),
}


@pytest.mark.parametrize("damage", RECORDS)
def test_a_segment_without_its_record_is_refused(resumed: Segment, damage: str) -> None:
    record = state_path(resumed.folder, 1).with_suffix(".json")
    RECORDS[damage](record)
    check_refused(resumed, record)


def test_the_command_line_refuses_in_one_line(resumed: Segment) -> None:
    state = state_path(resumed.folder, 1)
    truncate(state)
    done = subprocess.run(command(resumed), capture_output=True, text=True)
    assert done.returncode == 2 and done.stdout == ""
    assert done.stderr.startswith(f"error: {state}: ") and done.stderr.count("\n") == 1
    assert not list(resumed.folder.glob("round-000002*"))


# The store


@st.composite
def layouts(draw: st.DrawFn) -> Layout:
    widths = draw(st.lists(st.integers(1, 4), min_size=2, max_size=5))
    layers = [nn.Linear(a, b, bias=draw(st.booleans())) for a, b in itertools.pairwise(widths)]
    private = draw(st.sets(st.integers(0, len(layers) - 1).map(str)))
    return Layout.of(nn.Sequential(*layers), sorted(private))


any_float32 = st.floats(width=32)


@settings(max_examples=60, deadline=None)
@given(layouts(), st.integers(1, 4), st.integers(1, 5), st.integers(0, 10**9), st.data())
def test_store_round_trip(
    tmp_path_factory: pytest.TempPathFactory, layout: Layout, groups: int, clients: int, round: int, data: st.DataObject
) -> None:
    shared = data.draw(arrays.arrays(np.float32, (groups, layout.shared_size), elements=any_float32))
    private = data.draw(arrays.arrays(np.float32, (clients, layout.private_size), elements=any_float32))
    folder = tmp_path_factory.mktemp("store")
    path = state_path(folder, round)
    write_state(path, State(round, torch.from_numpy(shared), torch.from_numpy(private)), layout)
    back = read_state(path, layout, groups, clients, CPU)
    assert back.round == round
    assert back.shared.numpy().tobytes() == shared.tobytes() and back.private.numpy().tobytes() == private.tobytes()
    again = folder / "again" / path.name
    write_state(again, back, layout)
    assert again.read_bytes() == path.read_bytes()
    for wrong in ((groups + 1, clients), (groups, clients + 1)):
        if (layout.shared_size, layout.private_size)[wrong[0] == groups]:
            with pytest.raises(InputError, match="another model"):
                read_state(path, layout, *wrong, CPU)


def test_a_state_is_read_by_name(make_run: Callable[..., Run], one_round: Callable[..., Path]) -> None:
    with safe_open(state_path(one_round(), 1), framework="pt") as file:
        shapes = {name: list(file.get_tensor(name).shape) for name in file.keys()}  # noqa: SIM118
    assert shapes == {"shared.1.weight": [5, 10, 784], "shared.1.bias": [5, 10]}
    assert store.FORMAT == 1


@pytest.mark.parametrize(("first", "last"), [(2, 1), (2, 2), (0, -1), (-1, 2)])
def test_a_segment_that_goes_nowhere_is_refused(
    make_run: Callable[..., Run], segment_of: Callable[..., Segment], tmp_path: Path, first: int, last: int
) -> None:
    with pytest.raises(InputError, match="expected first < last"):
        train_segment(segment_of(make_run(), tmp_path / "run", first, last), quiet)
    assert not (tmp_path / "run").exists()


def test_a_segment_that_ends_within_an_interval_is_refused(
    make_run: Callable[..., Run], segment_of: Callable[..., Segment], tmp_path: Path
) -> None:
    with pytest.raises(InputError, match="in multiples of 2"):
        train_segment(segment_of(make_run(algorithm="dp-ogl-plus"), tmp_path / "run", 0, 3), quiet)


def test_a_changed_pixel_is_found_before_training(
    make_run: Callable[..., Run], segment_of: Callable[..., Segment], digits: Path, tmp_path: Path
) -> None:
    damaged = shutil.copytree(digits, tmp_path / "data")
    flip_a_bit(damaged / "images.npy", -7)
    segment = replace(segment_of(make_run(), tmp_path / "run", 0, 1), dataset=damaged)
    with pytest.raises(InputError, match=r"images.npy: the SHA-256 is"):
        train_segment(segment, quiet)
