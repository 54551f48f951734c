"""The configuration: one line for each mistake, the table of runs, the plan of files."""

from __future__ import annotations

import copy
import math
import re
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from fedpapers.errors import InputError
from fedpapers.experiment.config import load_config, read_config
from fedpapers.experiment.described import slug
from fedpapers.experiment.grid import run_table
from fedpapers.experiment.plan import Plan, configured_by
from fedpapers.experiment.spec import Run

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "config.yaml").read_text(encoding="utf-8")
BASE = yaml.safe_load(TEXT)
LEFT_OUT = object()
NAN, INF = math.nan, math.inf

COMMON = "papers/dpogl/common"
RUNS = "papers/dpogl/runs"
PLAIN = {RUNS: {"plain": {"algorithm": ["fedavg", "ogl"]}}}
GROUPS = "partitions/by-group"
STRUCTURE = "structures/overlapping"
ONLY_FEDAVG = {"one": {"algorithm": "fedavg"}}
SHARDS = {"scheme": "shards", "shards_per_client": 2}


def changed(changes):
    """`config.yaml` with the values at some paths, such as `training/threads`, replaced or left out."""
    content = copy.deepcopy(BASE)
    for path, value in changes.items():
        *folders, last = path.split("/")
        node = content
        for folder in folders:
            node = node[folder]
        if value is LEFT_OUT:
            del node[last]
        else:
            node[last] = value
    return content


def table(**changes):
    """The runs of `config.yaml` with changed values of `common` and, as `runs`, other grids."""
    runs = {RUNS: changes.pop("runs")} if "runs" in changes else {}
    return run_table(load_config(changed({f"{COMMON}/{key}": value for key, value in changes.items()} | runs)), "dpogl")


def one(**changes):
    """The first run of a table of DP-OGL."""
    return table(runs={"one": {"algorithm": "dp-ogl", "noise_multiplier": 1.0}}, seed=0, **changes)[0]


# Bad input

