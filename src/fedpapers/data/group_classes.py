"""Non-IID groups: each group has classes of its own, neighbours share some, and workers get samples of theirs."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedpapers.data.draws import Indices, Samples, Step, ascending, check_at_least, indices_by_label, step_generator
from fedpapers.errors import InputError
from fedpapers.groups import Groups


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
    circle = step_generator(Step.CLASSES, seed).permutation(classes)
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
    check_at_least("groups", 1, samples_per_worker=samples_per_worker)
    of_group = group_classes(labels, groups, classes_per_group, class_overlap, seed)
    of_worker = {
        worker: sorted({c for name, members in groups.members.items() if worker in members for c in of_group[name]})
        for worker in groups.workers
    }
    shuffle = step_generator(Step.POOLS, seed)
    pools = {int(labels[pool[0]]): shuffle.permutation(pool) for pool in indices_by_label(np.asarray(labels))}
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
        draw = step_generator(Step.DEAL, seed, client=groups.workers.index(worker))
        quotas = _even_quotas(samples_per_worker, supply, draw)
        samples[worker] = ascending([pools[c][:quota] for c, quota in zip(classes, quotas, strict=True)])
        for c, quota in zip(classes, quotas, strict=True):
            pools[c] = pools[c][quota:]
    return tuple(samples[worker] for worker in groups.workers)


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
