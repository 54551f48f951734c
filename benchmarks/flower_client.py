"""What Flower's actors do: local training of one client. A module of its own, because actors import it by name."""

from __future__ import annotations

import os
from functools import lru_cache

import torch
from flwr.app import ArrayRecord, Context, Message, MetricRecord, RecordDict
from torch import nn
from torch.nn.functional import cross_entropy

from benchmarks.task import RATE, Task

FILE = "FEDPAPERS_BENCH_TASK"  # the variable of the environment that names the task to the actors


@lru_cache
def task() -> Task:
    """The task, read once in each process."""
    torch.set_num_threads(1)
    return Task.read(os.environ[FILE])


@lru_cache
def network() -> nn.Module:
    """A network for all clients of a process."""
    return task().network()


def train(message: Message, context: Context) -> Message:
    """Local training of one client."""
    model, mine = network(), int(context.node_config["partition-id"])
    model.load_state_dict(message.content["arrays"].to_torch_state_dict())
    sgd = torch.optim.SGD(model.parameters(), lr=RATE)
    batches = (task().images[mine].split(task().batch), task().labels[mine].split(task().batch))
    for images, labels in zip(*batches, strict=True):
        sgd.zero_grad()
        cross_entropy(model(images), labels).backward()
        sgd.step()
    arrays, metrics = ArrayRecord(model.state_dict()), MetricRecord({"num-examples": len(task().labels[mine])})
    return Message(RecordDict({"arrays": arrays, "metrics": metrics}), reply_to=message)