FIRST = "papers.dpogl.runs.not-private"
MISTAKES = [
    # Unknown keys, at each depth
    ({"scal": 1}, "unknown key 'scal'; did you mean 'scale'?"),
    ({"training/thread": 1}, "training: unknown key 'thread'; did you mean 'threads'?"),
    ({"datasets/mnist/pth": "x"}, "datasets.mnist: unknown key 'pth'; did you mean 'path'?"),
    (
        {f"{GROUPS}/class_overlaps": 1},
        "partitions.by-group: unknown key 'class_overlaps'; did you mean 'class_overlap'?",
    ),
    ({f"{GROUPS}/groups": 1}, "partitions.by-group: unknown key 'groups'; *classes_per_group*"),
    ({f"{STRUCTURE}/copy": 1}, "structures.overlapping: unknown key 'copy'; did you mean 'copies'?"),
    ({"papers/dpgol": {}}, "papers: unknown key 'dpgol'; *dpogl*"),
    ({"papers/dpogl/detla": 1}, "papers.dpogl: unknown key 'detla'; did you mean 'delta'?"),
    ({f"{COMMON}/learning_rat": 1}, "papers.dpogl.common: unknown key 'learning_rat'; did you mean 'learning_rate'?"),
    (
        {f"{RUNS}/private/noise_multiplyer": 1},
        "papers.dpogl.runs.private: unknown key 'noise_multiplyer'; did you mean 'noise_multiplier'?",
    ),
    # Missing keys
    ({"scale": LEFT_OUT}, "scale is missing; expected tiny, embedded or paper"),
    ({"training/threads": LEFT_OUT}, "training.threads is missing; expected a whole number of at least 1"),
    ({"datasets/mnist/kind": LEFT_OUT}, "datasets.mnist.kind is missing; expected *mnist*"),
    ({"datasets/mnist/source": LEFT_OUT}, "datasets.mnist.source is missing; expected embedded, folder or download"),
    (
        {f"{GROUPS}/scheme": LEFT_OUT},
        "partitions.by-group.scheme is missing; expected *dirichlet*",
    ),
    ({f"{STRUCTURE}/kind": LEFT_OUT}, "structures.overlapping.kind is missing; expected *custom*"),
    ({f"{COMMON}/model": LEFT_OUT}, f"{FIRST}: model is missing; local needs it, here or in common"),
    ({f"{COMMON}/rounds": LEFT_OUT}, f"{FIRST}: rounds is missing; local needs it, here or in common"),
    ({f"{COMMON}/seed": None}, f"{FIRST}: seed is missing; local needs it, here or in common"),
    ({f"{COMMON}/sampling_rate": LEFT_OUT}, f"{FIRST}: sampling_rate is missing; fedavg needs it, here or in common"),
    (
        {f"{RUNS}/private-groups/noise_multiplier": LEFT_OUT},
        "papers.dpogl.runs.private-groups: noise_multiplier is missing; dp-ogl needs it, here or in common",
    ),
    ({f"{RUNS}/one": {}}, "papers.dpogl.runs.one: algorithm is missing; expected it here or in common"),
    # Numbers
    (
        {f"{RUNS}/private/noise_multiplier": -1},
        "papers.dpogl.runs.private.noise_multiplier is -1; expected a number of at least 0",
    ),
    (
        {f"{RUNS}/private/noise_multiplier": [0.5, -1]},
        "papers.dpogl.runs.private.noise_multiplier.1 is -1; expected a number of at least 0",
    ),
    (
        {f"{RUNS}/private/noise_multiplier": NAN},
        "papers.dpogl.runs.private.noise_multiplier is .nan; expected a finite number of at least 0",
    ),
    ({f"{COMMON}/clipping_norm": 0}, "papers.dpogl.common.clipping_norm is 0; expected a number above 0"),
    ({f"{COMMON}/clipping_norm": -INF}, "papers.dpogl.common.clipping_norm is -.inf; expected a number above 0"),
    ({f"{COMMON}/clipping_norm": NAN}, "papers.dpogl.common.clipping_norm is .nan; expected a number above 0"),
    (
        {f"{COMMON}/clipping_norm": INF},
        "papers.dpogl.runs.private: clipping_norm is .inf with noise_multiplier *; expected a finite one, *",
    ),
    ({f"{COMMON}/sampling_rate": 0}, "papers.dpogl.common.sampling_rate is 0; expected a number above 0 and at most 1"),
    ({f"{COMMON}/sampling_rate": 1.5}, "*sampling_rate is 1.5; expected a number above 0 and at most 1"),
    ({f"{COMMON}/sampling_rate": NAN}, "*sampling_rate is .nan; expected a finite number above 0 and at most 1"),
    ({f"{COMMON}/sampling_rate": True}, "*sampling_rate is true; expected a number above 0 and at most 1"),
    ({"papers/dpogl/delta": 0}, "papers.dpogl.delta is 0; expected a number above 0 and below 1"),
    ({"papers/dpogl/delta": 1}, "papers.dpogl.delta is 1; expected a number above 0 and below 1"),
    ({"papers/dpogl/delta": "tiny"}, "papers.dpogl.delta is 'tiny'; expected a number above 0 and below 1"),
    ({f"{COMMON}/interval": 0}, "papers.dpogl.common.interval is 0; expected a whole number of at least 1"),
    (
        {f"{COMMON}/rounds": -1},
        "papers.dpogl.common.rounds is -1; expected a whole number of at least 0 and at most 999999",
    ),
    (
        {f"{COMMON}/rounds": [40, 60]},
        "*common.rounds is a list; expected one value: a whole number of at least 0 and at most 999999",
    ),
    (
        {f"{COMMON}/rounds": 41, f"{COMMON}/evaluate_every": 5},
        "papers.dpogl.common.rounds is 41; expected a multiple of evaluate_every (5)",
    ),
    ({f"{COMMON}/learning_rate": 0}, "papers.dpogl.common.learning_rate is 0; expected a number above 0"),
    ({f"{COMMON}/batch_size": 0}, "papers.dpogl.common.batch_size is 0; expected a whole number of at least 1"),
    ({f"{COMMON}/local_steps": 1.5}, "papers.dpogl.common.local_steps is 1.5; expected a whole number of at least 1"),
    (
        {f"{COMMON}/seed": [0, -1]},
        "papers.dpogl.common.seed.1 is -1; expected a whole number of at least 0 and below 2^63",
    ),
    ({f"{COMMON}/seed": "one"}, "papers.dpogl.common.seed is 'one'; expected a whole number of at least 0 *"),
    ({f"{GROUPS}/train_fraction": 1}, "partitions.by-group.train_fraction is 1; expected a number above 0 and below 1"),
    (
        {f"{GROUPS}/class_overlap": 4},
        "partitions.by-group: class_overlap is 4; expected less than classes_per_group (4)",
    ),
    # Words
    ({"scale": "small"}, "scale is 'small'; expected tiny, embedded or paper"),
    ({f"{RUNS}/not-private/algorithm": "fedavgg"}, f"{FIRST}.algorithm is 'fedavgg'; expected *; did you mean fedavg?"),
    ({f"{COMMON}/model": "mnist-cn"}, "papers.dpogl.common.model is 'mnist-cn'; expected *; did you mean mnist-cnn?"),
    ({f"{COMMON}/grouping": "single"}, "papers.dpogl.common.grouping is 'single'; expected overlapping or disjoint"),
    ({f"{COMMON}/dataset": "mnits"}, "papers.dpogl.common.dataset is 'mnits'; expected one of datasets; *'mnist'*"),
    ({f"{COMMON}/partition": "by-grop"}, "*common.partition is 'by-grop'; expected one of partitions; *'by-group'*"),
    (
        {f"{RUNS}/private/structure": "overlaping"},
        "*runs.private.structure is 'overlaping'; *did you mean 'overlapping'?",
    ),
    ({f"{GROUPS}/scheme": "grups"}, "partitions.by-group.scheme is 'grups'; expected *; did you mean groups?"),
    ({f"{STRUCTURE}/kind": "rng"}, "structures.overlapping.kind is 'rng'; expected *; did you mean ring?"),
    ({"papers/dpogl/accountants": ["plt"]}, "papers.dpogl.accountants.0 is 'plt'; *; did you mean pld?"),
    (
        {"papers/dpogl/accountants": ["pld", "pld"]},
        "papers.dpogl.accountants: pld stands here twice; expected each once",
    ),
    ({"papers/dpogl/accountants": "pld"}, "papers.dpogl.accountants is 'pld'; expected a list of pld, prv, rdp or gdp"),
    # What does not go together
    (
        {f"{COMMON}/seed": [0, 0]},
        f"{FIRST}: the run local_* stands twice in the table (a value is repeated); expected *",
    ),
    (
        {f"{RUNS}/again": {"algorithm": "fedavg"}},
        "papers.dpogl.runs.again: the run fedavg_* stands twice in the table (also in runs.not-private); expected *",
    ),
    (
        {RUNS: {"one": {"algorithm": "fedavg", "noise_multiplier": 1}}},
        "papers.dpogl.runs.one: noise_multiplier does not apply to fedavg; expected it in common or in a grid *",
    ),
    ({f"{COMMON}/structure": LEFT_OUT}, f"{FIRST}: structure is missing; the partition scheme groups needs one of *"),
    (
        {f"{COMMON}/structure": LEFT_OUT, GROUPS: SHARDS | {"clients": 9}, RUNS: {"one": {"algorithm": "ogl"}}},
        "papers.dpogl.runs.one: structure is missing; ogl needs one of structures",
    ),
    ({GROUPS: SHARDS | {"clients": 10}}, f"{FIRST}: both the partition and the structure say how many clients; *"),
    (
        {GROUPS: SHARDS, f"{COMMON}/structure": LEFT_OUT, RUNS: ONLY_FEDAVG},
        "papers.dpogl.runs.one: the partition has no clients; expected clients there, or a structure",
    ),
    ({GROUPS: {"scheme": "writer"}}, f"{FIRST}: structure does not go with the partition scheme writer; expected none"),
    ({"datasets/mnist/source": "folder"}, "datasets.mnist: path is missing; source folder needs it"),
    ({"datasets/mnist/path": "x"}, "datasets.mnist: path does not go with source embedded; expected none, or *folder"),
    ({"datasets/mn ist": BASE["datasets"]["mnist"], "datasets/mn-ist": BASE["datasets"]["mnist"]}, "*share a folder*"),
    # Groups
    (
        {STRUCTURE: {"kind": "custom", "groups": {"A": [1, 2], "B": []}}},
        "structures.overlapping: groups.B: the group is empty; expected at least one worker",
    ),
    (
        {STRUCTURE: {"kind": "custom", "groups": {"A": [1, 2, 1]}}},
        "structures.overlapping: groups.A: worker '1' is listed twice",
    ),
    ({STRUCTURE: {"kind": "custom", "groups": {}}}, "structures.overlapping: groups: there is no group; expected *"),
    (
        {STRUCTURE: {"kind": "custom", "groups": {"A": 3}}},
        "structures.overlapping.groups.A is 3; expected a list of text*",
    ),
    ({STRUCTURE: {"kind": "custom", "groups": {"A": [[1]]}}}, "*groups.A.0 is a list; expected one value: text*"),
    (
        {"structures/string/groups": 2**70},
        "structures.string: its groups have 3,541,774,862,152,233,910,272 places for workers; expected at most *",
    ),
    ({"structures/single/workers": 10**7}, "structures.single: its groups have 10,000,000 places for workers; *"),
    (
        {"structures/unused": {"kind": "ring", "groups": 2, "size": 3, "shared": 1}},
        "structures.unused: structure ring: groups is 2; expected at least 3",
    ),
    # Shapes and names
    ({RUNS: {}}, "papers.dpogl.runs is empty; expected keys and values"),
    ({RUNS: None}, "papers.dpogl.runs is empty; expected keys and values"),
    ({f"{RUNS}/private": None}, "papers.dpogl.runs.private is empty; expected keys and values"),
    ({f"{RUNS}/private": [1]}, "papers.dpogl.runs.private is a list; expected keys and values"),
    ({f"{COMMON}/noise_multiplier": []}, "*common.noise_multiplier is an empty list; expected a number of at least 0"),
    ({"training": 3}, "training is 3; expected keys and values"),
    ({"papers": {}}, "papers: none is given; expected at least one of dpogl*"),
    ({RUNS: {"a/b": {}}}, "papers.dpogl.runs: the name 'a/b' cannot be used; expected text of 1 to 60 characters *"),
    ({RUNS: {"": {}}}, "papers.dpogl.runs: the name '' cannot be used; expected text of 1 to 60 characters *"),
    ({RUNS: {True: {}}}, "papers.dpogl.runs: the name true cannot be used; expected text *"),
    ({RUNS: {"a\nb": {}}}, "papers.dpogl.runs: the name 'a\\nb' cannot be used; expected text *"),
]


