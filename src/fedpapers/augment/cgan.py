"""The conditional generative adversarial network that the server trains on the seeds.

The generator has as many weights as the paper's: 1,493,520, running statistics of the normalisations included and the
embedding of the labels not. The rest is ours, because this widely used dense network fits that number exactly.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple, cast

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from fedpapers.augment.seeds import Images, Labels
from fedpapers.models import Layout, initial_vector
from fedpapers.randomness import Purpose, generator
from fedpapers.relay.compression import PIXELS, ROWS
from fedpapers.relay.layouts import LABELS

NOISE = 100
_GENERATOR_WIDTHS = (256, 512, 1024)
_DISCRIMINATOR_WIDTH = 512
_SLOPE = 0.2
_KEEP = 0.6  # dropout 0.4
_DROPPED = 2  # layers with dropout
_BETAS = (0.5, 0.999)
_GREY = 127.5
_OWN_INPUT, _OTHER_INPUT = 2.7, 0.4

_LARGEST_TURN, _LARGEST_SHEAR, _LARGEST_SCALE, _LARGEST_SHIFT = 0.2, 0.15, 0.1, 1.5  # rad, –, –, pixels


class Generator(nn.Module):
    """Noise and a label to an image: 100 → 256 → 512 → 1024 → 784, with normalisation and leaky ReLU."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(LABELS, NOISE)
        layers: list[nn.Module] = []
        width = NOISE
        for wider in _GENERATOR_WIDTHS:
            layers += [nn.Linear(width, wider), nn.LeakyReLU(_SLOPE), nn.BatchNorm1d(wider, momentum=0.2)]
            width = wider
        self.layers = nn.Sequential(*layers, nn.Linear(width, PIXELS), nn.Tanh())

    def forward(self, noise: Tensor, labels: Tensor) -> Tensor:
        """Images [n, 784] in ±1, from noise [n, 100] and labels [n]."""
        return cast(Tensor, self.layers(noise * self.embedding(labels)))


class Discriminator(nn.Module):
    """An image and a label to the logit of its being real: 784 → 512 → 512 → 512 → 1, with leaky ReLU."""

    def __init__(self) -> None:
        super().__init__()
        width = _DISCRIMINATOR_WIDTH
        self.embedding = nn.Embedding(LABELS, PIXELS)
        self.first = nn.Linear(PIXELS, width)
        self.second = nn.Linear(width, width)
        self.third = nn.Linear(width, width)
        self.last = nn.Linear(width, 1)

    def forward(self, images: Tensor, labels: Tensor, kept: Tensor) -> Tensor:
        """Logits [n], from images [n, 784], labels [n], and the dropout's factors [2, n, 512]."""
        hidden = functional.leaky_relu(self.first(images * self.embedding(labels)), _SLOPE)
        for layer, factors in zip((self.second, self.third), kept, strict=True):
            hidden = functional.leaky_relu(layer(hidden), _SLOPE) * factors
        return cast(Tensor, self.last(hidden).squeeze(1))


class Losses(NamedTuple):
    """Binary cross-entropies of one step."""

    discriminator: float
    generator: float


