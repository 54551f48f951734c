"""Good files with random damage: whatever is read ends well or in one line, soon, and in little memory.

`make test` tries a few damages of each reader, `make fuzz` as many as fit into FUZZ_SECONDS (600).
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import re
import resource
import shutil
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
import torch
import yaml
from data_folders import parquet_rows, png, some_writers, write_celeba, write_hdf5, write_leaf, write_parquet
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from fedpapers.errors import InputError

SECONDS = float(os.environ.get("FUZZ_SECONDS", "0"))
SEED = int(os.environ.get("FUZZ_SEED", "0"))  # of the first round; each next one has the next
EXAMPLES = 50 if SECONDS else 25  # of a round; without FUZZ_SECONDS there is one
LONGEST = 30  # seconds of one file
MOST_MEMORY = 2 * 2**30
ROOT = Path(__file__).parents[1]


# Damage

NASTY = [
    b"", b"-1", b"1e999", b"NaN", b"9" * 40, b"[" * 500, b"{" * 500, b"\0", b"\xff\xfe", b"\xed\xa0\x80", b"\x1b[31m",
    b'"', b"\\u0000", b"null", b"true", b"../x", b"*a", b"&a", b"<<: ", b"\n", b"\r", b": ", b"- ", b"\xe2\x80\xae",
]  # fmt: skip
Share = st.floats(0, 1, exclude_max=True)
FLIP = st.tuples(st.just("flip"), Share, st.integers(0, 7))
CUT = st.tuples(st.just("cut"), Share, st.none())
DROP = st.tuples(st.just("drop"), Share, st.integers(1, 200))
REPEAT = st.tuples(st.just("repeat"), Share, st.integers(1, 200))
INSERT = st.tuples(st.just("insert"), Share, st.sampled_from(NASTY) | st.binary(min_size=1, max_size=8))
NUMBER = st.tuples(st.just("number"), Share, st.sampled_from(NASTY))
SWAP = st.tuples(st.just("swap"), Share, Share)
DAMAGES = st.lists(st.one_of(FLIP, CUT, DROP, REPEAT, INSERT, NUMBER, SWAP), min_size=1, max_size=4)
TOKEN = re.compile(rb"[A-Za-z0-9_.+-]+")


def damaged(content: bytes, damages) -> bytes:
    """Content after some damages: a bit, an end or a part lost, doubled, put in; a word replaced, two words swapped."""
    for kind, where, what in damages:
        at = int(where * len(content))
        if kind == "flip" and content:
            content = content[:at] + bytes([content[at] ^ 1 << what]) + content[at + 1 :]
        elif kind == "cut":
            content = content[:at]
        elif kind == "drop":
            content = content[:at] + content[at + what :]
        elif kind == "repeat":
            content = content[: at + what] + content[at:]
        elif kind == "insert":
            content = content[:at] + what + content[at:]
        elif kind == "number" and (word := TOKEN.search(content, at)):
            content = content[: word.start()] + what + content[word.end() :]
        elif kind == "swap" and (one := TOKEN.search(content, at)):
            other = TOKEN.search(content, int(what * len(content)))
            if other and one.end() <= other.start():
                between = content[one.end() : other.start()]
                content = content[: one.start()] + other[0] + between + one[0] + content[other.end() :]
    return content


# Readers: what makes good files in a folder, and what reads them


def config(folder):
    shutil.copy(ROOT / "configs" / "tiny.yaml", folder / "config.yaml")

    def read():
        from fedpapers.experiment.config import read_config
        from fedpapers.experiment.plan import Plan

        Plan(read_config([folder / "config.yaml"]))

    return read


def groups(folder):
    text = "groups:\n  north: [ann, bob]\n  south: {workers: [bob, 3], noise_multiplier: 1.5, sampling_rate: 0.5}\n"
    (folder / "groups.yaml").write_text(text)
    (folder / "targets.yaml").write_text("default: 8\npairs:\n  ann: {bob: 2, '3': 0.5}\n")

    def read():
        from fedpapers.groups import Groups
        from fedpapers.privacy.groups_file import read_groups
        from fedpapers.privacy.targets import read_targets

        read_targets(folder / "targets.yaml", Groups({"north": ("ann", "bob", "3")}))
        read_groups(folder / "groups.yaml").values("noise_multiplier", 1.0)

    return read


def layout(folder):
    device = "- {x: %d.5, y: -4.0, target: %d, dummies: [5, 6]}\n"
    (folder / "layout.yaml").write_text("devices:\n" + "".join(device % (k, k) for k in range(4)))

    def read():
        from fedpapers.relay.layouts import read_layout
        from fedpapers.relay.report import Setting, relay_report

        relay_report(read_layout(folder / "layout.yaml"), Setting(max_hops=3))

    return read


def data_folder(write, prepare):
    """A reader of a folder of data: inspected, and prepared when nothing is wrong with it."""

    def make(folder):
        write(folder / "raw")

        def read():
            from fedpapers.data.inspect import data_inspect

            problems = data_inspect(folder / "raw")["problems"]
            assert all(problem.isprintable() for problem in problems), problems
            out = folder.parent / "out"
            shutil.rmtree(out, ignore_errors=True)
            if problems:
                raise InputError(problems[0])
            prepare(folder / "raw", out)

        return read

    return make


def prepare(kind):
    def prepared(raw, out):
        from fedpapers.experiment.dataset_spec import read_dataset_spec
        from fedpapers.experiment.prepare_data import prepare_data

        few = {"min_samples": 1} if kind == "celeba" else {}
        spec = {"kind": kind, "source": "folder", "path": str(raw)} | few
        prepare_data(read_dataset_spec(json.dumps(spec)), out)

    return prepared


def write_digits(folder):
    folder.mkdir()
    for name, array in (("images-idx3", np.arange(5 * 784).reshape(5, 28, 28) % 256), ("labels-idx1", np.arange(5))):
        head = bytes([0, 0, 8, array.ndim]) + np.array(array.shape, ">u4").tobytes()
        (folder / f"train-{name}-ubyte").write_bytes(head + array.astype(np.uint8).tobytes())


def write_light_parquet(folder):
    rows = parquet_rows(some_writers((2, 1)))
    rows["image"] = [{"bytes": png(np.full((28, 28), 250, np.uint8)), "path": None} for _ in rows["label"]]
    write_parquet(folder, rows)


def faces(folder):
    write_celeba(folder, [(f"00000{k}.jpg", k, True) for k in (1, 2, 3)])


def dataset(folder):
    from fedpapers.data.format import verify_dataset, write_dataset

    images = np.arange(6 * 784, dtype=np.uint8).reshape(6, 28, 28)
    about = {"name": "x", "source": "embedded", "generated": True, "licence": "none", "origin": []}
    write_dataset(
        folder / "data", images, np.arange(6) % 2, classes=["0", "1"], writers=np.arange(6) % 2,
        writer_names=["ann", "bob"], **about,
    )  # fmt: skip
    return lambda: verify_dataset(folder / "data")


def partition(folder):
    from fedpapers.data.partition import Partition, read_partition

    train, test = (tuple(np.arange(4 * k + part, 4 * k + part + 2) for k in range(3)) for part in (0, 2))
    Partition(("a", "b", "c"), train, test).write(folder, {"seed": 1}, np.arange(12))
    return lambda: read_partition(folder / "partition.safetensors", 12, {"seed": 1})


def segment(folder, make_layout=None):
    """A run's segment: state, metrics, results of clients and record with its ledger."""
    from fedpapers.experiment import store
    from fedpapers.federated.rounds import State
    from fedpapers.models import Layout, build
    from fedpapers.privacy.ledger import Ledger
    from fedpapers.privacy.mechanism import Mechanism

    shape = Layout.of(build("linear", 10))
    ledger = Ledger()
    ledger.record(["a"], Mechanism(sampling_rate=0.5, clipping_norm=1.0, noise_multiplier=1.0))
    path = store.state_path(folder, 1)
    state = State(round=1, shared=torch.zeros(1, shape.shared_size), private=torch.zeros(2, 0))
    store.write_state(path, state, shape)
    store.write_csv(path.with_suffix(".metrics.csv"), ["round", "accuracy"], [[0, 0.1], [1, 0.2]])
    store.write_csv(path.with_suffix(".clients.csv"), ["client", "correct"], [["a", 3]])
    store.write_record(path, {"ledger": ledger.describe(), "groups": {"a": ["a", "b"]}})
    whole = {file.name: file.read_bytes() for file in folder.iterdir()}

    def read():
        store.read_state(path, shape, 1, 2, torch.device("cpu"))
        Ledger.of(store.read_record(path)["ledger"])
        harmless = {path.with_suffix(".json").name}  # white space
        assert {name for name, content in whole.items() if (folder / name).read_bytes() != content} <= harmless

    return read


