"""Local training of clients that start from one model, without a copy of its wide dense layer for each client.

After some steps of SGD a client's dense weight is W₀ + GᵀA: A the layer's inputs and G the gradients of its outputs
times −η, a row for each sample that was seen. So nobody needs the weight itself: the product with W₀ is one for all
clients, the rest is a product with few rows; the norm of the change follows from Gram matrices, and the clipped sum
over clients is one product again. With one step this is ghost clipping.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate, groupby, pairwise
from typing import TYPE_CHECKING, Any, cast

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn.functional import cross_entropy

from fedpapers.federated import sgd
from fedpapers.federated.clients import Batch
from fedpapers.models import Layout
from fedpapers.parallel import at_once

if TYPE_CHECKING:
    from fedpapers.federated.cohort import Clip, Learner, Participation

_ONEDNN = torch.backends.mkldnn.is_available()  # type: ignore[no-untyped-call]
_WIDE = 2**18  # weights of a dense layer from which on the way around its copies pays


@dataclass(frozen=True)
class WideLayer:
    """The largest shared dense layer of a network, and what stands around it.

    Attributes:
        name: Its name in the network.
        below: The network's layers before it.
        above: Those after it.
        offset: Where its weight begins in the network's vector.
        shape: Of its weight: outputs, inputs.
        rest: The layout of all parameters but its weight.
    """

    name: str
    below: nn.Sequential
    above: nn.Sequential
    offset: int
    shape: torch.Size
    rest: Layout

    @classmethod
    def of(cls, model: nn.Module, layout: Layout) -> WideLayer | None:
        """The wide layer of a network, if it has one."""
        if not isinstance(model, nn.Sequential):
            return None
        ends = dict(zip(layout.shapes, accumulate(size.numel() for size in layout.shapes.values()), strict=True))
        sizes = {
            name: layout.shapes[f"{name}.weight"]
            for name, layer in model.named_children()
            if isinstance(layer, nn.Linear) and ends[f"{name}.weight"] <= layout.shared_size
        }
        name = max(sizes, key=lambda name: sizes[name].numel(), default=None)
        if name is None or sizes[name].numel() < _WIDE:
            return None
        if not any(True for _ in model[: list(model._modules).index(name)].parameters()):
            return None  # its input would need no gradient, and PyTorch would not ask for the layer's
        at, weight, shape = list(model._modules).index(name), f"{name}.weight", sizes[name]
        others = {other: size for other, size in layout.shapes.items() if other != weight}
        rest = Layout(others, layout.shared_size - shape.numel())
        return cls(name, model[:at], model[at + 1 :], ends[weight] - shape.numel(), shape, rest)

    def pays(self, batches: Sequence[Batch]) -> bool:
        """Whether a client's samples are few beside the layer's weights."""
        rows = sum(len(labels) for _, labels in batches)
        return rows * sum(self.shape) * 2 <= self.shape.numel()

    def split(self, vector: Tensor) -> tuple[Tensor, Tensor]:
        """The layer's weight [outputs, inputs], a view, and all else of a vector of the shared or all parameters."""
        end = self.offset + self.shape.numel()
        return vector[self.offset : end].view(self.shape), torch.cat([vector[: self.offset], vector[end:]])


