"""Local training of a whole cohort: from start models and batches to the clipped sum of each group.

All speed-ups of local training belong behind `train_cohort`; the engine knows nothing of how it is done.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import islice

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn.functional import cross_entropy

from fedpapers.federated import sgd
from fedpapers.federated.clients import Batch
from fedpapers.federated.low_rank import WideLayer, add_up, train_together
from fedpapers.memory import zeros
from fedpapers.models import Layout
from fedpapers.parallel import at_once

_SAMPLES = 100  # of one step that are trained at once: twice as many are 1 % faster and need 30 MiB more
_VALUES = 2**21  # of updates that a thread keeps before they are added up

Clip = Callable[[Tensor], tuple[Tensor, float]]


@dataclass(frozen=True)
class Participation:
    """One sampled client in one group.

    Attributes:
        group: Index of the group among those that train together.
        client: Index of the client.
        start: Shared parameters [P] that it starts from; may be the same tensor for many.
        private: Its private parameters.
        batches: Loads its mini-batches, one for each local step.
    """

    group: int
    client: int
    start: Tensor
    private: Tensor
    batches: Callable[[], Sequence[Batch]]


@dataclass(frozen=True)
class Update:
    """What local training changed.

    Attributes:
        shared: Change Δφ of the shared parameters, shape [P].
        private: The new private parameters.
        loss: Loss on the first batch, before training.
    """

    shared: Tensor
    private: Tensor
    loss: float


@dataclass(frozen=True)
class Learner:
    """The network and how a client trains it.

    Attributes:
        model: The network; its own parameters are never read.
        layout: Where its parameters lie in a vector.
        learning_rate: η of plain SGD.
    """

    model: nn.Module
    layout: Layout
    learning_rate: float

    @cached_property
    def wide(self) -> WideLayer | None:
        """The layer of which clients need no copies, if there is one."""
        return WideLayer.of(self.model, self.layout)

    @cached_property
    def _twins(self) -> list[Learner]:
        return [self]

    def twins(self, count: int) -> list[Learner]:
        """Learners that can be used at once: a network holds the parameters that it is called with."""
        while len(self._twins) < count:
            self._twins.append(replace(self, model=copy.deepcopy(self.model)))
        return self._twins[:count]

    def logits(self, parameters: dict[str, Tensor], images: Tensor) -> Tensor:
        """Outputs [batch, classes] of the model with some parameters."""
        output: Tensor = functional_call(self.model, parameters, (images,), tie_weights=False)
        return output

    def update(self, one: Participation) -> Update:
        """Local training of one participation."""
        trained, shared = torch.cat([one.start, one.private]), self.layout.shared_size
        loss = self.train(trained, one.batches())
        return Update(trained[:shared] - one.start, trained[shared:].clone(), loss)

    def train(self, vector: Tensor, batches: Sequence[Batch]) -> float:
        """Change a vector [size] by one SGD step a batch, of at least one; gives the loss of the first batch."""
        parameters, losses = sgd.parameters_in(vector, self.layout), []
        for images, labels in batches:
            loss = cross_entropy(self.logits(parameters, images), labels)
            sgd.step(loss, self.learning_rate)
            losses.append(loss.detach())
        return losses[0].item()


@dataclass(frozen=True)
class CohortResult:
    """What a cohort's local training leaves behind.

    Attributes:
        sums: Sum of the clipped updates of each group's participants, shape [M, P].
        private: For each participation the new private parameters.
        norms: Norm of each update before clipping, not finite where training diverged.
        losses: Loss of each participation on its first batch, before training.
    """

    sums: Tensor
    private: list[Tensor]
    norms: list[float]
    losses: list[float]


def train_cohort(learner: Learner, cohort: Sequence[Participation], clip: Clip, like: Tensor) -> CohortResult:
    """Train each participation, clip its update of the shared parameters, and add up by group.

    Args:
        learner: The network and how a client trains it.
        cohort: The participations of one round; their order does not matter.
        clip: What bounds an update's norm.
        like: A tensor [M, P] that gives the sums' shape, type and device.
    """
    sums, unknown = zeros(*like.shape, like=like), [math.nan] * len(cohort)
    result = CohortResult(sums, [like.new_empty(0)] * len(cohort), unknown, unknown.copy())
    for wave in _trained(learner, cohort, clip, 1 if like.is_cuda else torch.get_num_threads()):
        while wave:
            wave.pop(0)(result)
    return result


def _trained(
    learner: Learner, cohort: Sequence[Participation], clip: Clip, threads: int
) -> Iterator[list[Callable[[CohortResult], None]]]:
    """Local training of as many parts at a time as there are threads; gives what adds each to a result."""
    parts = _parts(learner, cohort, max(1, -(-len(cohort) // threads)))
    while wave := list(islice(parts, threads)):
        twins = learner.twins(len(wave))
        yield at_once([partial(part.train, twin, cohort, clip) for part, twin in zip(wave, twins, strict=True)])


@dataclass(frozen=True)
class _Clipped(Update):
    """An update that is clipped, and the norm that it had."""

    norm: float

    @classmethod
    def of(cls, update: Update, clip: Clip) -> _Clipped:
        """The clipped update."""
        shared, norm = clip(update.shared)
        return cls(shared, update.private, update.loss, norm)


@dataclass(frozen=True)
class _Part:
    """Participations that one thread trains, one after the other.

    Attributes:
        places: Where they are in the cohort.
    """

    places: Sequence[int]

    def train(self, learner: Learner, cohort: Sequence[Participation], clip: Clip) -> Callable[[CohortResult], None]:
        """Local training and clipping; gives what adds them to a result."""
        trained = [_Clipped.of(learner.update(cohort[k]), clip) for k in self.places]

        def add(result: CohortResult) -> None:
            for k, update in zip(self.places, trained, strict=True):
                result.sums[cohort[k].group] += update.shared
                result.private[k], result.norms[k], result.losses[k] = update.private, update.norm, update.loss

        return add


@dataclass(frozen=True)
class _PartTogether(_Part):
    """Participations that start from one model and train together.

    Attributes:
        batches: Their mini-batches, as many for each.
    """

    batches: Sequence[Sequence[Batch]]

    def train(self, learner: Learner, cohort: Sequence[Participation], clip: Clip) -> Callable[[CohortResult], None]:
        """Local training and clipping; gives what adds them to a result."""
        members, wide = [cohort[k] for k in self.places], learner.wide
        assert wide is not None
        trained = train_together(learner, wide, members, self.batches, clip)

        def add(result: CohortResult) -> None:
            add_up(wide, members, trained, result.sums)
            found = zip(self.places, trained.private, trained.norms, trained.losses, strict=True)
            for k, private, norm, loss in found:
                result.private[k], result.norms[k], result.losses[k] = private, norm, loss

        return add


def _parts(learner: Learner, cohort: Sequence[Participation], most: int) -> Iterator[_Part]:
    """The cohort in parts of at most some participations, in an order that does not depend on that of the cohort."""
    order = sorted(range(len(cohort)), key=lambda k: (cohort[k].group, cohort[k].client))
    if learner.wide is not None:
        yield from _together(learner.wide, cohort, order, most)
        return
    most = min(most, -(-_VALUES // learner.layout.size))
    for first in range(0, len(order), most):
        yield _Part(order[first : first + most])


def _together(wide: WideLayer, cohort: Sequence[Participation], order: Sequence[int], most: int) -> Iterator[_Part]:
    """Parts that start from the same model, take as many steps, and have few samples; others one by one."""
    starts: dict[int, list[int]] = {}
    for k in order:
        starts.setdefault(id(cohort[k].start), []).append(k)
    for same in starts.values():
        places: list[int] = []
        batches: list[Sequence[Batch]] = []
        for k in same:
            own = cohort[k].batches()
            if not wide.pays(own):
                yield _Part([k])
                continue
            samples = sum(len(loaded[0][1]) for loaded in batches) + len(own[0][1])
            if batches and (len(own) != len(batches[0]) or samples > _SAMPLES or len(places) == most):
                yield _PartTogether(places, batches)
                places, batches = [], []
            places.append(k)
            batches.append(own)
        if places:
            yield _PartTogether(places, batches)


def clipped_sums(cohort: Sequence[Participation], updates: Iterable[Update], clip: Clip, like: Tensor) -> CohortResult:
    """Clip each participation's update and add up by group; see `train_cohort`."""
    result = CohortResult(zeros(*like.shape, like=like), [], [], [])
    for one, update in zip(cohort, updates, strict=True):
        clipped = _Clipped.of(update, clip)
        result.sums[one.group] += clipped.shared
        result.private.append(clipped.private)
        result.norms.append(clipped.norm)
        result.losses.append(clipped.loss)
    return result