@dataclass(eq=False)
class Gan:
    """A generator and its discriminator in training; `step` says after how many steps.

    Attributes:
        networks: `generator` and `discriminator`.
        optimisers: Of the same names.
        step: Steps that have been made.
    """

    networks: dict[str, nn.Module]
    optimisers: dict[str, torch.optim.Adam]
    step: int = 0

    @classmethod
    def new(cls, seed: int, learning_rate: float, device: torch.device) -> Gan:
        """A network before its first step."""
        networks = {"generator": Generator, "discriminator": Discriminator}
        built = {name: _initial(made(), seed, place).to(device) for place, (name, made) in enumerate(networks.items())}
        adam = {
            name: torch.optim.Adam(network.parameters(), learning_rate, _BETAS, fused=True)
            for name, network in built.items()
        }
        return cls(built, adam)

    def tensors(self) -> dict[str, Tensor]:
        """All that training goes on from: parameters, running statistics and the optimisers' moments."""
        found: dict[str, Tensor] = {}
        for name, network in self.networks.items():
            found |= {f"{name}.{key}": value for key, value in network.state_dict().items()}
            for key, parameter in network.named_parameters():
                state = self.optimisers[name].state.get(parameter) or _no_moments(parameter)
                found |= {f"{name}.{moment}.{key}": state[moment] for moment in ("exp_avg", "exp_avg_sq")}
        return {key: value.detach().cpu().contiguous() for key, value in found.items()}

    def load(self, tensors: dict[str, Tensor], step: int) -> None:
        """Go on from what `tensors` gave after `step` steps; KeyError or RuntimeError where it does not fit."""
        for name, network in self.networks.items():
            network.load_state_dict({key: tensors[f"{name}.{key}"] for key in network.state_dict()})
            for key, parameter in network.named_parameters():
                moments = {moment: tensors[f"{name}.{moment}.{key}"] for moment in ("exp_avg", "exp_avg_sq")}
                self.optimisers[name].state[parameter] = {
                    "step": torch.tensor(float(step), device=parameter.device),
                    **{moment: value.clone().to(parameter.device) for moment, value in moments.items()},
                }
        self.step = step


def train(gan: Gan, images: Tensor, labels: Tensor, batch: int, seed: int, last: int) -> Iterator[tuple[int, Losses]]:
    """Train up to step `last`; each step's draws depend on (seed, step) only.

    A step draws real images with replacement, and noise; the discriminator learns to tell these images from the
    generator's for the same labels, then the generator to have its images pass. Both minimise binary cross-entropy.

    Args:
        gan: Goes on from where it is, in place.
        images: In ±1, shape [n, 784].
        labels: Shape [n].
        batch: Images of a step.
        seed: Of batches, noise and dropout.
        last: Step to end with.

    Yields:
        Each step's number and losses.
    """
    device = images.device
    makes, tells = gan.networks["generator"].train(), gan.networks["discriminator"].train()
    genuine, both = torch.ones(batch, device=device), torch.arange(2 * batch, device=device) < batch
    for step in range(gan.step + 1, last + 1):
        draw = generator(seed, Purpose.GAN, round=step)
        chosen = torch.from_numpy(draw.integers(len(labels), size=batch)).to(device)
        noise = torch.from_numpy(draw.standard_normal((batch, NOISE), dtype=np.float32)).to(device)
        real, asked = images[chosen], labels[chosen]
        made = makes(noise, asked)
        logits = tells(torch.cat([real, made.detach()]), asked.repeat(2), _kept(2 * batch, draw).to(device))
        telling = functional.binary_cross_entropy_with_logits(logits, both.float())
        _descend(telling, gan.optimisers["discriminator"])
        tells.requires_grad_(False)
        passing = functional.binary_cross_entropy_with_logits(
            tells(made, asked, _kept(batch, draw).to(device)), genuine
        )
        _descend(passing, gan.optimisers["generator"])
        tells.requires_grad_(True)
        gan.step = step
        yield step, Losses(float(telling.detach()), float(passing.detach()))


def generate(makes: Generator, labels: Labels, seed: int) -> Images:
    """Images of the given labels, uint8, shape [n, 28, 28]."""
    noise = generator(seed, Purpose.GENERATED).standard_normal((len(labels), NOISE), dtype=np.float32)
    device = next(makes.parameters()).device
    with torch.inference_mode():
        made = makes.eval()(torch.from_numpy(noise).to(device), torch.from_numpy(labels).to(device))
    pixels = ((made + 1) * _GREY).round().to(torch.uint8).cpu().numpy()
    return np.asarray(pixels.reshape(-1, ROWS, ROWS))