@pytest.mark.parametrize(("changes", "expected"), MISTAKES, ids=[message for _, message in MISTAKES])
def test_mistake_is_one_line(changes, expected):
    with pytest.raises(InputError) as caught:
        Plan.of(changed(changes), [ROOT / "config.yaml"])
    message = str(caught.value)
    assert message.splitlines() == [message]
    where, _, said = message.partition(": ")
    assert where == str(ROOT / "config.yaml")
    assert re.fullmatch(re.escape(expected).replace(r"\*", ".*"), said), said


JUNK = st.sampled_from(
    [None, True, -1, 0, 1.5, NAN, INF, "", "x", "a/b\n", [], [[]], [None], {}, {"x": 1}, {1: {}}, 2**70]
)


def _paths(node, path=()):
    yield path
    for key, value in node.items() if isinstance(node, dict) else ():
        yield from _paths(value, (*path, key))


@settings(max_examples=200, deadline=None, derandomize=True)
@given(st.sampled_from([path for path in _paths(BASE) if path]), JUNK, st.booleans())
def test_junk_anywhere_is_accepted_or_one_line(path, junk, inside):
    try:
        Plan.of(changed({"/".join(path): {"x": junk} if inside else junk}), [])
    except InputError as error:
        assert str(error).splitlines() == [str(error)]


