"""Memory of this process: put what is large on disk, and say how much was needed."""

from __future__ import annotations

import math
import mmap
import os
import resource
import sys
import tempfile
import weakref
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import torch

LARGE = 2**27  # bytes of one tensor
_APART = 2**24  # bytes of zeros from which on they lie apart from the heap
_PRIVATE = {"flags": mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS} if os.name == "posix" else {}
_left: dict[int, list[mmap.mmap]] = {}  # places that such zeros had, by size


def room(*shape: int, like: torch.Tensor) -> torch.Tensor:
    """A tensor of any values with a device and type; on a CPU a large one lies in an unnamed file in `TMPDIR`.

    So the models of thousands of clients need disk, and memory only as far as there is some to spare.

    Raises:
        OSError: The disk is full.
    """
    import torch

    size = math.prod(shape) * like.dtype.itemsize
    if size <= LARGE or like.device.type != "cpu" or not hasattr(os, "posix_fallocate"):
        return like.new_empty(shape)
    with tempfile.TemporaryFile() as file:
        os.posix_fallocate(file.fileno(), 0, size)  # on a full disk an error here, not a killed process later
        mapped = np.memmap(file, dtype=np.uint8, mode="r+", shape=(size,))
    return torch.from_numpy(mapped).view(like.dtype).reshape(shape)


def zeros(*shape: int, like: torch.Tensor) -> torch.Tensor:
    """Zeros with a device and type; on a CPU those of a wide network's size lie apart from the heap.

    In the heap training's small tensors would fill the last model's place before the next one needs it. Here the place
    of one that nobody holds any more stays, for the next one of its size.
    """
    import torch

    size = math.prod(shape) * like.dtype.itemsize
    if size < _APART or like.device.type != "cpu":
        return like.new_zeros(shape)
    places = _left.setdefault(size, [])
    place = places.pop() if places else mmap.mmap(-1, size, **_PRIVATE)
    values = np.frombuffer(place, dtype=np.uint8)
    weakref.finalize(values, places.append, place)
    return torch.from_numpy(values).view(like.dtype).view(shape).zero_()


def peak_memory_mib() -> float:
    """The most memory in MiB that this process has held so far; on Linux without the code that it reads from files."""
    if sys.platform == "linux":  # where getrusage also counts what the process was before exec
        status = Path("/proc/self/status").read_text(encoding="ascii", errors="replace")
        most, from_files = (int(status.split(key)[1].split()[0]) for key in ("VmHWM:", "RssFile:"))
        return (most - from_files) / 2**10
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (2**20 if sys.platform == "darwin" else 2**10)
