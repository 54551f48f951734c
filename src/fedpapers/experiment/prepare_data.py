"""Preparation of a data set."""

from __future__ import annotations

from pathlib import Path

from fedpapers.data.mnist import prepare_mnist
from fedpapers.experiment.spec import MnistData


def prepare_data(spec: MnistData, folder: Path) -> None:
    """Make a data set's folder.

    Raises:
        InputError: Its files are missing or malformed.
    """
    prepare_mnist(spec.source, folder, None if spec.path is None else Path(spec.path))
