"""A checkout whose tiny experiment has run, and copies of it to try things on."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PARTS = ("Snakefile", "config.yaml", "rules", "scripts", "src", "profiles", "report", "envs", "configs")


@pytest.fixture(scope="session")
def finished(tmp_path_factory):
    """A checkout whose tiny experiment has run."""
    folder = tmp_path_factory.mktemp("checkout") / "with a space"
    copy_parts(folder)
    done = snakemake(folder, "--cores", "2")
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def copy_parts(folder):
    """Make a folder the checkout of a tiny experiment that has not run."""
    folder.mkdir()
    for part in PARTS:
        source = ROOT / part
        copy = shutil.copytree if source.is_dir() else shutil.copy2
        copy(source, folder / part, **({"ignore": shutil.ignore_patterns("__pycache__")} if source.is_dir() else {}))
    shutil.copy2(ROOT / "configs" / "tiny.yaml", folder / "config.yaml")


@pytest.fixture
def checkout(finished, tmp_path):
    """A copy of the finished checkout, to be changed."""
    folder = tmp_path / "with a space"
    shutil.copytree(finished, folder, symlinks=True)
    return folder


def snakemake(folder, *arguments):
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    command = [sys.executable, "-m", "snakemake", *arguments]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=1800)