# Files


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (TEXT + "scale: tiny\n", "config.yaml, line {last}: the key 'scale' stands here twice"),
        ("scale: tiny\ntraining: [1,\n", "config.yaml, line 3: *"),
        ("scale: tiny\n\tthreads: 1\n", "config.yaml, line 2: *"),
        ("- scale\n", "config.yaml is a list; expected keys and values"),
        ("scale\n", "config.yaml is 'scale'; expected keys and values"),
        ("", "config.yaml is empty; expected keys and values"),
        (b"\xff\xfe\x00", "config.yaml: cannot be read: *"),
        (None, "config.yaml: no such file"),
    ],
)
def test_file_that_cannot_be_used(tmp_path, monkeypatch, text, expected):
    monkeypatch.chdir(tmp_path)
    file = Path("config.yaml")
    if text is not None:
        file.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(InputError) as caught:
        read_config([file])
    message = str(caught.value)
    expected = expected.replace("{last}", str(len(TEXT.splitlines()) + 1))
    assert message.splitlines() == [message]
    assert re.fullmatch(re.escape(expected).replace(r"\*", ".*"), message), message


def test_folder_in_place_of_a_file(tmp_path):
    with pytest.raises(InputError, match=re.escape(f"{tmp_path}: cannot be read: ")):
        read_config([tmp_path])


def test_later_file_goes_before(tmp_path):
    over = tmp_path / "over.yaml"
    over.write_text("training: {threads: 3}\n", encoding="utf-8")
    training = read_config([ROOT / "config.yaml", over]).training
    assert training.threads == 3
    assert training.segment_rounds == BASE["training"]["segment_rounds"]


# The table of runs


def test_every_combination_is_a_run_of_its_own():
    runs = table(
        runs={
            "plain": {"algorithm": ["fedavg", "local"]},
            "private": {"algorithm": ["dpfedavg"], "noise_multiplier": [0.5, 1, 2], "learning_rate": [0.1, 0.2]},
            "groups": {"algorithm": ["ogl", "dp-ogl"], "grouping": ["overlapping", "disjoint"]},
        },
        noise_multiplier=1.5,
        seed=[0, 1, 2],
    )
    assert len(runs) == 3 * (2 + 6 + 4)
    assert len({run.id for run in runs}) == len({run.run.hash for run in runs}) == len(runs)
    assert [run.grid for run in runs] == ["plain"] * 6 + ["private"] * 18 + ["groups"] * 12


