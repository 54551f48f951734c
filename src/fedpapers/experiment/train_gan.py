"""Training of one segment of a generator: from one stored state to the next, the same however training is cut."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

import torch

from fedpapers.augment.cgan import Gan, Losses, divergent, oversample, train
from fedpapers.augment.checkpoint import read_state, write_state
from fedpapers.augment.seeds import read_seeds
from fedpapers.errors import InputError
from fedpapers.experiment.augmentation_spec import GanSpec
from fedpapers.experiment.environment import environment, torch_device
from fedpapers.experiment.fingerprint import fingerprint

_LINES = 10


@dataclass(frozen=True)
class GanSegment:
    """What one training job does.

    Attributes:
        spec: What is trained.
        seeds: File of the seeds.
        state: Where to leave the state; an earlier one is expected beside it.
        first: Step of the state to start from; 0 to start anew.
        last: Step of the state to leave.
        threads: Threads of PyTorch; they may change the last bits.
        device: `auto`, `cpu` or `cuda`.
    """

    spec: GanSpec
    seeds: Path
    state: Path
    first: int
    last: int
    threads: int = 1
    device: str = "auto"


def train_gan(segment: GanSegment) -> None:
    """Train a segment, say how it goes, and write its state and record.

    Raises:
        InputError: The seeds or the earlier state do not fit, or training diverged.
    """
    spec, started = segment.spec, time.monotonic()
    torch.set_num_threads(segment.threads)
    device = torch_device(segment.device)
    images, labels = read_seeds(segment.seeds)
    if len(labels) != len(spec.seeds):
        raise InputError(
            f"{segment.seeds}: {len(labels)} seeds; expected {len(spec.seeds)}; delete it to make it again"
        )
    seed = spec.devices.seed
    real, real_labels = (part.to(device) for part in oversample(images, labels, spec.oversample, seed))
    gan = Gan.new(seed, spec.learning_rate, device)
    if segment.first:
        earlier = segment.state.with_name(f"step-{segment.first:06d}.safetensors")
        read_state(earlier, gan, segment.first, spec.hash)
    losses = Losses(0.0, 0.0)
    every = max(1, (segment.last - segment.first) // _LINES)
    for step, losses in train(gan, real, real_labels, spec.batch_size, seed, segment.last):
        if divergent(losses):
            raise InputError(f"step {step}: the losses are not finite; expected a smaller learning_rate than this one")
        if step % every == 0 or step == segment.last:
            each = (time.monotonic() - started) / (step - segment.first)
            left = each * (segment.last - step)
            print(f"step {step}/{segment.last}  {_shown(losses)}  {each:.4f} s/step  {left:.0f} s left", flush=True)
    seconds = {"seconds": round(time.monotonic() - started, 3)}
    made = {"spec": spec.model_dump(mode="json"), "hash": spec.hash, "losses": losses._asdict()}
    write_state(segment.state, gan, made | {"made": environment(device, fingerprint(__name__)) | seconds})


def _shown(losses: Losses) -> str:
    return f"loss of discriminator {losses.discriminator:.3f}, generator {losses.generator:.3f}"