def generator(folder):
    from fedpapers.augment.cgan import Gan
    from fedpapers.augment.checkpoint import read_generator, write_state
    from fedpapers.augment.seeds import read_seeds, write_seeds

    write_seeds(folder / "seeds", np.zeros((2, 28, 28), np.uint8), np.array([1, 2]), 0.0, {"data": "digits"})
    write_state(folder / "step-000000.safetensors", Gan.new(0, 1e-3, torch.device("cpu")), {"hash": "h"})

    def read():
        read_seeds(folder / "seeds" / "seeds.safetensors")
        read_generator(folder / "step-000000.safetensors", 0, "h")

    return read


def devices(folder):
    from fedpapers.data.devices import deal_devices, read_devices

    labels = np.arange(200) % 10
    deal_devices(labels, [1, 2], 1, 2, 3, 4, seed=0).write(folder, labels, "digits", [str(k) for k in range(10)])
    return lambda: read_devices(folder / "devices.safetensors", 200)


def progress(folder):
    """What `fedpapers status` reads of a run."""
    from fedpapers.experiment.config import read_config
    from fedpapers.experiment.plan import Plan
    from fedpapers.experiment.progress import News

    content = yaml.safe_load((ROOT / "configs" / "tiny.yaml").read_text())
    content["papers"] = {"dpogl": content["papers"]["dpogl"] | {"runs": {"one": {"algorithm": "fedavg"}}}}
    (folder / "config.yaml").write_text(yaml.safe_dump(content))
    plan = Plan(read_config([folder / "config.yaml"]))
    runs = folder / "results" / "runs" / next(iter(plan.runs))
    runs.mkdir(parents=True)
    news = News(round=1, segment_end=2, accuracy=0.5, epsilon=1.0, seconds_per_round=0.1, updated=1.0)
    (runs / "progress.json").write_text(news.model_dump_json())
    (runs / "round-000002.json").write_text('{"format": 1, "seal": "x"}')
    (folder / "config.yaml").unlink()

    def read():
        from fedpapers.experiment.status import format_status, other_runs, status

        with contextlib.chdir(folder):
            format_status(status(plan), "config.yaml", other_runs(plan))

    return read


