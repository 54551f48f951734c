"""Who has which samples: partitions of a data set over clients, and the file in which one is kept.

Each scheme is a pure function of its arguments that gives, for each client, the indices of its samples in ascending
order. `split` then divides them into train and test. No sample ever belongs to two clients.
"""

from __future__ import annotations

import csv
import hashlib
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from fedpapers.errors import InputError
from fedpapers.files import canonical_json, parse_json, replacing
from fedpapers.groups import Groups
from fedpapers.randomness import Purpose, generator

FORMAT = 1

Indices = NDArray[np.int64]
Samples = tuple[Indices, ...]

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
        arrays = {"train": _joined(self.train), "train_offsets": _offsets(self.train)}
        arrays |= {"test": _joined(self.test), "test_offsets": _offsets(self.test)}
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
    if np.bincount(_joined(train + test)).max(initial=0) > 1:
        raise InputError(f"{path}: a sample is there twice; expected each at most once; {_AGAIN}")
    return Partition(tuple(head["clients"]), train, test)


def by_shards(labels: NDArray[np.integer[Any]], clients: int, shards_per_client: int, seed: int) -> Samples:
    """Sort by label, cut into equal shards, deal each client as many (McMahan et al., arXiv 1602.05629, Section 3).

    Args:
        labels: Integers, shape [n].
        clients: Number of clients K.
        shards_per_client: Shards dealt to each; shards differ by at most one sample.
        seed: Of the deal.

    Returns:
        K index arrays; each sample is in exactly one.

    Raises:
        InputError: A number is below 1, or there are more shards than samples.
    """
    _check_at_least("shards", 1, clients=clients, shards_per_client=shards_per_client)
    count = clients * shards_per_client
    if count > len(labels):
        raise InputError(
            f"partition shards: {clients} clients with {shards_per_client} shards each of {len(labels)} samples; "
            f"expected clients · shards_per_client ≤ {len(labels)}"
        )
    shards = np.array_split(np.argsort(np.asarray(labels), kind="stable"), count)
    deal = _generator(_Step.DEAL, seed).permutation(count).reshape(clients, shards_per_client)
    return tuple(_ascending([shards[shard] for shard in hand]) for hand in deal)


def by_dirichlet(
    labels: NDArray[np.integer[Any]], clients: int, alpha: float, minimum: int, attempts: int, seed: int
) -> Samples:
    """Divide each label over the clients in proportions drawn from Dirichlet(α) (Hsu et al., arXiv 1909.06335).

    The draw is repeated until every client has `minimum` samples; what is accepted is thus a little less skewed
    than the Dirichlet distribution itself.

    Args:
        labels: Integers, shape [n].
        clients: Number of clients K.
        alpha: Concentration α of the symmetric distribution over K clients; small means skewed.
        minimum: Samples that each client must have.
        attempts: Draws made at most.
        seed: Of the draws.

    Returns:
        K index arrays; each sample is in exactly one.

    Raises:
        InputError: α is not positive and finite, another number is below 1 (`minimum`: below 0), or no attempt gave
            every client its minimum.
    """
    _check_at_least("dirichlet", 1, clients=clients, attempts=attempts)
    _check_at_least("dirichlet", 0, minimum=minimum)
    if not 0 < alpha < float("inf"):
        raise InputError(f"partition dirichlet: alpha is {alpha}; expected a positive number")
    draw = _generator(_Step.DEAL, seed)
    by_label = _by_label(np.asarray(labels))
    best = 0
    # Without enough samples for everybody no draw can succeed.
    for _ in range(attempts if clients * minimum <= len(labels) else 0):
        samples = _dirichlet_draw(by_label, clients, alpha, draw)
        smallest = min(map(len, samples))
        if smallest >= minimum:
            return samples
        best = max(best, smallest)
    reached = (
        f"the smallest client had at best {best} in {attempts} attempts"
        if clients * minimum <= len(labels)
        else f"there are {len(labels)} in all"
    )
    raise InputError(
        f"partition dirichlet: alpha {alpha}, {clients} clients: {reached}; expected a minimum of {minimum} samples "
        f"each within {attempts} attempts; raise alpha or attempts, or lower minimum or clients"
    )