def test_common_values_that_do_not_apply_are_left_out():
    runs = table(runs={"plain": {"algorithm": "local"}}, sampling_rate=[0.1, 0.2], noise_multiplier=[1, 2], seed=0)
    assert len(runs) == 1
    for key in ("sampling_rate", "noise_multiplier", "clipping_norm", "noise", "interval", "mixing", "grouping"):
        assert getattr(runs[0].run, key) is None


def test_null_in_a_grid_takes_a_common_value_back():
    grids = {"one": {"algorithm": "fedavg", "structure": None, "partition": "shards"}}
    content = changed({RUNS: grids, "partitions/shards": SHARDS | {"clients": 9}, f"{COMMON}/seed": 0})
    (planned,) = run_table(load_config(content), "dpogl")
    assert planned.run.structure is None


@pytest.mark.parametrize("written", ["1", "1.0", "1.00", '"1"', '"1.0"', "10e-1"])
def test_one_is_one(written):
    assert one(learning_rate=yaml.safe_load(written)).id == one(learning_rate=1).id


@pytest.mark.parametrize("written", ["1.1", "1.10", '"1.10"', "+1.1", "11.0e-1"])
def test_trailing_zeros_do_not_matter(written):
    assert one(clipping_norm=yaml.safe_load(written)).id == one(clipping_norm=1.1).id


def _reversed(node):
    return {key: _reversed(node[key]) for key in reversed(node)} if isinstance(node, dict) else node


def test_order_and_formatting_do_not_matter():
    ids = {planned.id for planned in table()}
    for flow in (True, False):
        content = yaml.safe_load(yaml.safe_dump(_reversed(BASE), sort_keys=False, default_flow_style=flow))
        assert {planned.id for planned in run_table(load_config(content), "dpogl")} == ids


@pytest.mark.parametrize(
    "changes",
    [
        {f"{COMMON}/rounds": 600},
        {"papers/dpogl/delta": 1e-3},
        {"papers/dpogl/accountants": ["rdp"]},
        {"training/threads": 7, "training/segment_rounds": 1},
        {"scale": "tiny"},
    ],
)
def test_what_does_not_change_a_run(changes):
    assert [planned.id for planned in run_table(load_config(changed(changes)), "dpogl")] == [run.id for run in table()]


def test_place_of_the_data_does_not_change_a_run():
    def ids(path):
        content = changed({"datasets/mnist": {"kind": "mnist", "source": "folder", "path": path}})
        return [planned.id for planned in run_table(load_config(content), "dpogl")]

    assert ids("/a") == ids("/b")
    assert not set(ids("/a")) & {planned.id for planned in table()}


def test_runs_that_differ_only_in_rounds_are_the_same_run():
    grids = {"short": {"algorithm": "fedavg", "rounds": 5}, "long": {"algorithm": "fedavg", "rounds": 10}}
    with pytest.raises(InputError, match=r"runs\.long: the run fedavg_.* stands twice .*also in runs\.short"):
        table(runs=grids, seed=0, evaluate_every=5)


VALUES = {
    "model": st.sampled_from(["mnist-cnn", "linear"]),
    "local_steps": st.integers(1, 10**6),
    "batch_size": st.integers(1, 10**6),
    "learning_rate": st.floats(1e-9, 1e9),
    "sampling_rate": st.floats(1e-9, 1),
    "clipping_norm": st.floats(1e-9, 1e9),
    "noise_multiplier": st.floats(0, 1e9),
    "noise": st.sampled_from(["central", "client"]),
    "grouping": st.sampled_from(["overlapping", "disjoint"]),
    "interval": st.integers(1, 10**6),
    "mixing": st.sampled_from(["update", "model"]),
    "evaluate_every": st.integers(1, 10**6),
    "seed": st.integers(0, 2**63 - 1),
}
PLANNED = one()


def _with(key, value):
    return Run.model_validate(PLANNED.run.model_dump() | {key: value})


def test_values_cover_all_hyperparameters_of_dp_ogl():
    given = PLANNED.run.model_dump(exclude_none=True).keys()
    assert VALUES.keys() == given - {"algorithm", "dataset_name", "dataset", "partition", "structure"}


@settings(max_examples=150, deadline=None, derandomize=True)
@given(st.sampled_from(list(VALUES)).flatmap(lambda key: st.tuples(st.just(key), VALUES[key], VALUES[key])))
def test_hash_is_equal_if_and_only_if_the_value_is(case):
    key, first, second = case
    assert (_with(key, first).hash == _with(key, second).hash) == (first == second)


