"""The task with pfl: its simulator, its federated averaging, its Gaussian mechanism."""

from __future__ import annotations

import os
from typing import Any

import torch
from pfl.aggregate.simulate import SimulatedBackend
from pfl.algorithm.base import NNAlgorithmParams
from pfl.algorithm.federated_averaging import FederatedAveraging
from pfl.callback.base import TrainingProcessCallback
from pfl.data.dataset import Dataset
from pfl.data.federated_dataset import FederatedDataset
from pfl.data.sampling import get_user_sampler
from pfl.hyperparam import NNEvalHyperParams, NNTrainHyperParams
from pfl.metrics import Metrics, Weighted
from pfl.model.pytorch import PyTorchModel
from pfl.privacy.gaussian_mechanism import GaussianMechanism
from pfl.privacy.privacy_mechanism import CentrallyAppliedPrivacyMechanism
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.nn.utils import parameters_to_vector

from benchmarks.task import CLIPPING_NORM, NOISE_MULTIPLIER, RATE, Task, Turns, arguments


class Network(nn.Module):
    """The network with the two methods that pfl asks for."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def loss(self, images: Tensor, labels: Tensor) -> Tensor:
        """What is minimised."""
        return cross_entropy(self.network(images), labels)

    def metrics(self, images: Tensor, labels: Tensor) -> dict[str, Any]:
        """Never called: nothing is evaluated."""
        return {"loss": Weighted(self.loss(images, labels).item(), len(labels))}


class TakeTurns(TrainingProcessCallback):
    """Wait for the driver before each round."""

    def __init__(self, turns: Turns) -> None:
        self.turns = turns

    def on_train_begin(self, *, model: Any) -> Metrics:
        """Wait for the first turn."""
        self.turns.begin()
        return Metrics()

    def after_central_iteration(self, aggregate_metrics: Any, model: Any, *, central_iteration: int) -> Any:
        """Say how long it took; stop when there is no other turn."""
        self.turns.end()
        return not self.turns.begin(), Metrics()


def run(task: Task, noise: float, rounds: int, callbacks: list[TrainingProcessCallback]) -> Tensor:
    """Train and return the parameters."""
    network = Network(task.network())
    users = {k: Dataset((task.images[k], task.labels[k])) for k in range(task.clients)}
    data = FederatedDataset(users.__getitem__, get_user_sampler("minimize_reuse", list(users)))
    mechanism = CentrallyAppliedPrivacyMechanism(GaussianMechanism(CLIPPING_NORM, noise))
    backend = SimulatedBackend(training_data=data, val_data=data, postprocessors=[mechanism])
    model = PyTorchModel(
        network,
        local_optimizer_create=torch.optim.SGD,
        central_optimizer=torch.optim.SGD(network.parameters(), lr=1.0),
    )
    FederatedAveraging().run(
        NNAlgorithmParams(
            central_num_iterations=rounds,
            evaluation_frequency=10**9,
            train_cohort_size=task.clients,
            val_cohort_size=None,
        ),
        backend,
        model,
        NNTrainHyperParams(local_num_epochs=1, local_learning_rate=RATE, local_batch_size=task.batch),
        NNEvalHyperParams(local_batch_size=None),
        callbacks,
    )
    return parameters_to_vector(network.parameters())


def main() -> None:
    """Play the task's rounds when the driver says so."""
    turns = Turns()
    task, checked = arguments()
    torch.set_num_threads(task.threads)
    turns.checked(run(task, 0.0, 1, []), checked)
    run(task, NOISE_MULTIPLIER, 10**6, [TakeTurns(turns)])


if __name__ == "__main__":
    os.environ.setdefault("PFL_PYTORCH_DEVICE", "cpu")
    main()