def by_writer(
    writers: NDArray[np.integer[Any]], writer_names: Sequence[str], minimum: int
) -> tuple[tuple[str, ...], Samples]:
    """Make each writer a client, in the order of `writer_names`.

    Args:
        writers: Integers, shape [n], each an index into `writer_names`.
        writer_names: The writers' names.
        minimum: Writers with fewer samples are left out, and their samples with them; at least 1.

    Returns:
        The names of the K writers that are left, and their K index arrays.

    Raises:
        InputError: `minimum` is below 1, or no writer is left.
    """
    _check_at_least("writer", 1, minimum=minimum)
    writers = np.asarray(writers)
    counts = np.bincount(writers, minlength=len(writer_names))
    everybody = np.split(np.argsort(writers, kind="stable"), np.cumsum(counts)[:-1])
    kept = np.flatnonzero(counts >= minimum)
    if len(kept) == 0:
        raise InputError(
            f"partition writer: none of {len(writer_names)} writers has the minimum of {minimum} samples; "
            f"expected at least one; the largest has {counts.max(initial=0)}"
        )
    return tuple(writer_names[k] for k in kept.tolist()), tuple(everybody[k] for k in kept)


def group_classes(
    labels: NDArray[np.integer[Any]], groups: Groups, classes_per_group: int, class_overlap: int, seed: int
) -> dict[str, tuple[int, ...]]:
    """The classes of each group: neighbours in the order of the groups share `class_overlap`.

    The classes stand on a circle in a random order. Group m has `classes_per_group` consecutive ones, beginning at
    place m · (classes_per_group − class_overlap); once the groups have gone round, groups further apart overlap too.

    Args:
        labels: Integers, shape [n]; the classes are the labels that occur.
        groups: The structure.
        classes_per_group: Classes of each group.
        class_overlap: Classes that neighbours share; equal to `classes_per_group`, all groups have the same.
        seed: Of the order of the classes.

    Returns:
        Group name -> its classes, in the order of the circle.

    Raises:
        InputError: A number is out of its range.
    """
    classes = np.unique(labels)
    if not 1 <= classes_per_group <= len(classes):
        raise InputError(
            f"partition groups: classes_per_group is {classes_per_group}; expected 1 to {len(classes)}, the number of "
            f"classes"
        )
    if not 0 <= class_overlap <= classes_per_group:
        raise InputError(
            f"partition groups: class_overlap is {class_overlap}; expected 0 to classes_per_group, which is "
            f"{classes_per_group}"
        )
    circle = _generator(_Step.CLASSES, seed).permutation(classes)
    step = classes_per_group - class_overlap
    return {
        name: tuple(np.take(circle, range(m * step, m * step + classes_per_group), mode="wrap").tolist())
        for m, name in enumerate(groups.names)
    }


def by_groups(
    labels: NDArray[np.integer[Any]],
    groups: Groups,
    classes_per_group: int,
    class_overlap: int,
    samples_per_worker: int,
    seed: int,
) -> Samples:
    """Give each worker samples of its groups' classes (ours: the papers do not say how groups differ).

    A worker has as many samples of each of its classes, as far as these last; what does not divide goes to classes
    drawn at random, and what a class lacks to the others. Workers with few classes are served first, because the
    others have more to choose from.

    Args:
        labels: Integers, shape [n].
        groups: The structure.
        classes_per_group: See `group_classes`.
        class_overlap: See `group_classes`.
        samples_per_worker: Samples of each worker, train and test together.
        seed: Of the classes' order and of the samples.

    Returns:
        An index array for each worker, in the order of `groups.workers`; no sample is in two, some may be in none.

    Raises:
        InputError: A number is out of its range, or too few samples are left for a worker.
    """
    _check_at_least("groups", 1, samples_per_worker=samples_per_worker)
    of_group = group_classes(labels, groups, classes_per_group, class_overlap, seed)
    of_worker = {
        worker: sorted({c for name, members in groups.members.items() if worker in members for c in of_group[name]})
        for worker in groups.workers
    }
    shuffle = _generator(_Step.POOLS, seed)
    pools = {int(labels[pool[0]]): shuffle.permutation(pool) for pool in _by_label(np.asarray(labels))}
    samples: dict[str, Indices] = {}
    for worker in sorted(groups.workers, key=lambda name: len(of_worker[name])):
        classes = of_worker[worker]
        supply = np.array([len(pools[c]) for c in classes])
        if supply.sum() < samples_per_worker:
            raise InputError(
                f"partition groups: worker '{worker}': {supply.sum()} samples of labels {', '.join(map(str, classes))} "
                f"are left; expected samples_per_worker, which is {samples_per_worker}; lower it, or take a larger "
                f"data set or fewer workers"
            )
        draw = _generator(_Step.DEAL, seed, client=groups.workers.index(worker))
        quotas = _even_quotas(samples_per_worker, supply, draw)
        samples[worker] = _ascending([pools[c][:quota] for c, quota in zip(classes, quotas, strict=True)])
        for c, quota in zip(classes, quotas, strict=True):
            pools[c] = pools[c][quota:]
    return tuple(samples[worker] for worker in groups.workers)


