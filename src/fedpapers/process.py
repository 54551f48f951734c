"""Settings of a process that trains."""

from __future__ import annotations

import ctypes
import os
import sys

# Numbers of glibc's mallopt(3).
_TRIM_THRESHOLD, _TOP_PAD, _MMAP_MAX, _ARENA_MAX = -1, -2, -4, -8


def set_up_training() -> None:
    """Have OpenMP's idle threads sleep and the C library keep freed memory; call it before PyTorch is loaded."""
    _let_idle_threads_sleep()
    keep_freed_memory()


def _let_idle_threads_sleep() -> None:
    """By default OpenMP's threads spin for milliseconds after each operation, on cores that clients' threads need.

    OpenMP reads this once, when PyTorch loads it.
    """
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")


def keep_freed_memory() -> None:
    """Have the C library keep freed memory; does nothing where that is not glibc.

    By default it returns large tensors to the kernel, which then clears and maps every page of the next one again.
    """
    if sys.platform != "linux":
        return
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        for option, value in ((_MMAP_MAX, 0), (_TRIM_THRESHOLD, -1), (_TOP_PAD, 2**26), (_ARENA_MAX, 1)):
            mallopt(option, value)
