"""How fast things are on this machine."""

from __future__ import annotations

from typing import Annotated

import typer

from fedpapers.cli.options import Json, answer

app = typer.Typer(no_args_is_help=True, help="How fast things are on this machine.")


@app.command()
def cohort(
    model: Annotated[str, typer.Option(help="femnist, celeba or mnist.")],
    clients: Annotated[int, typer.Option(help="K: clients of a round.")],
    steps: Annotated[int, typer.Option(help="L: local steps of each.")],
    batch: Annotated[int, typer.Option(help="Samples of a mini-batch.")] = 10,
    threads: Annotated[int, typer.Option(help="Threads of PyTorch.")] = 1,
    rounds: Annotated[int, typer.Option(help="Rounds to time, after some to warm up.")] = 7,
    as_json: Json = False,
) -> None:
    """Milliseconds and memory of a round, beside one plain batch of all samples for each local step."""
    from fedpapers.process import set_up_training

    set_up_training()
    from fedpapers.federated.bench import bench_cohort, format_bench

    report = bench_cohort(model, clients, steps, batch, threads, rounds)
    answer(report, format_bench(report), as_json)