@pytest.mark.parametrize(
    "changes",
    [
        {f"{GROUPS}/samples_per_worker": 50},
        {f"{GROUPS}/train_fraction": 0.5},
        {f"{STRUCTURE}/copies": 2},
        {STRUCTURE: {"kind": "single", "workers": 7}},
        {"datasets/mnist/source": "download"},
    ],
)
def test_what_the_names_stand_for_changes_a_run(changes):
    runs = run_table(load_config(changed(changes)), "dpogl")
    assert not {planned.run.hash for planned in runs} & {planned.run.hash for planned in table()}


def test_numbers_are_names_too():
    def ids(groups):
        return [
            run.id
            for run in run_table(load_config(changed({STRUCTURE: {"kind": "custom", "groups": groups}})), "dpogl")
        ]

    assert ids({1: [1, 2], 2: [2, 3]}) == ids({"1": ["1", "2"], "2": ["2", "3"]})


def test_no_clipping_without_noise():
    planned = table(runs={"one": {"algorithm": "dp-ogl", "noise_multiplier": 0}}, clipping_norm=INF, seed=0)[0]
    assert planned.run.clipping_norm == INF
    assert planned.run.hash != PLANNED.run.hash


@pytest.mark.parametrize("planned", [*table()[::7], PLANNED], ids=lambda planned: planned.id)
def test_run_survives_json(planned):
    run = planned.run
    again = Run.model_validate_json(run.model_dump_json(exclude_none=True))
    assert again == run
    assert again.hash == run.hash


def test_infinity_survives_json():
    run = Run.model_validate(PLANNED.run.model_dump() | {"clipping_norm": INF, "noise_multiplier": 0})
    text = run.model_dump_json(exclude_none=True)
    assert '"Infinity"' in text
    again = Run.model_validate_json(text)
    assert (again, again.hash) == (run, run.hash)


@given(st.lists(st.text(min_size=1, max_size=60), min_size=1, max_size=4))
@settings(max_examples=150, deadline=None, derandomize=True)
def test_slug_is_a_safe_part_of_a_path(names):
    assert re.fullmatch(r"[A-Za-z0-9]([\w.-]{0,78}[A-Za-z0-9])?", slug(*names), re.ASCII)


@pytest.mark.parametrize(
    "name", ["two words", 'it\'s "quoted"', "größe αβγ", "..", "$(rm -rf x)", "-", "n" * 60, "a:b*?"]
)
def test_names_of_any_kind_give_safe_files(name):
    content = changed(
        {f"structures/{name}": BASE["structures"]["overlapping"], f"partitions/{name}": BASE["partitions"]["by-group"]}
    )
    content["datasets"] |= {name: BASE["datasets"]["mnist"]}
    content["papers"]["dpogl"]["common"] |= {"structure": name, "partition": name, "dataset": name}
    content["papers"]["multfaug"]["layouts"]["dataset"] = name
    content["papers"]["multfaug"]["learning"]["dataset"] = name
    plan = Plan(load_config(content))
    files = {part for id in plan.runs for part in _files(plan, id)}
    for part in {part for file in files for part in Path(file).parts}:
        assert re.fullmatch(r"[A-Za-z0-9][\w.-]{0,119}", part, re.ASCII)


def _files(plan, run):
    return [*plan.training_input(SimpleNamespace(run=run, round="000060")).values()]


# The plan


@pytest.fixture
def plan():
    return Plan(
        load_config(
            changed(PLAIN | {f"{COMMON}/rounds": 45, f"{COMMON}/evaluate_every": 5, "training/segment_rounds": 20})
        )
    )


@pytest.mark.parametrize(("last", "first"), [(0, 0), (1, 0), (19, 0), (20, 0), (21, 20), (39, 20), (40, 20), (45, 40)])
def test_segment_starts_at_the_boundary_before(plan, last, first):
    run = next(iter(plan.runs))
    assert plan.first_round(SimpleNamespace(run=run, round=f"{last:06d}")) == first


def test_states_are_kept_at_the_ends_of_intervals():
    grid = {"algorithm": "dp-ogl-local", "noise_multiplier": 0.5, "interval": 3}
    small = {f"{COMMON}/rounds": 45, f"{COMMON}/evaluate_every": 3, "training/segment_rounds": 20}
    plan = Plan(load_config(changed(small | {"papers/dpogl/runs": {"one": grid}})))
    run = next(iter(plan.runs))
    firsts = [plan.first_round(SimpleNamespace(run=run, round=f"{last:06d}")) for last in (21, 42, 45)]
    assert firsts == [0, 21, 42]