class _Steps:
    """What the wide layer saw: for each client the rows A and G of its samples, one step after the other."""

    def __init__(self, weight: Tensor, sizes: Sequence[Sequence[int]]) -> None:
        self.weight = weight
        ends = [*accumulate((sum(own) for own in sizes), initial=0)]
        self.spans = [slice(first, last) for first, last in pairwise(ends)]
        self.inputs = weight.new_empty(ends[-1], weight.shape[1])
        self.gradients = weight.new_empty(ends[-1], weight.shape[0])
        self.seen = [0] * len(sizes)

    def go_on(self, product: Tensor, rows: Tensor, left: Tensor, right: Tensor, sizes: Sequence[int]) -> None:
        """Add to each client's part of a product with W₀ that with what its earlier steps added to the weight."""
        for k, (part, own) in enumerate(zip(_parts(product, sizes), _parts(rows, sizes), strict=True)):
            past = slice(self.spans[k].start, self.spans[k].start + self.seen[k])
            if self.seen[k]:
                part.addmm_(own @ left[past].T, right[past])

    def see(self, inputs: Tensor, sizes: Sequence[int]) -> None:
        """Keep the inputs of one step."""
        self._keep(inputs, self.inputs, sizes)

    def learn(self, gradients: Tensor, sizes: Sequence[int]) -> None:
        """Keep the gradients of the same step, times −η, with which it is over."""
        self._keep(gradients, self.gradients, sizes)
        self.seen = [seen + size for seen, size in zip(self.seen, sizes, strict=True)]

    def _keep(self, rows: Tensor, kept: Tensor, sizes: Sequence[int]) -> None:
        for k, own in enumerate(_parts(rows, sizes)):
            first = self.spans[k].start + self.seen[k]
            kept[first : first + len(own)] = own

    def norm(self, k: int) -> Tensor:
        """At least the norm ‖GᵀA‖ of the change of a client's weight as the sum will take it, in float64.

        Where a client's steps cancel, what is left of the product of n rows is rounding, up to (n + 1)·u·Σ‖gᵢ‖‖aᵢ‖ with
        half the last place u, and clipping counts on that too.
        """
        inputs, gradients = self.inputs[self.spans[k]].double(), self.gradients[self.spans[k]].double()
        grams = inputs @ inputs.T, gradients @ gradients.T
        rounding = (len(inputs) + 1) * torch.finfo(self.inputs.dtype).eps / 2
        lengths = (grams[0].diagonal() * grams[1].diagonal()).clamp(min=0).sqrt().sum()
        return (grams[0] * grams[1]).sum().clamp(min=0).sqrt() + rounding * lengths

    def scale(self, k: int, factor: float) -> None:
        """Multiply a client's change; by 0 also one that is not finite."""
        self.gradients[self.spans[k]] *= factor
        if factor == 0:
            self.inputs[self.spans[k]] = self.gradients[self.spans[k]] = 0


def _parts(rows: Tensor, sizes: Sequence[int]) -> tuple[Tensor, ...]:
    """The rows of each client."""
    return torch.split(rows, list(sizes))


def _times(rows: Tensor, weight: Tensor) -> Tensor:
    """The product [n, outputs] of rows [n, inputs] with a weight [outputs, inputs].

    On a CPU by oneDNN, as convolutions are: MKL, PyTorch's own choice, takes a seventh longer on those of AMD.
    """
    if rows.device.type != "cpu" or rows.dtype != torch.float32 or not _ONEDNN:
        return rows @ weight.T
    return torch.ops.mkldnn._linear_pointwise(rows, weight, None, "none", [], "")  # type: ignore[no-any-return]


class _Product(torch.autograd.Function):
    """Outputs of the wide layer, less its bias, for the samples of all clients in one step."""

    @staticmethod
    def forward(ctx: Any, inputs: Tensor, steps: _Steps, sizes: Sequence[int]) -> Tensor:
        ctx.steps, ctx.sizes = steps, sizes
        outputs = _times(inputs, steps.weight)
        steps.go_on(outputs, inputs, steps.inputs, steps.gradients, sizes)
        steps.see(inputs, sizes)
        return outputs

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        (gradient,), steps, sizes = gradients, ctx.steps, ctx.sizes
        back = _times(gradient, steps.weight.T)
        steps.go_on(back, gradient, steps.gradients, steps.inputs, sizes)
        steps.learn(gradient, sizes)
        return back, None, None


@dataclass(frozen=True)
class Trained:
    """What local training leaves, of each client where nothing else is said.

    Attributes:
        changes: For each group the sum of the clipped changes of the shared parameters but the wide layer's weight.
        steps: The clipped change of that weight.
        private: The new private parameters.
        norms: The norm of the update before clipping.
        losses: Loss on the first batch, before training.
    """

    changes: dict[int, Tensor]
    steps: _Steps
    private: list[Tensor]
    norms: list[float]
    losses: list[float]


