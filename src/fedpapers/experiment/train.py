"""Training of one segment of a run: from one stored state to the next, the same however a run is cut."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from fedpapers.data.format import verify_dataset
from fedpapers.data.partition import read_partition
from fedpapers.errors import InputError
from fedpapers.experiment import store
from fedpapers.experiment.environment import environment, torch_device
from fedpapers.experiment.fingerprint import fingerprint
from fedpapers.experiment.spec import Run
from fedpapers.federated.algorithms import training_groups
from fedpapers.federated.clients import Clients
from fedpapers.federated.cohort import Learner
from fedpapers.federated.evaluate import Evaluation, evaluate
from fedpapers.federated.rounds import Federation, RoundSummary, State, rounds
from fedpapers.files import sha256, write_json
from fedpapers.groups import Groups
from fedpapers.models import Layout, build
from fedpapers.privacy.ledger import Ledger, Spent, spending_groups
from fedpapers.privacy.mechanism import Mechanism

METRICS = (
    "round", "accuracy", "accuracy_unpersonalised", "accuracy_by_sample", "accuracy_p10", "accuracy_p50",
    "accuracy_p90", "loss", "cohort", "clipped", "diverged", "update_norm", "train_loss",
)  # fmt: skip

CLIENTS = ("client", "samples", "correct", "correct_unpersonalised", "loss")

OnRound = Callable[[int, float | None, list[Spent]], None]


@dataclass(frozen=True)
class Segment:
    """What one training job does.

    Attributes:
        run: The run.
        folder: Its folder.
        first: Round of the state to start from; 0 to start anew.
        last: Round of the state to leave.
        dataset: Folder of the prepared data set.
        partition: File of the partition.
        threads: Threads of PyTorch; they may change the last bits.
        device: `auto`, `cpu` or `cuda`.
    """

    run: Run
    folder: Path
    first: int
    last: int
    dataset: Path
    partition: Path
    threads: int = 1
    device: str = "auto"


def train_segment(segment: Segment, on_round: OnRound) -> None:
    """Train a segment and write its files, the record last.

    Args:
        segment: What to do.
        on_round: Called after each release with its round, the mean accuracy if it was evaluated, and for each
            worker what has been released of its data.

    Raises:
        InputError: The data set, the partition or the earlier state does not fit the run.
    """
    _check_rounds(segment)
    started = time.monotonic()
    torch.set_num_threads(segment.threads)
    device = torch_device(segment.device)
    federation = federate(segment.run, segment.dataset, segment.partition, device)
    state, ledger = _start(segment, federation)
    write_json(segment.folder / "run.json", segment.run.model_dump(mode="json", exclude_none=True))
    spending = spending_groups(federation.groups.members, segment.run.mixing)
    epochs = segment.run.personalise_epochs or 0
    evaluated: list[tuple[Any, ...]] = []
    last_evaluation = None
    if state.round == 0:
        last_evaluation = evaluate(federation, state, epochs)
        evaluated.append(_row(0, last_evaluation, RoundSummary()))
    for state, summary in rounds(federation, state, segment.last):  # noqa: B020 (the state goes on)
        ledger.record(federation.groups.names, federation.mechanism)
        last_evaluation = None
        if state.round % segment.run.evaluate_every == 0:
            last_evaluation = evaluate(federation, state, epochs)
            evaluated.append(_row(state.round, last_evaluation, summary))
        spent = [ledger.of_groups(groups) for groups in spending]
        on_round(state.round, None if last_evaluation is None else evaluated[-1][1], spent)
    _write(segment, federation, state, evaluated, last_evaluation)
    made = {
        "run": segment.run.model_dump(mode="json", exclude_none=True),
        "hash": segment.run.hash,
        "first": segment.first,
        "last": segment.last,
        "inputs": {"data": sha256(segment.dataset / "about.json"), "partition": sha256(segment.partition)},
        "groups": {name: list(workers) for name, workers in federation.groups.members.items()},
        "ledger": ledger.describe(),
        "made": environment(device, fingerprint(__name__)) | {"seconds": round(time.monotonic() - started, 3)},
    }
    store.write_record(store.state_path(segment.folder, segment.last), made)


def federate(run: Run, dataset_folder: Path, partition_file: Path, device: torch.device) -> Federation:
    """The federation that a run describes, on its data.

    Raises:
        InputError: The data set, the partition and the run do not fit each other.
    """
    dataset = verify_dataset(dataset_folder)
    partition = read_partition(partition_file, len(dataset.labels), run.recipe.noted())
    structure = run.structure.build() if run.structure else Groups({"all": partition.clients})
    if structure.workers != partition.clients:
        raise InputError(f"{partition_file}: its clients are not the workers of the run's structure; make it again")
    model = build(run.model, len(dataset.about["classes"]), run.features)
    grouping = run.grouping or run.description.groupings[0]
    return Federation(
        seed=run.seed,
        groups=training_groups(grouping, structure),
        clients=Clients(dataset.images, dataset.labels, partition.train, partition.test, device),
        learner=Learner(model, Layout.of(model, run.private_names), run.learning_rate),
        mechanism=_mechanism(run, len(partition.clients)),
        local_steps=run.local_steps,
        batch_size=run.batch_size,
        interval=run.interval or 1,
        mixing=run.mixing or "update",
        release_every=run.release_every,
        exchanges=run.description.exchanges,
    )


def _mechanism(run: Run, clients: int) -> Mechanism:
    """How each group releases its sum; that of S rounds is clipped to √S·C, with noise in proportion."""
    norm = math.inf if run.clipping_norm is None else run.clipping_norm
    rate = run.sampling_rate or 1.0
    if run.cohort_size is not None:
        rate = run.cohort_size / clients
        if rate > 1:
            raise InputError(f"cohort_size is {run.cohort_size:g}; expected at most the {clients} clients of the data")
    return Mechanism(
        sampling_rate=rate,
        clipping_norm=norm * math.sqrt(run.release_every),
        noise_multiplier=run.noise_multiplier or 0.0,
        noise=run.noise or "central",
        exposed=run.description.exchanges and run.release_every > 1,
    )


def _check_rounds(segment: Segment) -> None:
    """Refuse a segment that would leave a state under the name of another round."""
    first, last, every = segment.first, segment.last, segment.run.release_every
    if not (0 <= first < last or first == last == 0) or first % every or last % every:
        raise InputError(f"rounds {first} to {last}: expected first < last, from 0, in multiples of {every}")


def _start(segment: Segment, federation: Federation) -> tuple[State, Ledger]:
    if segment.first == 0:
        return federation.initial_state(), Ledger()
    path = store.state_path(segment.folder, segment.first)
    record = store.read_record(path, segment.run.hash)
    if "ledger" not in record:
        raise InputError(f"{path.with_suffix('.json')}: without a ledger; delete {path.stem}.* there to train it again")
    layout = federation.learner.layout
    groups, clients = len(federation.groups.names), len(federation.clients)
    return (
        store.read_state(path, layout, groups, clients, federation.clients.device),
        Ledger.of(record["ledger"]),
    )


def _row(round: int, evaluation: Evaluation, summary: RoundSummary) -> tuple[Any, ...]:
    """One row of the metrics; its columns are METRICS."""
    accuracy = evaluation.accuracy
    return (
        round,
        float(accuracy.mean()),
        float((evaluation.unpersonalised / evaluation.samples).mean()),
        float(evaluation.correct.sum() / evaluation.samples.sum()),
        *(float(value) for value in np.percentile(accuracy, [10, 50, 90])),
        float(evaluation.loss.mean()),
        summary.cohort,
        summary.clipped,
        summary.diverged,
        summary.update_norm,
        summary.loss,
    )


def _write(
    segment: Segment, federation: Federation, state: State, rows: list[tuple[Any, ...]], last: Evaluation | None
) -> None:
    path = store.state_path(segment.folder, segment.last)
    store.write_state(path, state, federation.learner.layout)
    store.write_csv(path.with_suffix(".metrics.csv"), METRICS, rows)
    of_clients: list[tuple[Any, ...]] = []
    if last is not None:
        values = (last.samples, last.correct, last.unpersonalised, last.loss)
        of_clients = list(zip(federation.groups.workers, *(value.tolist() for value in values), strict=True))
    store.write_csv(path.with_suffix(".clients.csv"), CLIENTS, of_clients)