def test_more_segments_than_snakemake_follows_are_refused():
    long = PLAIN | {f"{COMMON}/rounds": 500, f"{COMMON}/evaluate_every": 1, "training/segment_rounds": 1}
    with pytest.raises(InputError, match="into 500 segments; expected at most 200; raise segment_rounds"):
        Plan(load_config(changed(long)))


def test_training_inputs_chain_back_to_the_start(plan):
    run = next(iter(plan.runs))
    needed = plan.training_input(SimpleNamespace(run=run, round="000045"))
    rounds = [45]
    while "previous" in needed:
        found = re.fullmatch(rf"results/runs/{re.escape(run)}/round-(\d{{6}})\.safetensors", needed["previous"])
        rounds.append(int(found[1]))
        assert needed.keys() == {"data", "partition", "previous", "record"}
        needed = plan.training_input(SimpleNamespace(run=run, round=found[1]))
    assert rounds == [45, 40, 20]
    assert needed.keys() == {"data", "partition"}
    (row,) = (row for row in plan.table(SimpleNamespace(paper="dpogl")) if row["run"] == run)
    assert row["states"] == [f"results/runs/{run}/round-{end:06d}.safetensors" for end in (20, 40, 45)]


@pytest.mark.parametrize("rounds", [0, 20, 40])
def test_table_lists_the_states_of_whole_segments(rounds):
    content = changed(
        PLAIN | {f"{COMMON}/rounds": rounds, f"{COMMON}/evaluate_every": 5, "training/segment_rounds": 20}
    )
    plan = Plan(load_config(content))
    for row in plan.table(SimpleNamespace(paper="dpogl")):
        ends = [int(re.search(r"round-(\d+)", state)[1]) for state in row["states"]]
        assert ends == ([0] if rounds == 0 else list(range(20, rounds + 1, 20)))


def test_more_rounds_only_add_segments(plan):
    longer = Plan(
        load_config(
            changed(PLAIN | {f"{COMMON}/rounds": 65, f"{COMMON}/evaluate_every": 5, "training/segment_rounds": 20})
        )
    )
    assert longer.runs.keys() == plan.runs.keys()
    run = next(iter(plan.runs))
    for last in ("000020", "000040"):
        where = SimpleNamespace(run=run, round=last)
        assert longer.training_input(where) == plan.training_input(where)


def test_settings_of_noise_stand_once_each():
    settings = Plan(load_config(BASE)).noise_settings(SimpleNamespace(paper="dpogl"))
    assert [one.pop("noise_multiplier") for one in settings] == [0.25, 0.5, 1.0]
    assert settings == [{"dataset": "mnist", "sampling_rate": 0.25, "rounds": 20}] * 3


def test_each_data_set_has_one_partition_for_its_counts(plan):
    where = SimpleNamespace(paper="dpogl")
    (one,) = plan.partitions(where)
    first = plan.tables["dpogl"][0]
    assert one == {"dataset": "mnist", "folder": plan.partition_folder(first), "title": None}
    assert plan.partition_tables(where) == [f"{one['folder']}/histogram.csv", f"{one['folder']}/about.json"]
    assert set(plan.partition_tables(where)) >= {plan.first_partition(where)["histogram"]}


def test_or_exit_prints_one_line():
    with pytest.raises(SystemExit) as caught:
        Plan.or_exit(changed({"scale": "big"}), ["config.yaml"])
    assert caught.value.code == "error: config.yaml: scale is 'big'; expected tiny, embedded or paper"


NOTE = "note: {0} merged over config.yaml; --replace-workflow-config takes {1} alone\n"
OWN, MERGED = ["own.yaml"], NOTE.format("own.yaml is", "own.yaml")
TWO = NOTE.format("a.yaml and b.yaml are", "a.yaml and b.yaml")