READERS: dict[str, Callable[[Path], Callable[[], object]]] = {
    "config": config,
    "groups": groups,
    "layout": layout,
    "leaf": data_folder(lambda raw: write_leaf(raw, some_writers((2, 1))), prepare("femnist")),
    "parquet": data_folder(write_light_parquet, prepare("femnist")),
    "hdf5": data_folder(lambda raw: write_hdf5(raw, some_writers((2, 1))), prepare("femnist")),
    "idx": data_folder(write_digits, prepare("mnist")),
    "celeba": data_folder(faces, prepare("celeba")),
    "dataset": dataset,
    "partition": partition,
    "segment": segment,
    "generator": generator,
    "devices": devices,
    "progress": progress,
}


# The trial


class TooLong(BaseException):
    """No reader takes it for a file that cannot be read, as it may take a TimeoutError."""


@contextmanager
def bounded() -> Iterator[None]:
    """Raise where the block takes too long, or too much memory; the limits are gone behind it."""

    def too_long(*_):
        raise TooLong(f"more than {LONGEST} s")

    held = int(re.search(r"VmData:\s+(\d+)", Path("/proc/self/status").read_text())[1]) * 1024
    before = resource.getrlimit(resource.RLIMIT_DATA)
    handler = signal.signal(signal.SIGALRM, too_long)
    resource.setrlimit(resource.RLIMIT_DATA, (held + MOST_MEMORY, before[1]))
    signal.alarm(LONGEST)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, handler)
        resource.setrlimit(resource.RLIMIT_DATA, before)


@pytest.mark.parametrize(
    "reader, file, damage",
    [
        ("parquet", "raw/train-00000-of-00001.parquet", ("swap", 0.3671875, 0.625)),  # a name that is no UTF-8
        ("dataset", "data/about.json", ("number", 0.25, b"\xed\xa0\x80")),  # half a surrogate
    ],
)
def test_what_fuzzing_has_found(reader, file, damage, tmp_path):
    read = READERS[reader](tmp_path)
    path = tmp_path / file
    path.write_bytes(damaged(path.read_bytes(), [damage]))
    with pytest.raises(InputError):
        read()


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is limited on Linux only")
@pytest.mark.parametrize("reader", READERS)
def test_damage_ends_well_or_in_one_line(reader, tmp_path):
    folder = tmp_path / "files"
    folder.mkdir()
    read = READERS[reader](folder)
    read()
    files = {path: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}
    seen: Counter[str] = Counter()

    def attempt(path, damages):
        path.write_bytes(damaged(files[path], damages))
        try:
            with bounded():
                read()
            seen["read"] += 1
        except InputError as error:
            seen["refused"] += 1
            assert str(error).isprintable()
        finally:
            path.write_bytes(files[path])

    checks = [HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
    options = {"deadline": None, "database": None, "suppress_health_check": checks}
    options |= {"phases": [Phase.generate, Phase.shrink], "max_examples": EXAMPLES}
    end = time.monotonic() + SECONDS / len(READERS)
    for number in itertools.count(SEED):
        trial = given(st.sampled_from(sorted(files)), DAMAGES)(attempt)
        seed(number)(settings(**options)(trial))()
        if time.monotonic() >= end:
            break
    if SECONDS:
        print(f"\n{reader}: {seen.total():,} damaged files, {seen['refused']:,} refused, {seen['read']:,} read")
