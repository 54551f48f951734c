"""Preparation of a data set. Each kind and source has a module of its own, imported, and fingerprinted, alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fedpapers.experiment.dataset_spec import CelebaData, FemnistData, MnistData
from fedpapers.experiment.fingerprint import fingerprint


def prepare_data(spec: MnistData | FemnistData | CelebaData, folder: Path) -> None:
    """Make a data set's folder.

    Raises:
        InputError: Its files are missing or malformed.
    """
    given: dict[str, Any] = spec.model_dump(exclude={"kind", "source", "path"}, exclude_none=True)
    path = Path(spec.path or "")
    match _module(spec):
        case "mnist":
            from fedpapers.data.mnist import prepare_mnist

            prepare_mnist(spec.source, folder, path if spec.path else None)
        case "femnist":
            from fedpapers.data.femnist import prepare_femnist

            prepare_femnist(path, folder, **given)
        case "glyphs":
            from fedpapers.data.glyphs import prepare_femnist_like

            prepare_femnist_like(folder, **given)
        case "celeba":
            from fedpapers.data.celeba import prepare_celeba

            prepare_celeba(path, folder, **given)
        case "faces":
            from fedpapers.data.faces import prepare_celeba_like

            prepare_celeba_like(folder, **given)


def code_of(spec: MnistData | FemnistData | CelebaData) -> str:
    """The fingerprint of the code that prepares a data set: what prepares others is no part of it."""
    return fingerprint(f"fedpapers.data.{_module(spec)}")


def _module(spec: MnistData | FemnistData | CelebaData) -> str:
    generated = {"femnist": "glyphs", "celeba": "faces"} if spec.source == "embedded" else {}
    return generated.get(spec.kind, spec.kind)
