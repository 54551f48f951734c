"""The task with Flower: its simulation on Ray with an actor of one thread a core, FedAvg, its fixed clipping."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from typing import Any

import numpy as np
import torch
from flwr.app import ArrayRecord, ConfigRecord, Message
from flwr.clientapp import ClientApp
from flwr.serverapp import Grid, ServerApp
from flwr.serverapp.strategy import DifferentialPrivacyServerSideFixedClipping, FedAvg
from flwr.simulation import run_simulation

from benchmarks.flower_client import FILE, network, task, train
from benchmarks.task import CLIPPING_NORM, NOISE_MULTIPLIER, Turns


class TakeTurns(DifferentialPrivacyServerSideFixedClipping):
    """Flower's own strategy, which waits for the driver before each round."""

    turns: Turns | None = None

    def configure_train(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """Wait for a turn."""
        if self.turns and not self.turns.begin():
            raise EOFError("no other turn")
        return super().configure_train(server_round, arrays, config, grid)

    def aggregate_train(self, server_round: int, replies: Iterable[Message]) -> Any:
        """Say how long it took."""
        result = super().aggregate_train(server_round, replies)
        if self.turns:
            self.turns.end()
        return result


def strategy(noise: float) -> TakeTurns:
    """FedAvg with fixed clipping at the server and noise."""
    average = FedAvg(fraction_evaluate=0.0, min_train_nodes=task().clients, min_available_nodes=task().clients)
    return TakeTurns(average, noise, CLIPPING_NORM, task().clients)


def serve(grid: Grid, turns: Turns, checked: str) -> None:
    """A round without noise for comparison, then the driver's rounds."""
    start = ArrayRecord(network().state_dict())
    result = strategy(0.0).start(grid, start, num_rounds=1)
    vector = np.concatenate([array.reshape(-1) for array in result.arrays.to_numpy_ndarrays()])
    turns.checked(torch.from_numpy(vector), checked)
    noisy = strategy(NOISE_MULTIPLIER)
    noisy.turns = turns
    try:
        noisy.start(grid, start, num_rounds=10**6)
    except EOFError:
        return


def main() -> None:
    """Play the task's rounds when the driver says so."""
    turns = Turns()
    os.environ[FILE], checked = sys.argv[1:]
    client, server = ClientApp(), ServerApp()
    client.train()(train)
    server.main()(lambda grid, context: serve(grid, turns, checked))
    run_simulation(
        server,
        client,
        task().clients,
        backend_config={
            "init_args": {"num_cpus": task().threads},
            "client_resources": {"num_cpus": 1, "num_gpus": 0.0},
        },
    )


if __name__ == "__main__":
    main()