def train_together(
    learner: Learner, wide: WideLayer, members: Sequence[Participation], batches: Sequence[Sequence[Batch]], clip: Clip
) -> Trained:
    """Local training of clients that start from the same model and take equally many steps, and clipping."""
    weight, shared = wide.split(members[0].start)
    rest = [torch.cat([shared, one.private]) for one in members]
    parameters = [sgd.parameters_in(vector, wide.rest) for vector in rest]
    steps = _Steps(weight, [[len(labels) for _, labels in own] for own in batches])
    first: list[float] = []
    for now in zip(*batches, strict=True):
        losses = _losses(wide, parameters, now, steps)
        sgd.step(losses.sum(), learner.learning_rate)
        first = first or losses.tolist()
    private = [vector[wide.rest.shared_size :].clone() for vector in rest]
    changes: dict[int, Tensor] = {}
    norms: list[float] = []
    for k, one in enumerate(members):
        clipped, norm = _clipped(rest[k][: wide.rest.shared_size].sub_(shared), k, steps, clip)
        norms.append(norm)
        changes[one.group] = changes[one.group].add_(clipped) if one.group in changes else clipped
    return Trained(changes, steps, private, norms, first)


def _clipped(change: Tensor, k: int, steps: _Steps, clip: Clip) -> tuple[Tensor, float]:
    """The clipped change of one client, in `steps` too, and the norm of its update before.

    Clipping sees all other coordinates and, in place of the wide layer's, one more that has their norm.
    """
    stand_in = torch.cat([change, steps.norm(k).to(change)[None]])
    clipped, norm = clip(stand_in)
    before, after = stand_in[-1].item(), clipped[-1].item()
    steps.scale(k, after / before if after else 0.0)
    return clipped[:-1], norm


def _losses(wide: WideLayer, parameters: Sequence[dict[str, Tensor]], now: Sequence[Batch], steps: _Steps) -> Tensor:
    """Each client's mean loss [clients] on its batch."""
    sizes = [len(labels) for _, labels in now]
    inputs = (_outputs(wide.below, own, images) for own, (images, _) in zip(parameters, now, strict=True))
    outputs = _Product.apply(torch.cat([*inputs]), steps, sizes)
    losses = []
    for own, output, (_, labels) in zip(parameters, _parts(outputs, sizes), now, strict=True):
        bias = own.get(f"{wide.name}.bias")
        logits = _outputs(wide.above, own, output if bias is None else output + bias)
        losses.append(cross_entropy(logits, labels))
    return torch.stack(losses)


def _outputs(part: nn.Sequential, parameters: dict[str, Tensor], inputs: Tensor) -> Tensor:
    """What some of the network's layers make of their inputs."""
    own = {name: parameters[name] for name, _ in part.named_parameters()}
    return cast(Tensor, functional_call(part, own, (inputs,), tie_weights=False))


def add_up(wide: WideLayer, members: Sequence[Participation], trained: Trained, sums: Tensor) -> None:
    """Add the clients' clipped updates to the sums of their groups; the members of a group stand together.

    Args:
        wide: The wide layer.
        members: The clients.
        trained: What their local training has left.
        sums: The sums [M, P], changed in place.
    """
    steps, end = trained.steps, wide.offset + wide.shape.numel()
    for group, change in trained.changes.items():
        sums[group, : wide.offset] += change[: wide.offset]
        sums[group, end:] += change[wide.offset :]
    for group, found in groupby(range(len(members)), key=lambda k: members[k].group):
        own = list(found)
        rows = slice(steps.spans[own[0]].start, steps.spans[own[-1]].stop)
        total = sums[group, wide.offset : end].view(wide.shape)
        parts = 1 if sums.is_cuda else torch.get_num_threads()
        left, right = (each.chunk(parts) for each in (total, steps.gradients[rows].T))
        at_once([partial(_add, *pair, steps.inputs[rows]) for pair in zip(left, right, strict=True)])


def _add(total: Tensor, left: Tensor, right: Tensor) -> None:
    total.addmm_(left, right)