def oversample(images: Images, labels: Labels, copies: int, seed: int) -> tuple[Tensor, Tensor]:
    """The images, and `copies` of each under small random affine maps (the parent paper oversamples; how: ours).

    A copy is turned, sheared, scaled and shifted by uniform amounts of up to 0.2 rad, 0.15, 10 % and 1.5 pixels.

    Returns:
        Images in ±1, shape [n (1 + copies), 784], and their labels.
    """
    originals = torch.from_numpy(images).float().unsqueeze(1)
    everything = torch.cat([originals, _distorted(originals.repeat(copies, 1, 1, 1), seed)] if copies else [originals])
    return everything.reshape(-1, PIXELS) / _GREY - 1, torch.from_numpy(labels).repeat(1 + copies)


def _distorted(images: Tensor, seed: int) -> Tensor:
    """Images [n, 1, 28, 28], each under an affine map of its own."""
    numbers = generator(seed, Purpose.OVERSAMPLING).uniform(-1, 1, size=(len(images), 5)).astype(np.float32)
    grid = functional.affine_grid(_affine(torch.from_numpy(numbers)), list(images.shape), align_corners=False)
    return functional.grid_sample(images, grid, align_corners=False)


def _affine(numbers: Tensor) -> Tensor:
    """Affine maps [n, 2, 3] of the square ±1, from uniform numbers in ±1, shape [n, 5]."""
    turn, shear, scale = (numbers[:, :3] * torch.tensor([_LARGEST_TURN, _LARGEST_SHEAR, _LARGEST_SCALE])).T
    shift = numbers[:, 3:] * _LARGEST_SHIFT * 2 / ROWS
    cosine, sine = torch.cos(turn), torch.sin(turn)
    rows = [cosine, cosine * shear - sine, sine, sine * shear + cosine]
    linear = torch.stack(rows, dim=1).reshape(-1, 2, 2) / (1 + scale)[:, None, None]
    return torch.cat([linear, shift.unsqueeze(2)], dim=2)


def _initial(network: nn.Module, seed: int, place: int) -> nn.Module:
    """First values: as in PyTorch's own layers, but for the embeddings.

    That of the generator opens ten of the hundred noise inputs wide to each label and the others a little. Were it
    random, labels would differ by the variances of their inputs only, and take several times as long to be told apart;
    were the others closed, the digits of a label would be much alike.
    """
    draw = generator(seed, Purpose.GAN, group=1 + place)
    layout = Layout.of(network)
    values = layout.views(initial_vector(layout, draw))
    shape = tuple(values["embedding.weight"].shape)
    own = np.kron(np.eye(LABELS), np.ones((1, NOISE // LABELS)))
    opened = np.where(own > 0, _OWN_INPUT, _OTHER_INPUT)
    embedding = opened if isinstance(network, Generator) else draw.standard_normal(shape)
    values["embedding.weight"].copy_(torch.from_numpy(embedding))
    with torch.no_grad():
        for name, parameter in network.named_parameters():
            parameter.copy_(values[name])
    return network


def _kept(images: int, draw: np.random.Generator) -> Tensor:
    """The factors of dropout, 0 or 1 / 0.6, shape [2, images, 512]."""
    size = (_DROPPED, images, _DISCRIMINATOR_WIDTH)
    return torch.from_numpy(draw.random(size, dtype=np.float32) < _KEEP).float() / _KEEP


def _descend(loss: Tensor, optimiser: torch.optim.Adam) -> None:
    optimiser.zero_grad()
    loss.backward()  # type: ignore[no-untyped-call]
    optimiser.step()


def _no_moments(parameter: Tensor) -> dict[str, Tensor]:
    return {"exp_avg": torch.zeros_like(parameter), "exp_avg_sq": torch.zeros_like(parameter)}


def divergent(losses: Losses) -> bool:
    """Whether training has left the finite numbers."""
    return not all(math.isfinite(loss) for loss in losses)