def sample_writers(counts: Sequence[int], fraction: float, min_samples: int, seed: int) -> Indices:
    """LEAF's sampling of a data set: which writers are taken, and how many samples of each.

    Writers are taken in random order until they have `fraction` of all samples; of the last one only as many (its
    first) as are lacking. Then those with fewer than `min_samples` are left out (`sample.py --niid` and
    `remove_users.py` of github.com/TalwalkarLab/leaf). LEAF does so in each of its files; we take all files together,
    because other formats are cut into files differently.

    Args:
        counts: Samples of each writer.
        fraction: Share of the samples, in (0, 1]; 1 takes all.
        min_samples: At least 1.
        seed: Of the order.

    Returns:
        For each writer the number of samples taken, 0 for those left out; shape [writers].

    Raises:
        InputError: A number is out of its range, or no writer is left.
    """
    if not 0 < fraction <= 1:
        raise InputError(f"sampling of writers: fraction is {fraction}; expected a number above 0, at most 1")
    _check_at_least("writer", 1, min_samples=min_samples)
    sizes = np.asarray(counts, dtype=np.int64)
    taken = sizes.copy()
    if fraction < 1:
        order = _generator(_Step.SAMPLE, seed).permutation(len(sizes))
        before = np.cumsum(sizes[order]) - sizes[order]
        taken[order] = np.clip(int(fraction * sizes.sum()) - before, 0, sizes[order])
    taken[taken < min_samples] = 0
    if not taken.any():
        raise InputError(
            f"sampling of writers: with fraction {fraction} none of {len(sizes)} writers has min_samples "
            f"{min_samples}; expected at least one; the largest has {sizes.max(initial=0)} samples in all"
        )
    return taken


def split_as_leaf(
    samples_per_client: Sequence[Indices], clients: Sequence[str], train_fraction: float, seed: int
) -> Partition:
    """Split every client's samples as LEAF's `split_data.py --by_sample` does: as `split`, but rounded down.

    A client has at least 1 training sample; clients with fewer than 2 samples are dropped.

    Args:
        samples_per_client: K index arrays.
        clients: The K clients' names.
        train_fraction: Share of the training samples, in (0, 1).
        seed: Of the split.

    Raises:
        InputError: `train_fraction` is out of range, or no client is left.
    """
    _check_train_fraction(train_fraction)
    kept = [k for k, samples in enumerate(samples_per_client) if len(samples) >= 2]
    if not kept:
        raise InputError(f"partition: none of {len(clients)} clients has 2 samples; expected at least one to split")
    train, test = [], []
    for k in kept:
        samples = samples_per_client[k]
        sides = _cut(samples, max(1, int(train_fraction * len(samples))), seed, k)
        train.append(sides[0])
        test.append(sides[1])
    return Partition(tuple(clients[k] for k in kept), tuple(train), tuple(test))


def split(samples_per_client: Sequence[Indices], clients: Sequence[str], train_fraction: float, seed: int) -> Partition:
    """Split every client's samples at random into train and test.

    The number of training samples is rounded half up, then bounded such that each side has at least one. A client's
    split does not depend on the other clients.

    Args:
        samples_per_client: K index arrays, at least 2 samples each.
        clients: The K clients' names.
        train_fraction: Share of the training samples, in (0, 1).
        seed: Of the split.

    Raises:
        InputError: `train_fraction` is out of range, or a client has fewer than 2 samples.
    """
    _check_train_fraction(train_fraction)
    train, test = [], []
    for k, (client, samples) in enumerate(zip(clients, samples_per_client, strict=True)):
        n = len(samples)
        if n < 2:
            raise InputError(
                f"partition: client '{client}' has {n} sample{'s' * (n != 1)}; expected at least 2, one to train and "
                f"one to test; raise the minimum of samples per client"
            )
        sides = _cut(samples, min(max(int(n * train_fraction + 0.5), 1), n - 1), seed, k)
        train.append(sides[0])
        test.append(sides[1])
    return Partition(tuple(clients), tuple(train), tuple(test))


