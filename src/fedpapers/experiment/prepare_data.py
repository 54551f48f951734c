"""Preparation of a data set."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fedpapers.data.celeba import prepare_celeba
from fedpapers.data.faces import prepare_celeba_like
from fedpapers.data.femnist import prepare_femnist
from fedpapers.data.glyphs import prepare_femnist_like
from fedpapers.data.mnist import prepare_mnist
from fedpapers.experiment.spec import CelebaData, FemnistData, MnistData


def prepare_data(spec: MnistData | FemnistData | CelebaData, folder: Path) -> None:
    """Make a data set's folder.

    Raises:
        InputError: Its files are missing or malformed.
    """
    given: dict[str, Any] = spec.model_dump(exclude={"kind", "source", "path"}, exclude_none=True)
    path = None if spec.path is None else Path(spec.path)
    match spec:
        case MnistData():
            prepare_mnist(spec.source, folder, path)
        case FemnistData():
            prepare_femnist_like(folder, **given) if path is None else prepare_femnist(path, folder, **given)
        case CelebaData():
            prepare_celeba_like(folder, **given) if path is None else prepare_celeba(path, folder, **given)
