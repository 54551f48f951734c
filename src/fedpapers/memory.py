"""Memory of this process: keep what was freed, and say how much was needed."""

from __future__ import annotations

import ctypes
import resource
import sys
from pathlib import Path

# Numbers of glibc's mallopt(3).
_TRIM_THRESHOLD, _TOP_PAD, _MMAP_MAX, _ARENA_MAX = -1, -2, -4, -8


def keep_freed_memory() -> None:
    """Have the C library keep freed memory for what comes next; does nothing where that is not glibc.

    By default it returns large tensors to the kernel, which then clears and maps every page of the next one again.
    """
    if sys.platform != "linux":
        return
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        for option, value in ((_MMAP_MAX, 0), (_TRIM_THRESHOLD, -1), (_TOP_PAD, 2**26), (_ARENA_MAX, 1)):
            mallopt(option, value)


def peak_memory_mib() -> float:
    """The most memory in MiB that this process has held so far; on Linux without the code that it reads from files."""
    if sys.platform == "linux":  # where getrusage also counts what the process was before exec
        status = Path("/proc/self/status").read_text(encoding="ascii", errors="replace")
        most, from_files = (int(status.split(key)[1].split()[0]) for key in ("VmHWM:", "RssFile:"))
        return (most - from_files) / 2**10
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (2**20 if sys.platform == "darwin" else 2**10)
