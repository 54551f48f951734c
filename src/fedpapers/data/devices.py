"""The devices of MultFAug: few samples of one target label, many of each other one, and digits that no device has."""

from __future__ import annotations

import csv
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from fedpapers.errors import InputError
from fedpapers.files import canonical_json, parse_json, replacing, sealed, sha256, write_json
from fedpapers.randomness import Purpose, generator

FORMAT = 1
FILE = "devices.safetensors"

Indices = NDArray[np.int64]

_AGAIN = "deal the devices again"
_HELD_OUT, _TO_DEVICES = 0, 1  # two streams of draws; the first has the same seed for all devices
_COMMON_SEED = 0


@dataclass(frozen=True, eq=False)
class Devices:
    """Who has which samples of a data set.

    Attributes:
        targets: Each device's target label, shape [N].
        samples: The samples of all devices, shape [total]: device by device, label by label, in the order drawn.
        counts: How many of each label a device has, shape [N, 10].
        test: Samples on which all devices are tested, which no device has.
        held_out: Samples for the judge of generated ones, which no device has and which are not in `test`.
        shared: How many samples were dealt more than once because the data did not last.
    """

    targets: Indices
    samples: Indices
    counts: Indices
    test: Indices
    held_out: Indices
    shared: int = 0

    def of_label(self, device: int, label: int) -> Indices:
        """A device's samples of a label, in the random order in which they were dealt."""
        flat = self.counts.reshape(-1)
        place = device * self.counts.shape[1] + label
        start = int(flat[:place].sum())
        return self.samples[start : start + int(flat[place])]

    def of(self, device: int) -> Indices:
        """All samples of a device, by label."""
        return np.concatenate([self.of_label(device, label) for label in range(self.counts.shape[1])])

    def write(self, folder: Path, labels: NDArray[np.int64], name: str, classes: Sequence[str]) -> None:
        """Write `devices.safetensors`, `histogram.csv` and `about.json`; equal devices give equal bytes.

        Args:
            folder: Where to; created where it is missing.
            labels: The labels of the whole data set, shape [n].
            name: Name of the data set.
            classes: The classes' names.
        """
        arrays = self._arrays()
        head: dict[str, Any] = {"format": FORMAT, "shared": self.shared, "samples": len(labels)}
        head["sha256"] = _checksum(head, arrays)
        sizes = {"devices": len(self.targets), "test": len(self.test), "held_out": len(self.held_out)}
        with replacing(folder / "histogram.csv") as path, path.open("w", newline="", encoding="utf-8") as file:
            table = csv.writer(file, lineterminator="\n")
            table.writerow(("client", "split", "label", "samples"))
            for client, split, samples in self._sets():
                present, counts = np.unique(labels[samples], return_counts=True)
                pairs = zip(present.tolist(), counts.tolist(), strict=True)
                table.writerows((client, split, label, count) for label, count in pairs)
        about = {"data": name, "classes": list(classes), "groups": {}, "counts": sizes, "shared": self.shared}
        about |= {"targets": self.targets.tolist(), "histogram_sha256": sha256(folder / "histogram.csv")}
        write_json(folder / "about.json", sealed(about))
        with replacing(folder / FILE) as path:
            path.write_bytes(save(arrays, metadata={"fedpapers": canonical_json(head)}))

    def _arrays(self) -> dict[str, Indices]:
        return {name: getattr(self, name) for name in ("targets", "samples", "counts", "test", "held_out")}

    def _sets(self) -> list[tuple[str, str, Indices]]:
        """The rows of the histogram: of each device, and of what none has."""
        devices = [(str(device), "train", self.of(device)) for device in range(len(self.targets))]
        return [*devices, ("no device", "test", self.test), ("no device", "held out", self.held_out)]


