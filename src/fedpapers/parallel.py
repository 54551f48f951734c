"""Several things at once, on the threads that PyTorch may use."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import TypeVar

import torch

Result = TypeVar("Result")


def at_once(work: Sequence[Callable[[], Result]]) -> list[Result]:
    """Do several things, each on one thread; a single one on all threads.

    Clients on a thread each do not wait for each other after every operation, as the threads within operations do.
    After an exception others may still be running.
    """
    threads = torch.get_num_threads()
    if threads == 1 or len(work) == 1:
        return [one() for one in work]
    torch.set_num_threads(1)
    try:
        return list(_pool(threads).map(lambda one: one(), work))
    finally:
        torch.set_num_threads(threads)


@cache
def _pool(threads: int) -> ThreadPoolExecutor:
    """Threads that stay: each new one would set up its buffers for products of matrices again."""
    return ThreadPoolExecutor(threads, initializer=torch.set_num_threads, initargs=(1,))
