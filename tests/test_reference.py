"""The JSON schema and the reference page say what the models say."""

from __future__ import annotations

import difflib
import json
import re
from copy import deepcopy
from pathlib import Path

import jsonschema
import pytest
import yaml

from fedpapers.experiment import reference
from fedpapers.experiment.config import merged
from fedpapers.experiment.plan import Plan
from fedpapers.experiment.spec import Hyperparameters, applicable
from fedpapers.federated.algorithms import ALGORITHMS

ROOT = Path(__file__).parents[1]
FILES = reference.files()
CONFIGS = [["config.yaml"], ["configs/tiny.yaml"], ["config.yaml", "configs/paper.yaml"]]


@pytest.mark.parametrize("path", FILES, ids=str)
def test_file_is_up_to_date(path):
    file = ROOT / path
    stored = file.read_text(encoding="utf-8") if file.exists() else ""
    lines = difflib.unified_diff(stored.splitlines(), FILES[path].splitlines(), str(path), "the models", lineterm="")
    difference = "\n".join(lines)
    assert not difference, f"run `fedpapers config reference`:\n{difference}"


@pytest.fixture(scope="module")
def validator():
    schema = reference.schema()
    kind = jsonschema.validators.validator_for(schema)
    kind.check_schema(schema)
    return kind(schema)


@pytest.mark.parametrize("files", CONFIGS, ids=" ".join)
def test_our_configurations_fit_the_schema(validator, files):
    content = {}
    for file in files:
        content = merged(content, yaml.safe_load((ROOT / file).read_text(encoding="utf-8")))
    validator.validate(content)
    assert Plan.of(content, [ROOT / file for file in files]).runs


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("scal", "tiny"),
        ("scale", "small"),
        ("training/threads", 0),
        ("training/thread", 1),
        ("papers/other", {}),
        ("papers/dpogl/delta", 1),
        ("papers/dpogl/common/learning_rat", 1),
        ("papers/dpogl/common/sampling_rate", [0.5, 2]),
        ("papers/dpogl/common/seed", []),
        ("papers/dpogl/common/rounds", [5, 10]),
        ("papers/dpogl/runs", {}),
        ("papers/dpogl/runs/a b", None),
        ("papers/dpogl/runs/a%b", {}),
        ("partitions/x", {"scheme": "shard"}),
        ("partitions/x", {"scheme": "shards"}),
        ("structures/x", {"kind": "ring", "groups": 3, "size": 3}),
        ("datasets/x", {"kind": "mnist", "source": "web"}),
    ],
)
def test_others_do_not(validator, path, value):
    content = deepcopy(yaml.safe_load((ROOT / "config.yaml").read_text(encoding="utf-8")))
    *folders, last = path.split("/")
    node = content
    for folder in folders:
        node = node[folder]
    node[last.replace("%", "/")] = value
    assert not validator.is_valid(content)


def test_one_value_or_several_fit_an_axis(validator):
    content = yaml.safe_load((ROOT / "config.yaml").read_text(encoding="utf-8"))
    for value in (1, [1], [1, 2, 3], None):
        content["papers"]["dpogl"]["common"]["interval"] = value
        validator.validate(content)


def test_every_key_is_described():
    def bare(node, path):
        for key, value in node.get("properties", {}).items():
            if key not in ("kind", "scheme") and not value.get("description"):
                yield f"{path}.{key}"

    schema = reference.schema()
    assert [*bare(schema, "top"), *(key for name, model in schema["$defs"].items() for key in bare(model, name))] == []


def test_every_kind_and_key_is_on_the_page():
    page = reference.page()
    schema = reference.schema()
    for model in [schema, *schema["$defs"].values()]:
        for key, value in model["properties"].items():
            assert f"`{key}`" in page or f"`{key}:`" in page
            for word in [*value.get("enum", ()), *([value["const"]] if "const" in value else [])]:
                assert f"`{word}`" in page


def test_page_has_the_keys_of_each_algorithm():
    heads, _, *rows = [line for line in reference.page().splitlines() if line.startswith("|")][-len(ALGORITHMS) - 2 :]
    keys = re.findall(r"`(\w+)`", heads)
    assert set(keys) < set(Hyperparameters.model_fields)
    for name, row in zip(ALGORITHMS, rows, strict=True):
        first, *cells = [cell.strip() for cell in row.strip("|").split(" |")]
        assert first.startswith(f"`{name}`")
        assert {key: cell == "✓" for key, cell in zip(keys, cells, strict=True)} == applicable(name)


# The commands


def test_reference_writes_both_files(tmp_path, monkeypatch, command):
    monkeypatch.chdir(tmp_path)
    status, out, _ = command("config", "reference")
    assert status == 0
    assert out.split() == [str(path) for path in FILES]
    assert {path: Path(path).read_text(encoding="utf-8") for path in FILES} == FILES


def test_check_counts_runs(monkeypatch, command):
    monkeypatch.chdir(ROOT)
    status, out, err = command("config", "check")
    assert (status, err) == (0, "")
    assert re.match(r"runs: ([\w.]+ \d+, )*[\w.]+ \d+\n", out)
    _, shown, _ = command("config", "check", "--json", ROOT / "config.yaml")
    counts, learning = (json.loads(shown)[key] for key in ("runs", "learning"))
    runs, of_learning = out.splitlines()
    assert runs == f"runs: {', '.join(f'{paper} {count}' for paper, count in counts.items())}"
    assert f"{learning['cells']} cells, {learning['generators']} generators" in of_learning


def test_check_warns_of_folders_that_are_not_there(tmp_path, monkeypatch, command):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data/femnist").mkdir(parents=True)
    status, out, err = command("config", "check", ROOT / "config.yaml", ROOT / "configs/paper.yaml")
    assert status == 0 and out.startswith("runs: ")
    assert [line.split("; expected")[0] for line in err.splitlines()] == [
        "warning: datasets.mnist.path is 'data/mnist': no such folder",
        "warning: datasets.femnist.path is 'data/femnist': no files of kind femnist",
        "warning: datasets.celeba.path is 'data/celeba': no such folder",
    ]


def test_check_names_a_mistake(tmp_path, monkeypatch, command):
    over = tmp_path / "over.yaml"
    over.write_text("scale: big\n", encoding="utf-8")
    status, out, err = command("config", "check", ROOT / "config.yaml", over)
    assert (status, out) == (2, "")
    assert err == f"error: {ROOT / 'config.yaml'}, {over}: scale is 'big'; expected tiny, embedded or paper\n"
