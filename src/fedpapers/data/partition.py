"""Who has which samples: a partition of a data set over clients, and the file in which it is kept."""

from __future__ import annotations

import csv
import hashlib
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from fedpapers.data.draws import Indices, Samples, joined
from fedpapers.errors import InputError
from fedpapers.files import canonical_json, parse_json, replacing

FORMAT = 1

_AGAIN = "make the partition again"


@dataclass(frozen=True, eq=False)
class Partition:
    """The samples of every client, split into train and test.

    Attributes:
        clients: The clients' names; a client's index is its place here.
        train: For each client the indices of its training samples, ascending, int64.
        test: For each client the indices of its test samples, ascending, int64.
    """

    clients: tuple[str, ...]
    train: Samples
    test: Samples

    def __post_init__(self) -> None:
        if not len(self.clients) == len(self.train) == len(self.test):
            raise ValueError(f"{len(self.clients)} clients, {len(self.train)} train and {len(self.test)} test sets")

    def write(self, folder: Path, spec: Mapping[str, Any], labels: NDArray[np.integer[Any]]) -> None:
        """Write `partition.safetensors` and `histogram.csv` to `folder`; equal partitions give equal bytes.

        The file has the arrays train, train_offsets, test, test_offsets (client k's samples are
        `train[train_offsets[k]:train_offsets[k + 1]]`) and one metadata key `fedpapers`: JSON with the format
        version, the clients, the spec, the data set's size and a SHA-256 of all this. The table has a row for each
        client, split and label with at least one sample.

        Args:
            folder: Where to; created where it is missing.
            spec: How the partition was made: the scheme and its arguments, JSON values.
            labels: The labels of the whole data set, shape [n].

        Raises:
            OSError: The folder cannot be written.
        """
        arrays = {"train": joined(self.train), "train_offsets": _offsets(self.train)}
        arrays |= {"test": joined(self.test), "test_offsets": _offsets(self.test)}
        head = {"format": FORMAT, "clients": list(self.clients), "spec": dict(spec), "samples": len(labels)}
        head["sha256"] = _checksum(head, arrays)
        with ExitStack() as stack:
            # The stack moves the files in the reverse order: the partition, opened first, comes last.
            file = stack.enter_context(replacing(folder / "partition.safetensors"))
            # One key only: safetensors writes several in an order of its own, another one each time.
            file.write_bytes(save(arrays, metadata={"fedpapers": canonical_json(head)}))
            self._write_histogram(stack.enter_context(replacing(folder / "histogram.csv")), np.asarray(labels))

    def _write_histogram(self, path: Path, labels: NDArray[np.integer[Any]]) -> None:
        with path.open("w", newline="", encoding="utf-8") as file:
            table = csv.writer(file, lineterminator="\n")
            table.writerow(("client", "split", "label", "samples"))
            for client, *sets in zip(self.clients, self.train, self.test, strict=True):
                for split_name, samples in zip(("train", "test"), sets, strict=True):
                    present, counts = np.unique(labels[samples], return_counts=True)
                    table.writerows(
                        (client, split_name, label, count)
                        for label, count in zip(present.tolist(), counts.tolist(), strict=True)
                    )


def read_partition(path: Path, samples: int | None = None, spec: Mapping[str, Any] | None = None) -> Partition:
    """Read what `Partition.write` wrote; any changed bit is noticed.

    Args:
        path: The file `partition.safetensors`.
        samples: Number of samples of the data set that the indices are to be used with; None where none is at hand.
        spec: How it must have been made, as `Partition.write` was told; None where any will do.

    Raises:
        InputError: The file is missing, broken or of another format version, or was made for a data set of another
            size or in another way.
    """
    head, arrays = _read_file(path)
    if head.get("format") != FORMAT:
        raise InputError(f"{path}: the format version is {head.get('format')!r}; expected {FORMAT}; {_AGAIN}")
    if head.pop("sha256", None) != _checksum(head, arrays):
        raise InputError(f"{path}: the SHA-256 is not the one noted in the file, so it is corrupt; {_AGAIN}")
    if samples is not None and samples != head["samples"]:
        raise InputError(
            f"{path}: made for a data set of {head['samples']} samples; expected one of {samples}; {_AGAIN}"
        )
    if spec is not None and (made := head["spec"]) != spec:
        key = next(key for key in sorted({*made, *spec}) if made.get(key) != spec.get(key))
        raise InputError(f"{path}: made with {key} {made.get(key)!r}; expected {spec.get(key)!r}; {_AGAIN}")
    for name in ("train", "test"):
        _check_indices(path, name, arrays[name], arrays[f"{name}_offsets"], len(head["clients"]), head["samples"])
    train, test = (tuple(np.split(arrays[name], arrays[f"{name}_offsets"][1:-1])) for name in ("train", "test"))
    if np.bincount(joined(train + test)).max(initial=0) > 1:
        raise InputError(f"{path}: a sample is there twice; expected each at most once; {_AGAIN}")
    return Partition(tuple(head["clients"]), train, test)


def _read_file(path: Path) -> tuple[dict[str, Any], dict[str, Indices]]:
    if not path.is_file():
        raise InputError(f"{path}: no such file; expected a partition; {_AGAIN}")
    names = {"train", "train_offsets", "test", "test_offsets"}
    try:
        with safe_open(path, framework="np") as file:
            head = parse_json((file.metadata() or {}).get("fedpapers", "null"))
            arrays = {name: file.get_tensor(name) for name in sorted(file.keys())}
    except (OSError, ValueError, TypeError, RecursionError, SafetensorError) as error:
        raise InputError(f"{path}: corrupt: {' '.join(str(error).split())}; expected a partition; {_AGAIN}") from None
    typed = all(array.dtype == np.int64 and array.ndim == 1 for array in arrays.values())
    if not isinstance(head, dict) or set(arrays) != names or not typed:
        raise InputError(f"{path}: not a partition; expected the int64 arrays {', '.join(sorted(names))}; {_AGAIN}")
    return head, arrays


def _check_indices(path: Path, name: str, indices: Indices, offsets: Indices, clients: int, samples: int) -> None:
    if len(offsets) != clients + 1 or offsets[0] != 0 or offsets[-1] != len(indices) or np.any(np.diff(offsets) < 0):
        raise InputError(
            f"{path}: {name}_offsets do not fit; expected {clients + 1} ascending numbers from 0 to {len(indices)}; "
            f"{_AGAIN}"
        )
    if len(indices) and (indices.min() < 0 or indices.max() >= samples):
        raise InputError(
            f"{path}: {name} has indices from {indices.min()} to {indices.max()}; expected 0 to {samples - 1}; {_AGAIN}"
        )


def _offsets(samples: Samples) -> Indices:
    return np.cumsum([0, *map(len, samples)], dtype=np.int64)


def _checksum(head: Mapping[str, Any], arrays: Mapping[str, Indices]) -> str:
    digest = hashlib.sha256(canonical_json(head).encode())
    for name in sorted(arrays):
        digest.update(f"\0{name}\0{arrays[name].shape}\0".encode())
        digest.update(arrays[name].astype("<i8").tobytes())
    return digest.hexdigest()