def _check_train_fraction(train_fraction: float) -> None:
    if not 0 < train_fraction < 1:
        raise InputError(f"partition: train_fraction is {train_fraction}; expected a number between 0 and 1")


def _cut(samples: Indices, n_train: int, seed: int, client: int) -> tuple[Indices, Indices]:
    order = _generator(_Step.SPLIT, seed, client=client).permutation(samples)
    return _ascending([order[:n_train]]), _ascending([order[n_train:]])


class _Step(IntEnum):
    """What a draw of a partition is for. The numbers are part of every result: append, never renumber."""

    DEAL = 0
    CLASSES = 1
    POOLS = 2
    SPLIT = 3
    SAMPLE = 4


def _generator(step: _Step, seed: int, client: int = 0) -> np.random.Generator:
    # A partition has no rounds: their place in the address keeps its steps apart.
    return generator(seed, Purpose.PARTITION, round=int(step), client=client)


def _check_at_least(scheme: str, least: int, **values: int) -> None:
    for name, value in values.items():
        if value < least:
            raise InputError(f"partition {scheme}: {name} is {value}; expected at least {least}")


def _ascending(parts: Sequence[Indices]) -> Indices:
    return np.sort(_joined(parts))


def _joined(parts: Sequence[Indices]) -> Indices:
    return np.concatenate([np.empty(0, dtype=np.int64), *parts])


def _by_label(labels: NDArray[np.integer[Any]]) -> list[Indices]:
    """The indices of each label that occurs, labels ascending."""
    _, counts = np.unique(labels, return_counts=True)
    return np.split(np.argsort(labels, kind="stable"), np.cumsum(counts)[:-1])


def _dirichlet_draw(
    by_label: Sequence[Indices], clients: int, alpha: float, draw: np.random.Generator
) -> tuple[Indices, ...]:
    hands: list[list[Indices]] = [[] for _ in range(clients)]
    for indices in by_label:
        ends = np.cumsum(_proportions(clients, alpha, draw)) * len(indices)
        parts = np.split(draw.permutation(indices), np.rint(ends[:-1]).astype(np.int64))
        for hand, part in zip(hands, parts, strict=True):
            hand.append(part)
    return tuple(_ascending(hand) for hand in hands)


def _proportions(clients: int, alpha: float, draw: np.random.Generator) -> NDArray[np.float64]:
    """One draw of Dirichlet(α, …, α), shape [clients].

    As Gamma(α) underflows to 0 for small α, it is drawn by its logarithm: log G(α) = log G(α + 1) − E / α, E
    exponential. Beyond 1e±300 α is its limit for all that a float can tell.
    """
    alpha = min(max(alpha, 1e-300), 1e300)
    logs = np.log(draw.standard_gamma(alpha + 1, clients)) - draw.standard_exponential(clients) / alpha
    weights = np.exp(logs - logs.max())
    return np.asarray(weights / weights.sum(), dtype=np.float64)


def _even_quotas(total: int, supply: NDArray[np.int64], draw: np.random.Generator) -> list[int]:
    """Divide `total` ≤ sum of `supply` as evenly as `supply` allows; what does not divide goes to random places."""
    level = 0
    while np.minimum(supply, level + 1).sum() <= total:
        level += 1
        if level >= supply.max():
            break
    quotas = np.minimum(supply, level)
    more = draw.permutation(np.flatnonzero(supply > level))[: total - quotas.sum()]
    quotas[more] += 1
    return [int(quota) for quota in quotas]


def _offsets(samples: Samples) -> Indices:
    return np.cumsum([0, *map(len, samples)], dtype=np.int64)


def _checksum(head: Mapping[str, Any], arrays: Mapping[str, Indices]) -> str:
    digest = hashlib.sha256(canonical_json(head).encode())
    for name in sorted(arrays):
        digest.update(f"\0{name}\0{arrays[name].shape}\0".encode())
        digest.update(arrays[name].astype("<i8").tobytes())
    return digest.hexdigest()


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
