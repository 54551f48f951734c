"""The machine that measures, and the memory of processes on it."""

from __future__ import annotations

import os
import platform
from collections import defaultdict
from pathlib import Path

import torch

PROC = Path("/proc")


def described() -> str:
    """The machine and the libraries, in a line."""
    lines = (PROC / "cpuinfo").read_text(encoding="utf-8").splitlines() if (PROC / "cpuinfo").exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    processor = names[0] if names else platform.processor() or platform.machine()
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    load = os.getloadavg()[0]
    return (
        f"{processor}, {os.cpu_count()} cores, {memory:.0f} GiB; {platform.system()},"
        f" Python {platform.python_version()}, PyTorch {torch.__version__}; load at the end {load:.1f}"
    )


def memory_mib(pid: int) -> float:
    """What a process and all its descendants hold now, in MiB; pages that some of them share count once."""
    return sum(_proportional_kib(one) for one in descendants(pid)) / 2**10


def descendants(pid: int) -> list[int]:
    """A process and all that it has started and that has not been left alone since."""
    children = defaultdict(list)
    for stat in PROC.glob("[0-9]*/stat"):
        try:
            parent = stat.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()[1]
        except OSError:  # it has ended
            continue
        children[int(parent)].append(int(stat.parent.name))
    found = [pid]
    for one in found:
        found += children[one]
    return found


def _proportional_kib(pid: int) -> int:
    try:
        text = (PROC / str(pid) / "smaps_rollup").read_text(encoding="utf-8")
    except OSError:
        return 0
    return int(text.split("\nPss:")[1].split()[0])