def read_devices(path: Path, samples: int) -> Devices:
    """Read what `Devices.write` wrote; any changed bit is noticed.

    Args:
        path: The file `devices.safetensors`.
        samples: Number of samples of the data set that the indices are to be used with.

    Raises:
        InputError: The file is missing, broken, of another format version or made for a data set of another size.
    """
    try:
        with safe_open(path, framework="np") as file:
            head: dict[str, Any] = parse_json((file.metadata() or {}).get("fedpapers", "{}"))
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a mapping)
        stated = head.pop("sha256", None)
        whole = stated == _checksum(head, arrays)
    except FileNotFoundError:
        raise InputError(f"{path}: no such file; {_AGAIN}") from None
    except (SafetensorError, ValueError, OSError, AttributeError) as error:
        raise InputError(f"{path}: damaged ({error}); {_AGAIN}") from None
    if head.get("format") != FORMAT:
        raise InputError(f"{path}: format {head.get('format')!r}; expected {FORMAT}; {_AGAIN}")
    if not whole:
        raise InputError(f"{path}: the SHA-256 is not the one noted in the file, so it is corrupt; {_AGAIN}")
    if head["samples"] != samples:
        raise InputError(f"{path}: made for {head['samples']} samples; expected a data set of {samples}; {_AGAIN}")
    return Devices(shared=head["shared"], **arrays)


def deal_devices(
    labels: NDArray[np.int64],
    targets: Sequence[int],
    few: int,
    many: int,
    test: int | Indices,
    held_out: int,
    seed: int,
) -> Devices:
    """Give each device `few` samples of its target label and `many` of each other one (the paper: 4 and 200).

    No sample goes to two devices as long as the data last; when a label is used up its samples are dealt anew, from
    the first on. What is for testing and for the judge is drawn first, the same whatever the devices and the seed.

    Args:
        labels: Integers from 0 to 9, shape [n].
        targets: The target label of each of N devices.
        few: Samples of the target label.
        many: Samples of each other label.
        test: Samples for testing of each label, or the indices of those samples.
        held_out: Samples for the judge of each label.
        seed: Of what the devices get.

    Raises:
        InputError: A label has too few samples for one device, or for testing and the judge.
    """
    classes = 10
    counts = np.full((len(targets), classes), many, dtype=np.int64)
    counts[np.arange(len(targets)), list(targets)] = few
    own_test = isinstance(test, int)
    free = np.ones(len(labels), dtype=bool)
    if not own_test:
        free[test] = False
    tests, judged, dealt = [], [], []
    shared = 0
    for label in range(classes):
        pool = _shuffled(np.flatnonzero((labels == label) & free), _HELD_OUT, label, _COMMON_SEED)
        reserved = (test if isinstance(test, int) else 0) + held_out
        supply = _shuffled(np.sort(pool[reserved:]), _TO_DEVICES, label, seed)
        _check_supply(label, len(pool), reserved, int(counts[:, label].max(initial=0)))
        tests.append(pool[: reserved - held_out])
        judged.append(pool[reserved - held_out : reserved])
        ends = np.cumsum(counts[:, label])
        starts = ends - counts[:, label]
        dealt.append([supply[np.arange(*run) % len(supply)] for run in zip(starts, ends, strict=True)])
        shared += max(0, int(ends[-1]) - len(supply))
    samples = np.concatenate([dealt[label][device] for device in range(len(targets)) for label in range(classes)])
    tested = np.sort(np.concatenate(tests)) if own_test else np.asarray(test, dtype=np.int64)
    return Devices(np.array(targets, dtype=np.int64), samples, counts, tested, np.sort(np.concatenate(judged)), shared)


def _shuffled(indices: Indices, step: int, label: int, seed: int) -> Indices:
    return generator(seed, Purpose.DEVICES, group=step, client=label).permutation(indices)


def _check_supply(label: int, there: int, reserved: int, most: int) -> None:
    if there < reserved + most:
        raise InputError(
            f"devices: {there} samples of label {label}; expected at least {reserved + most}: {reserved} for testing "
            f"and the judge, {most} of one device; lower samples_per_label, test_samples or judge_samples"
        )


def _checksum(head: dict[str, Any], arrays: dict[str, Indices]) -> str:
    digest = hashlib.sha256(canonical_json(head).encode())
    for name in sorted(arrays):
        digest.update(name.encode() + arrays[name].tobytes())
    return digest.hexdigest()
