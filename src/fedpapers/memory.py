"""Memory of this process: put what is large on disk, and say how much was needed."""

from __future__ import annotations

import math
import os
import resource
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

LARGE = 2**27  # bytes of one tensor


def room(*shape: int, like: torch.Tensor) -> torch.Tensor:
    """A tensor of any values with a device and type; on a CPU a large one lies in an unnamed file in `TMPDIR`.

    So the models of thousands of clients need disk, and memory only as far as there is some to spare.

    Raises:
        OSError: The disk is full.
    """
    import numpy as np
    import torch

    size = math.prod(shape) * like.dtype.itemsize
    if size <= LARGE or like.device.type != "cpu" or not hasattr(os, "posix_fallocate"):
        return like.new_empty(shape)
    with tempfile.TemporaryFile() as file:
        os.posix_fallocate(file.fileno(), 0, size)  # on a full disk an error here, not a killed process later
        mapped = np.memmap(file, dtype=np.uint8, mode="r+", shape=(size,))
    return torch.from_numpy(mapped).view(like.dtype).reshape(shape)


def peak_memory_mib() -> float:
    """The most memory in MiB that this process has held so far; on Linux without the code that it reads from files."""
    if sys.platform == "linux":  # where getrusage also counts what the process was before exec
        status = Path("/proc/self/status").read_text(encoding="ascii", errors="replace")
        most, from_files = (int(status.split(key)[1].split()[0]) for key in ("VmHWM:", "RssFile:"))
        return (most - from_files) / 2**10
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (2**20 if sys.platform == "darwin" else 2**10)
