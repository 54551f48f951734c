"""The engine against algorithms written a second time, and against itself."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.utils import parameters_to_vector, vector_to_parameters

from fedpapers import memory
from fedpapers.experiment.spec import Run
from fedpapers.experiment.store import read_state, state_path, write_state
from fedpapers.experiment.train import Segment, federate, train_segment
from fedpapers.federated import rounds as engine
from fedpapers.federated.cohort import Participation, train_cohort
from fedpapers.federated.evaluate import evaluate
from fedpapers.federated.rounds import Federation, State, next_release, rounds
from fedpapers.groups import Groups, overlapping, single, string
from fedpapers.models import MODELS
from fedpapers.randomness import Purpose, generator

Make = Callable[..., Federation]

FULL_BATCH = {"batch_size": 1000, "local_steps": 3}


def run(federation: Federation, last: int, start: State | None = None) -> State:
    state = start or federation.initial_state()
    for after, _ in rounds(federation, state, last):
        state = after
    return state


def same(one: State, other: State) -> bool:
    return torch.equal(one.shared, other.shared) and torch.equal(one.private, other.private)


def cohort_of(federation: Federation, t: int, m: int, members: list[int]) -> list[int]:
    """The members of a group that join a round: a pure function of (seed, round, group)."""
    joins = generator(federation.seed, Purpose.COHORT, round=t, group=m).random(len(members))
    return [n for n, u in zip(members, joins, strict=True) if u < federation.mechanism.sampling_rate]


# Against FedAvg in plain PyTorch


def fedavg(federation: Federation, last: int) -> Tensor:
    """McMahan et al. 2017 with unweighted sums over the expected cohort."""
    clients, q = federation.clients, federation.mechanism.sampling_rate
    server = MODELS["linear"](10)
    vector_to_parameters(federation.initial_state().shared[0], server.parameters())
    for t in range(1, last + 1):
        total = torch.zeros_like(parameters_to_vector(server.parameters()))
        for n in cohort_of(federation, t, 0, list(range(len(clients)))):
            local = deepcopy(server)
            sgd = torch.optim.SGD(local.parameters(), lr=federation.learner.learning_rate)
            images, labels = clients.load(clients.train[n])
            for _ in range(federation.local_steps):
                sgd.zero_grad()
                nn.functional.cross_entropy(local(images), labels).backward()
                sgd.step()
            total += parameters_to_vector(local.parameters()) - parameters_to_vector(server.parameters())
        vector_to_parameters(
            parameters_to_vector(server.parameters()) + total / (q * len(clients)), server.parameters()
        )
    return parameters_to_vector(server.parameters()).detach()


@pytest.mark.parametrize("sampling_rate", [1.0, 0.4])
def test_one_group_without_a_mechanism_is_fedavg(make_federation: Make, sampling_rate: float) -> None:
    federation = make_federation(single(7), sampling_rate=sampling_rate, **FULL_BATCH)
    state = run(federation, 6)
    assert (state.shared[0] - federation.initial_state().shared[0]).abs().max() > 0.01
    assert (state.shared[0] - fedavg(federation, 6)).abs().max() <= 1e-6


# Against the equations of DP-OGL


def local_update(start: NDArray[np.float64], x: NDArray[Any], y: NDArray[Any], rate: float, steps: int) -> Any:
    """Δφ of logistic regression: full-batch gradient steps, the gradient written out."""
    weight, bias = start[:-10].reshape(10, -1).copy(), start[-10:].copy()
    for _ in range(steps):
        scores = np.exp(x @ weight.T + bias)
        error = (scores / scores.sum(1, keepdims=True) - np.eye(10)[y]) / len(y)
        weight -= rate * error.T @ x
        bias -= rate * error.sum(0)
    return np.concatenate([weight.ravel(), bias]) - start


def dp_ogl(federation: Federation, last: int) -> NDArray[np.float64]:
    """Steps 1 to 4 of the algorithm, as papers/dpogl.md has them, without noise."""
    members = [[federation.groups.workers.index(w) for w in group] for group in federation.groups.members.values()]
    groups_of = {n: [m for m, group in enumerate(members) if n in group] for group in members for n in group}
    clients, mechanism = federation.clients, federation.mechanism
    theta = federation.initial_state().shared.double().numpy()
    for t in range(1, last + 1):
        new = theta.copy()
        for m, group in enumerate(members):
            mixes = (t - 1) % federation.interval == 0
            start = {n: theta[groups_of[n]].mean(0) if mixes else theta[m] for n in group}
            total = np.zeros_like(theta[m])
            for n in cohort_of(federation, t, m, sorted(group)):
                x = clients.images[clients.train[n]].reshape(len(clients.train[n]), -1) / 255
                y = clients.labels[clients.train[n]]
                update = local_update(start[n], x, y, federation.learner.learning_rate, federation.local_steps)
                total += update * min(1, mechanism.clipping_norm / np.linalg.norm(update))
            base = theta[m] if federation.mixing == "update" else np.mean([start[n] for n in group], axis=0)
            new[m] = base + total / (mechanism.sampling_rate * len(group))
        theta = new
    return theta


@pytest.mark.parametrize("mixing", ["update", "model"])
@pytest.mark.parametrize("interval", [1, 2, 3])
@pytest.mark.parametrize("groups", [overlapping(), string(3, 4, 1)])
def test_overlapping_groups_follow_the_equations(
    make_federation: Make, groups: Groups, interval: int, mixing: str
) -> None:
    federation = make_federation(
        groups, sampling_rate=0.6, clipping_norm=0.55, interval=interval, mixing=mixing, **FULL_BATCH
    )
    state, summaries = federation.initial_state(), []
    for after, summary in rounds(federation, state, 5):
        state = after
        summaries.append(summary)
    assert any(0 < (s.clipped or 0) < 1 for s in summaries), "some updates are to be clipped, some not"
    assert np.abs(state.shared.double().numpy() - dp_ogl(federation, 5)).max() <= 1e-6


def dp_ogl_interval(federation: Federation, last: int) -> NDArray[np.float64]:
    """DP-OGL+ and its local form, as papers/dpogl.md has them, without noise: one cohort and one clip an interval."""
    members = [[federation.groups.workers.index(w) for w in group] for group in federation.groups.members.values()]
    groups_of = {n: [m for m, group in enumerate(members) if n in group] for group in members for n in group}
    clients, mechanism, every = federation.clients, federation.mechanism, federation.release_every
    theta = federation.initial_state().shared.double().numpy()
    for first in range(1, last + 1, every):
        released = theta.copy()
        for m, group in enumerate(members):
            cohort = cohort_of(federation, first, m, sorted(group))
            now = {n: theta[groups_of[n]].mean(0) for n in cohort}
            total, model = dict.fromkeys(cohort, 0.0), theta[m].copy()
            for _ in range(every):
                for n in cohort:
                    x = clients.images[clients.train[n]].reshape(len(clients.train[n]), -1) / 255
                    y = clients.labels[clients.train[n]]
                    update = local_update(now[n], x, y, federation.learner.learning_rate, federation.local_steps)
                    total[n] = total[n] + update
                    now[n] = now[n] + update
                    model += update / (mechanism.sampling_rate * len(group))
                if federation.exchanges:
                    now = dict.fromkeys(cohort, model.copy())
            for n in cohort:
                clipped = total[n] * min(1, mechanism.clipping_norm / np.linalg.norm(total[n]))
                released[m] += clipped / (mechanism.sampling_rate * len(group))
        theta = released
    return theta


@pytest.mark.parametrize("exchanges", [True, False])
@pytest.mark.parametrize("groups", [overlapping(), string(3, 4, 1)])
def test_interval_mechanisms_follow_their_equations(make_federation: Make, groups: Groups, exchanges: bool) -> None:
    federation = replace(
        make_federation(groups, sampling_rate=0.6, clipping_norm=1.0, interval=3, exposed=exchanges, **FULL_BATCH),
        release_every=3, exchanges=exchanges,
    )  # fmt: skip
    summaries = [summary for _, summary in rounds(federation, federation.initial_state(), 6)]
    assert len(summaries) == 2 and any((s.clipped or 0) > 0 for s in summaries)
    assert np.abs(run(federation, 6).shared.double().numpy() - dp_ogl_interval(federation, 6)).max() <= 1e-6


def test_a_local_interval_is_dp_ogl_with_as_many_local_steps(make_federation: Make) -> None:
    steps = FULL_BATCH["local_steps"]
    common = {"sampling_rate": 1.0, "clipping_norm": 0.7, "batch_size": FULL_BATCH["batch_size"]}
    local = make_federation(overlapping(), interval=3, local_steps=steps, **common)
    longer = make_federation(overlapping(), interval=1, local_steps=3 * steps, **common)
    once = run(replace(local, release_every=3), 6).shared
    assert (once - run(longer, 2).shared).abs().max() <= 1e-6


@pytest.mark.parametrize("algorithm", ["dp-ogl-plus", "dp-ogl-local"])
def test_interval_mechanisms_with_intervals_of_one_round_are_dp_ogl(
    trained: Callable[[Run], bytes], make_run: Callable[..., Run], algorithm: str
) -> None:
    assert trained(make_run(algorithm=algorithm, interval=1)) == trained(make_run(interval=1))


def test_an_interval_has_one_noise_of_its_own_size(make_federation: Make) -> None:
    members = make_federation(single(5), sampling_rate=0.5, clipping_norm=1e-3, exposed=True)
    quiet = replace(members, release_every=2, exchanges=True)
    loud = replace(quiet, mechanism=replace(quiet.mechanism, noise_multiplier=1e4))
    noise = (run(loud, 2).shared - run(quiet, 2).shared) * quiet.expected_cohort(0)
    assert noise.std().item() == pytest.approx(10.0, rel=0.03)  # 7,850 draws: the sd of the sd is 0.8 %


def test_who_sees_sums_without_noise_has_no_guarantee(
    make_run: Callable[..., Run], digits: Path, partition_of: Any
) -> None:
    def ledger(**given: Any) -> Any:
        run = make_run(evaluate_every=2, **given)
        return federate(run, digits, partition_of(run), torch.device("cpu")).mechanism

    plus, local = ledger(algorithm="dp-ogl-plus"), ledger(algorithm="dp-ogl-local")
    assert plus.clipping_norm == local.clipping_norm == pytest.approx(0.5 * 2**0.5)
    assert type(plus.event()).__name__ == "NonPrivateDpEvent"
    assert local.event().event.noise_multiplier == 0.5


def test_every_setting_of_mixing_is_another_algorithm(make_federation: Make) -> None:
    made = [
        run(make_federation(overlapping(), interval=s, mixing=mixing, **FULL_BATCH), 4).shared
        for s in (1, 2, 3)
        for mixing in ("update", "model")
    ]
    assert all((a - b).abs().max() > 1e-4 for i, a in enumerate(made) for b in made[:i])


def test_groups_that_share_nobody_train_as_if_alone(make_federation: Make) -> None:
    groups = Groups({"A": ("1", "2"), "B": ("3",), "C": ("4", "5", "6")})
    federation = make_federation(groups, sampling_rate=0.8, clipping_norm=0.3, noise_multiplier=0.2)
    clients = federation.clients
    swapped = replace(clients, train=(*clients.train[:3], *clients.test[3:]))  # group C has other samples
    state, other = run(federation, 3), run(replace(federation, clients=swapped), 3)
    assert torch.equal(state.shared[:2], other.shared[:2])
    assert not torch.equal(state.shared[2], other.shared[2])


# Algorithms that are to be the same, through the files that training leaves


@pytest.fixture
def trained(digits: Path, partition_of: Callable[[Run], Path], tmp_path: Path) -> Callable[[Run], bytes]:
    def state_file(run: Run) -> bytes:
        folder = tmp_path / run.hash
        train_segment(Segment(run, folder, 0, 4, digits, partition_of(run), device="cpu"), lambda *_: None)
        return state_path(folder, 4).read_bytes()

    return state_file


def test_dp_ogl_with_one_group_is_dpfedavg(trained: Callable[[Run], bytes], make_run: Callable[..., Run]) -> None:
    one_group = make_run(structure={"kind": "single", "workers": 7})
    other = {"structure": {"kind": "single", "workers": 7}, "grouping": None, "interval": None, "mixing": None}
    dpfedavg = make_run(algorithm="dpfedavg", **other)
    assert trained(one_group) == trained(dpfedavg)
    assert trained(make_run(algorithm="dpfedavg", **other, noise_multiplier=0.4)) != trained(dpfedavg)


def test_with_one_group_neither_interval_nor_mixing_matters(make_federation: Make) -> None:
    federation = make_federation(single(7), sampling_rate=0.5, clipping_norm=0.3, noise_multiplier=0.5)
    assert same(run(federation, 4), run(replace(federation, interval=3, mixing="model"), 4))


def test_dpfedmtl_without_private_layers_is_dpfedavg(
    trained: Callable[[Run], bytes], make_run: Callable[..., Run]
) -> None:
    none = {"grouping": None, "interval": None, "mixing": None}
    shared_only = trained(make_run(algorithm="dpfedmtl", **none))
    assert shared_only == trained(make_run(algorithm="dpfedavg", **none))
    assert shared_only != trained(make_run(algorithm="dpfedmtl", private_layers="last", model="mnist-cnn", **none))


# Private layers


@pytest.fixture
def personal(make_federation: Make) -> Federation:
    return make_federation(
        single(6), model="mnist-cnn", private_layers=("last",), sampling_rate=0.5, clipping_norm=0.02,
        noise_multiplier=0.1, **FULL_BATCH,
    )  # fmt: skip


def test_private_layers_change_for_participants_only(personal: Federation) -> None:
    state, joined_once = personal.initial_state(), set()
    for t in range(1, 5):
        after, _ = next_release(personal, state)
        changed = (after.private != state.private).any(1).nonzero().flatten().tolist()
        assert changed == cohort_of(personal, t, 0, list(range(6)))
        joined_once |= set(changed)
        state = after
    assert len(joined_once) > 2
    assert len({tuple(row[:50].tolist()) for row in state.private}) >= len(joined_once)


def test_private_layers_enter_neither_the_sum_nor_its_clipping(
    monkeypatch: pytest.MonkeyPatch, personal: Federation
) -> None:
    seen: list[Any] = []

    def spy(*given: Any) -> Any:
        result = train_cohort(*given)
        seen.append((given, replace(result, sums=result.sums.clone())))  # the release is made in its place
        return result

    monkeypatch.setattr(engine, "train_cohort", spy)
    state = next_release(personal, personal.initial_state())[0]
    next_release(personal, state)
    (_, cohort, _, like), result = seen[1]
    assert like.shape == (1, 13_248) and len(cohort) > 1  # two convolutions of 416 and 12,832 parameters
    total = torch.zeros(13_248)
    for one, norm, private in zip(cohort, result.norms, result.private, strict=True):
        model = MODELS["mnist-cnn"](10)
        before = torch.cat([state.shared[0], state.private[one.client]])
        vector_to_parameters(before.clone(), model.parameters())  # it makes them views
        sgd = torch.optim.SGD(model.parameters(), lr=0.1)
        images, labels = personal.clients.load(personal.clients.train[one.client])
        for _ in range(personal.local_steps):
            sgd.zero_grad()
            nn.functional.cross_entropy(model(images), labels).backward()
            sgd.step()
        after = parameters_to_vector(model.parameters()).detach()
        update = (after - before)[:13_248]
        assert norm == pytest.approx(update.norm().item(), rel=1e-4) and norm > 0.02
        assert (private - after[13_248:]).abs().max() <= 1e-6
        total += update * (0.02 / update.norm())
    assert (result.sums[0] - total).abs().max() <= 1e-6


def test_noise_does_not_reach_private_layers(personal: Federation) -> None:
    noisier = replace(personal, mechanism=replace(personal.mechanism, noise_multiplier=5.0))
    one, other = next_release(personal, personal.initial_state())[0], next_release(noisier, personal.initial_state())[0]
    assert torch.equal(one.private, other.private) and not torch.equal(one.shared, other.shared)


# What results do not depend on


def noisy(make: Make, **changed: Any) -> Federation:
    given = {"sampling_rate": 0.5, "clipping_norm": 0.2, "noise_multiplier": 0.3, "interval": 2}
    return make(overlapping(), **(given | changed))


def test_results_do_not_depend_on_what_ran_before(make_federation: Make) -> None:
    federation = noisy(make_federation)
    first = run(federation, 4)
    torch.default_generator.manual_seed(99)
    np.random.seed(99)  # noqa: NPY002 (what the engine must not see)
    run(noisy(make_federation, seed=8, model="mnist-cnn", noise="client"), 2)
    again = run(noisy(make_federation), 2)
    evaluate(federation, again)
    assert same(run(federation, 4, again), first)
    assert not same(run(noisy(make_federation, seed=4), 4), first)


@pytest.mark.parametrize("interval", [1, 2])
def test_models_on_disk_and_groups_one_at_a_time_change_no_bit(
    monkeypatch: pytest.MonkeyPatch, make_federation: Make, tmp_path: Path, interval: int
) -> None:
    federation = replace(noisy(make_federation, interval=2, exposed=interval > 1), release_every=interval)
    layout, counts = federation.learner.layout, (len(federation.groups.names), len(federation.clients))
    in_memory = run(federation, 4)
    write_state(state_path(tmp_path, 4), in_memory, layout)
    written = state_path(tmp_path, 4).read_bytes()
    monkeypatch.setattr(memory, "LARGE", 4096)
    monkeypatch.setattr(engine, "LARGE", 4096)
    on_disk = run(federation, 4)
    assert len(engine._blocks(on_disk.shared)) == counts[0] > 1
    write_state(state_path(tmp_path, 4), on_disk, layout)
    assert state_path(tmp_path, 4).read_bytes() == written
    again = read_state(state_path(tmp_path, 4), layout, *counts, torch.device("cpu"))
    assert same(again, in_memory)


def test_a_round_leaves_its_state_alone(personal: Federation) -> None:
    state = personal.initial_state()
    next_release(personal, state)
    assert same(state, personal.initial_state())


@pytest.mark.parametrize("placement", ["central", "client"])
def test_results_do_not_depend_on_the_order_of_the_groups(
    monkeypatch: pytest.MonkeyPatch, make_federation: Make, placement: str
) -> None:
    federation = noisy(make_federation, noise=placement)
    expected = run(federation, 3)

    def last_group_first(learner: Any, cohort: list[Participation], clip: Any, like: Tensor) -> Any:
        order = sorted(range(len(cohort)), key=lambda k: -cohort[k].group)
        result = train_cohort(learner, [cohort[k] for k in order], clip, like)
        return replace(result, private=[result.private[order.index(k)] for k in range(len(cohort))])

    monkeypatch.setattr(engine, "train_cohort", last_group_first)
    assert same(run(federation, 3), expected)


def test_batches_are_drawn_anew_for_each_round_group_and_client(
    monkeypatch: pytest.MonkeyPatch, make_federation: Make
) -> None:
    federation = make_federation(overlapping(), samples=60, batch_size=30, local_steps=5)
    same_samples = tuple([federation.clients.train[0]] * 7)
    federation = replace(federation, clients=replace(federation.clients, train=same_samples))
    batches: list[list[tuple[Tensor, Tensor]]] = []

    def spy(learner: Any, cohort: list[Participation], clip: Any, like: Tensor) -> Any:
        kept = [list(one.batches()) for one in cohort]
        batches.extend(kept)
        return train_cohort(learner, cohort, clip, like)

    monkeypatch.setattr(engine, "train_cohort", spy)
    run(federation, 2)
    orders = {tuple(tuple(labels.tolist()) for _, labels in steps) for steps in batches}
    assert len(orders) == len(batches) == 24
    # An epoch of 60 samples is two batches of 30: each sample once, in the next epoch once more.
    everything = np.sort(federation.clients.labels[same_samples[0]])
    for steps in batches:
        for first in (0, 2):
            assert np.array_equal(np.sort(torch.cat([steps[first][1], steps[first + 1][1]]).numpy()), everything)
        assert not torch.equal(steps[0][1], steps[2][1])


# Empty cohorts


def test_rounds_in_which_nobody_takes_part(make_federation: Make) -> None:
    federation = make_federation(overlapping(), sampling_rate=1e-6, clipping_norm=0.5, noise_multiplier=0.0)
    start = federation.initial_state()
    after, summary = next_release(federation, start)
    assert torch.equal(after.shared, start.shared) and after.round == 1
    assert (summary.cohort, summary.clipped, summary.loss) == (0, None, None)
    central = replace(federation, mechanism=replace(federation.mechanism, noise_multiplier=1.0))
    noise = (next_release(central, start)[0].shared - start.shared) * 1e-6 * torch.tensor([2, 3, 2, 3, 2])[:, None]
    assert noise.std(1).numpy() == pytest.approx(0.5, rel=0.05)
    client = replace(federation, mechanism=replace(central.mechanism, noise="client"))
    assert torch.equal(next_release(client, start)[0].shared, start.shared)


# Evaluation


def plain_evaluation(federation: Federation, state: State, name: str) -> list[tuple[int, int, float]]:
    """Client by client: load its model, predict its test samples."""
    found = []
    for n, worker in enumerate(federation.groups.workers):
        mine = [m for m, group in enumerate(federation.groups.members.values()) if worker in group]
        model = MODELS[name](10)
        vector_to_parameters(torch.cat([state.shared[mine].mean(0), state.private[n]]), model.parameters())
        images, labels = federation.clients.load(federation.clients.test[n])
        with torch.no_grad():
            logits = model(images)
        loss = nn.functional.cross_entropy(logits, labels).item()
        found.append((len(labels), int((logits.argmax(1) == labels).sum()), loss))
    return found


@pytest.mark.parametrize(
    ("groups", "settings"),
    [
        (overlapping(), {}),
        (overlapping(copies=2), {"model": "mnist-cnn", "samples": 30}),
        (single(5), {"model": "mnist-cnn", "private_layers": ("last",)}),
        (single(9), {"samples": 250}),  # more test samples than fit into one batch
        (single(4).separated(), {}),
    ],
)
def test_evaluation_is_that_of_each_client_alone(
    make_federation: Make, groups: Groups, settings: dict[str, Any]
) -> None:
    federation = make_federation(groups, sampling_rate=0.7, learning_rate=0.3, **settings)
    state = run(federation, 2)
    got = evaluate(federation, state)
    samples, correct, loss = zip(*plain_evaluation(federation, state, settings.get("model", "linear")), strict=True)
    assert got.samples.tolist() == list(samples) and got.correct.tolist() == list(correct)
    assert got.loss == pytest.approx(loss, rel=1e-5)
    assert got.accuracy == pytest.approx(np.array(correct) / np.array(samples))
    assert len(set(loss)) == len(loss) and sum(correct) > 0


def test_personal_models_are_averages(make_federation: Make) -> None:
    federation = make_federation(overlapping())
    state = run(federation, 2)
    personal, (_, pattern_of) = federation.personal_models(state), federation.patterns
    of_worker = {"1": "A", "2": "AB", "3": "BE", "4": "BC", "5": "CD", "6": "DE", "7": "D"}
    for n, worker in enumerate(federation.groups.workers):
        mine = [state.shared["ABCDE".index(name)].double() for name in of_worker[worker]]
        expected = torch.stack(mine).mean(0)
        assert (personal[pattern_of[n]] - expected).abs().max() <= 1e-7


def test_local_never_mixes(make_federation: Make) -> None:
    federation = make_federation(overlapping().separated(), **FULL_BATCH)
    state = run(federation, 5)
    clients = federation.clients
    start = federation.initial_state().shared[0].double().numpy()
    for n in range(7):
        x = clients.images[clients.train[n]].reshape(len(clients.train[n]), -1) / 255
        alone = start + local_update(start, x, clients.labels[clients.train[n]], 0.1, 15)
        assert np.abs(state.shared[n].double().numpy() - alone).max() <= 1e-6
