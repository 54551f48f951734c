"""Where training runs, and what a result was made with."""

from __future__ import annotations

import platform
from importlib.metadata import version
from typing import Any

import numpy as np
import torch

from fedpapers.errors import InputError
from fedpapers.version import package_version


def torch_device(name: str) -> torch.device:
    """The device of a name.

    Raises:
        InputError: The name is none of these, or a GPU is asked for and there is none.
    """
    if name not in ("auto", "cpu", "cuda"):
        raise InputError(f"device is {name!r}; expected auto, cpu or cuda")
    if name == "cuda" and not torch.cuda.is_available():
        raise InputError("training.device is cuda: PyTorch sees no GPU; expected auto or cpu here")
    found = torch.cuda.is_available() if name == "auto" else name == "cuda"
    return torch.device("cuda" if found else "cpu")


def environment(device: torch.device, code: str) -> dict[str, Any]:
    """What a result was made with, apart from its description.

    Args:
        device: Where it was trained.
        code: Fingerprint of the code.
    """
    return {
        "code": code,
        "fedpapers": package_version(),
        "python": platform.python_version(),
        "torch": str(torch.__version__),
        "numpy": np.__version__,
        "numba": version("numba"),
        "machine": platform.machine(),
        "device": torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu",
        "threads": torch.get_num_threads(),
    }
