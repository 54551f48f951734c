"""Kills at random moments: whatever is killed, the next start ends with the bytes of an undisturbed run.

`make test` kills a few times, `make chaos` fifty times.
"""

import hashlib
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import yaml
from checkout import PARTS, ROOT, snakemake

pytestmark = [pytest.mark.workflow, pytest.mark.xdist_group("chaos")]

KILLS = int(os.environ.get("FEDPAPERS_KILLS", "3"))
TARGETS = ("results/dpogl/runs.csv", "results/dpogl/privacy.csv", "results/dpogl/tables/accuracy.csv")


@pytest.fixture(scope="module")
def fresh(tmp_path_factory):
    """A checkout with two runs of three segments that has not run yet."""
    folder = tmp_path_factory.mktemp("chaos") / "fresh"
    for part in PARTS:
        source = ROOT / part
        if source.is_dir():
            shutil.copytree(source, folder / part, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy2(ROOT / "Snakefile", folder)
    config = yaml.safe_load((ROOT / "configs/tiny.yaml").read_text())
    config["papers"] = {"dpogl": config["papers"]["dpogl"]}
    del config["papers"]["dpogl"]["leakage"]
    config["papers"]["dpogl"]["common"] |= {"rounds": 60, "evaluate_every": 20}
    config["training"]["segment_rounds"] = 20
    config["papers"]["dpogl"]["runs"] = {"one": {"algorithm": ["dp-ogl", "dpfedavg"], "noise_multiplier": 0.5}}
    (folder / "config.yaml").write_text(yaml.safe_dump(config))
    return folder


@pytest.fixture(scope="module")
def undisturbed(fresh, tmp_path_factory):
    """The results of a run that nobody kills, and how long it took."""
    folder = tmp_path_factory.mktemp("undisturbed") / "checkout"
    shutil.copytree(fresh, folder)
    began = time.monotonic()
    done = snakemake(folder, "--cores", "2", *TARGETS)
    assert done.returncode == 0, done.stderr
    return contents(folder), time.monotonic() - began


def contents(folder):
    """Checksums of all that must not depend on kills; logs, benchmarks and records hold times."""
    kept = [f for f in (folder / "results").rglob("*") if f.suffix in (".safetensors", ".csv", ".npy", ".md", ".tex")]
    return {str(f.relative_to(folder)): hashlib.sha256(f.read_bytes()).hexdigest() for f in sorted(kept)}


def start(folder):
    """Snakemake at work in a folder, in a session of its own."""
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    command = [sys.executable, "-m", "snakemake", "--cores", "2", *TARGETS]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    return subprocess.Popen(command, cwd=folder, env=environment, start_new_session=True, **quiet)


def killed_after(folder, seconds, victim):
    """Start the workflow and kill a part of it, or all, after some time; say what was hit."""
    process = start(folder)
    time.sleep(seconds)
    if victim == "a job":
        jobs = [pid for pid in children(process.pid) if b"fedpapers" in command_line(pid)]
        for pid in jobs[-1:]:
            os.kill(pid, signal.SIGKILL)
        process.wait(timeout=300)
        return len(jobs)
    if process.poll() is None:
        os.kill(process.pid, signal.SIGKILL) if victim == "Snakemake" else os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    return 1


def children(pid):
    """All processes below one."""
    found = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in map(int, task.read_text().split()):
            found += [child, *children(child)]
    return found


def command_line(pid):
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except FileNotFoundError:
        return b""


@pytest.mark.parametrize("kill", range(KILLS))
def test_a_kill_changes_no_result(kill, fresh, undisturbed, tmp_path):
    expected, duration = undisturbed
    draw = np.random.default_rng(kill)
    folder = tmp_path / "checkout"
    shutil.copytree(fresh, folder)
    for _ in range(draw.integers(1, 4)):
        killed_after(folder, draw.uniform(0.2, 0.9) * duration, str(draw.choice(["a job", "Snakemake", "everything"])))
        snakemake(folder, "--unlock", "--cores", "1")
    done = snakemake(folder, "--cores", "2", *TARGETS)
    assert done.returncode == 0, done.stdout + done.stderr
    found = contents(folder)
    assert found == expected, sorted(set(found.items()) ^ set(expected.items()))


def test_a_second_snakemake_is_told_what_to_do(fresh, undisturbed, tmp_path):
    expected, _ = undisturbed
    folder = tmp_path / "checkout"
    shutil.copytree(fresh, folder)
    first = start(folder)
    try:
        locks = folder / ".snakemake" / "locks"
        while first.poll() is None and not any(locks.glob("*")):
            time.sleep(0.05)
        second = snakemake(folder, "--cores", "1", *TARGETS)
        assert first.poll() is None, "the first one has ended before the second one began"
        assert first.wait(timeout=600) == 0
    finally:
        if first.poll() is None:
            os.killpg(first.pid, signal.SIGKILL)
    told = second.stdout + second.stderr
    assert second.returncode == 1 and "LockException" in told and "--unlock" in told
    help = (ROOT / "docs" / "troubleshooting.md").read_text(encoding="utf-8")
    assert "LockException" in help and "--unlock" in help
    assert contents(folder) == expected


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 24 MiB."""
    place = tmp_path / "small"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=24m", "tmpfs", str(place)]
    if os.geteuid() or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("a small file system needs the right to mount one")
    yield place
    subprocess.run(["umount", "--lazy", str(place)], check=True)


@pytest.mark.parametrize("left", [2.0, 4.3])
def test_a_full_disk_leaves_no_half_of_a_file(left, fresh, undisturbed, small_disk):
    expected, _ = undisturbed
    folder = small_disk / "checkout"
    shutil.copytree(fresh, folder)
    filler = small_disk / "filler"
    with filler.open("wb") as file:
        while shutil.disk_usage(small_disk).free > left * 2**20:
            file.write(b"x" * 2**16)
            file.flush()
    full = snakemake(folder, "--cores", "2", *TARGETS)
    assert full.returncode != 0, "there was room enough"
    assert "No space left on device" in full.stdout + full.stderr
    assert contents(folder).items() <= expected.items(), "what stands under its name is whole"
    filler.unlink()
    snakemake(folder, "--unlock", "--cores", "1")
    done = snakemake(folder, "--cores", "2", *TARGETS)
    assert done.returncode == 0, done.stdout + done.stderr
    assert contents(folder) == expected