@pytest.mark.parametrize(
    ("given", "more", "files", "said"),
    [
        ([], {}, ["config.yaml"], ""),
        (OWN, {}, ["config.yaml", "own.yaml"], MERGED),
        (["a.yaml", "b.yaml"], {}, ["config.yaml", "a.yaml", "b.yaml"], TWO),
        (OWN, {"is_main_process": False}, ["config.yaml", "own.yaml"], ""),
        (OWN, {"replace": True}, ["own.yaml"], ""),
        ([], {"replace": True}, ["config.yaml"], ""),
        (["config.yaml", "own.yaml"], {}, ["config.yaml", "own.yaml"], ""),
        (["/\x1b.yaml"], {}, ["config.yaml", "/\x1b.yaml"], NOTE.format("/\\u001b.yaml is", "/\\u001b.yaml")),
    ],
)
def test_the_files_of_a_configuration_are_those_that_are_used(given, more, files, said, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    paths = [Path(file).absolute() for file in given]
    replaced = more.get("replace", False)
    workflow = SimpleNamespace(
        overwrite_configfiles=paths,
        configfiles=[*paths, "config.yaml"],
        config_settings=SimpleNamespace(replace_workflow_config=replaced, overwrite_config=dict.fromkeys(given)),
        is_main_process=more.get("is_main_process", True),
    )
    assert configured_by(workflow) == files
    assert capsys.readouterr() == ("", said)


def test_repeated_key_is_found_behind_a_reader_that_lets_it_pass(tmp_path):
    file = tmp_path / "config.yaml"
    file.write_text(TEXT + "scale: tiny\n", encoding="utf-8")
    with pytest.raises(SystemExit) as caught:
        Plan.or_exit(yaml.safe_load(file.read_text(encoding="utf-8")), [file])
    assert "the key 'scale' stands here twice" in caught.value.code


def test_the_example_of_own_data_is_a_configuration_of_its_own():
    plan = Plan(read_config([ROOT / "docs/examples/own-leaf.yaml"]))
    assert len(plan.tables["dpfedmtl"]) == 2 * (2 + 2 * 2)


def own_data(**given):
    """The example of own data, its data set changed."""
    content = yaml.safe_load((ROOT / "docs/examples/own-leaf.yaml").read_text(encoding="utf-8"))
    content["datasets"]["mine"].update(given)
    return content


def test_a_title_is_no_part_of_data_partitions_or_runs():
    titled, other, without = (Plan(load_config(own_data(title=title))) for title in ("Mine", "Ärztinnen & Ärzte", None))
    where = SimpleNamespace(dataset="mine_folder", paper="dpfedmtl")
    assert [plan.title(where) for plan in (titled, other, without)] == ["Mine", "Ärztinnen & Ärzte", None]
    assert titled.title_of_first(where) == titled.partitions(where)[0]["title"] == "Mine"
    assert without.partitions(where)[0]["title"] is None
    assert titled.dataset(where) == without.dataset(where) and "title" not in titled.dataset(where)
    assert {run: planned.run for run, planned in titled.runs.items()} == {
        run: planned.run for run, planned in without.runs.items()
    }


TITLES = [
    (3, "title is 3; expected text"),
    ("", "the title is ''; expected 1 to 60 characters"),
    (" Mine", "the title is ' Mine'; expected 1 to 60 characters, without space around them"),
    ("x" * 61, "; expected 1 to 60 characters"),
    ("12", "the title is '12'; expected words, a letter first"),
    ("NA", "the title is 'NA'; expected words, a letter first"),
    ("1e5", "the title is '1e5'; expected words, a letter first"),
    ("-nan", "the title is '-nan'; expected words, a letter first"),
    ("Infinity", "the title is 'Infinity'; expected words, a letter first"),
    ("my_data", "the title holds '_', which tables or captions may take for markup; expected words"),
    ("$x$", "the title holds '$'"),
    ("a\nb", "the title holds '\\n'"),
    ("{dataset}", "the title holds '{'"),
    ("FEMNIST", "the title 'FEMNIST' begins as published data are called; expected a name that is yours"),
    ("CelebA-like (generated)", "begins as published data are called"),
]


@pytest.mark.parametrize(("title", "expected"), TITLES, ids=[expected for _, expected in TITLES])
def test_titles_that_cannot_be_used(title, expected):
    with pytest.raises(InputError) as caught:
        load_config(own_data(title=title), "own.yaml")
    assert str(caught.value).startswith("own.yaml: datasets.mine.title") and expected in str(caught.value)


@pytest.mark.parametrize("name", ["NA", "2024", "1e5", "null", "-nan", "Infinity", "True"])
def test_names_of_data_that_tables_would_lose_are_refused(name):
    content = own_data()
    with pytest.raises(InputError, match=f"own.yaml: datasets: the name '{name}' reads as a number or as nothing"):
        load_config(content | {"datasets": content["datasets"] | {name: generated()}}, "own.yaml")


def generated():
    return {"kind": "femnist", "source": "embedded", "writers": 3, "scale": 1, "seed": 0}


def test_titles_are_for_folders_and_differ():
    content = own_data()
    with pytest.raises(InputError, match=r"datasets\.other: title does not go with source embedded; expected none"):
        load_config(content | {"datasets": content["datasets"] | {"other": generated() | {"title": "Ours"}}})
    twice = dict.fromkeys(("mine", "other"), content["datasets"]["mine"])
    with pytest.raises(InputError, match="datasets: 'mine' and 'other' have one title; expected two"):
        load_config(content | {"datasets": twice})
