"""Nothing that is read can run: no pickle, no shell, safe YAML; names and paths are text wherever they go."""

from __future__ import annotations

import ast
import re
import shutil

import numpy as np
import pandas as pd
import pytest
import yaml
from checkout import PARTS, ROOT, snakemake

from fedpapers import files

SOURCES = [*ROOT.glob("src/**/*.py"), *ROOT.glob("scripts/*.py")]
RULES = [ROOT / "Snakefile", *ROOT.glob("rules/*.smk")]

UNSAFE_MODULES = {"pickle", "cPickle", "dill", "cloudpickle", "joblib", "shelve", "marshal"}
UNSAFE_CALLS = {
    "eval", "exec", "compile", "__import__", "os.system", "os.popen", "torch.load", "torch.save", "pd.read_pickle",
    "yaml.full_load", "yaml.unsafe_load", "yaml.load_all",
}  # fmt: skip
ARCHIVES = {"tarfile", "zipfile", "unpack_archive", "extractall"}  # gzip holds one stream, and no names


def complaints(tree):
    """What in a module could run or unpack what it reads."""
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                yield from (one.name for one in names if one.name.split(".")[0] in UNSAFE_MODULES | ARCHIVES)
            case ast.ImportFrom(module=str(module), names=names):
                imported = {module.split(".")[0], *(one.name for one in names)}
                yield from imported & (UNSAFE_MODULES | ARCHIVES)
            case ast.Call(func=function, keywords=keywords):
                name = ast.unparse(function)
                given = {one.arg: ast.unparse(one.value) for one in keywords}
                if name in UNSAFE_CALLS or name.rpartition(".")[2] in ARCHIVES:
                    yield name
                if given.get("shell", "False") != "False" or given.get("allow_pickle", "False") != "False":
                    yield ast.unparse(node)
                if name == "yaml.load" and given.get("Loader") != "_UniqueKeyLoader":
                    yield ast.unparse(node)
                if name in ("np.load", "numpy.load") and given.get("allow_pickle") != "False":
                    yield ast.unparse(node)


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_nothing_that_is_read_is_run(path):
    assert list(complaints(ast.parse(path.read_text(encoding="utf-8")))) == []


def test_the_search_finds_what_it_looks_for():
    text = "import pickle\nfrom torch import load\ntorch.load(x)\nyaml.load(x)\nnp.load(x)\nrun(x, shell=True)\neval(x)"
    assert len(list(complaints(ast.parse(text)))) == 6
    assert issubclass(files._UniqueKeyLoader, (yaml.SafeLoader, getattr(yaml, "CSafeLoader", yaml.SafeLoader)))


PLAIN = r"wildcards\.\w+|threads|resources\.device|params\.(first|steps|generator)"  # numbers, and slugs of names


@pytest.mark.parametrize("path", RULES, ids=lambda path: path.name)
def test_what_rules_give_to_a_shell_is_quoted(path):
    text = path.read_text(encoding="utf-8")
    assert not re.search(r"^    run:|\bexec\(|\beval\(|pickle", text, re.MULTILINE)
    for block in re.findall(r"^    shell:\n((?:        .*\n)+)", text, re.MULTILINE):
        for placeholder in re.findall(r"\{([^}]+)\}", block):
            assert placeholder.endswith(":q") or re.fullmatch(PLAIN, placeholder), f"{path.name}: {placeholder}"


# Odd names through the whole workflow

ODD = "-a b'\"$(touch hacked)`touch hacked`;touch hacked&ü→{x}%s\\"
PLACE = ODD.replace("{x}", "")  # Snakemake takes braces in a path for wildcards
WORKERS = [f"{ODD} {k}" for k in range(5)] + ["two\nlines", "\x1b[31mred", "<b>bold</b>", "=1+1", "NA"]


@pytest.fixture(scope="module")
def odd(tmp_path_factory):
    """A checkout at an odd path whose data set, data folder, structure, groups and workers have odd names."""
    folder = tmp_path_factory.mktemp("security") / PLACE
    for part in PARTS:
        if (ROOT / part).is_dir():
            shutil.copytree(ROOT / part, folder / part, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy2(ROOT / "Snakefile", folder)
    digits = folder / "data" / PLACE
    digits.mkdir(parents=True)
    images = np.random.default_rng(0).integers(0, 256, (200, 28, 28), dtype=np.uint8)
    for name, array in (("images-idx3", images), ("labels-idx1", np.arange(200) % 10)):
        head = bytes([0, 0, 8, array.ndim]) + np.array(array.shape, ">u4").tobytes()
        (digits / f"train-{name}-ubyte").write_bytes(head + array.astype(np.uint8).tobytes())
    config = yaml.safe_load((ROOT / "configs" / "tiny.yaml").read_text())
    config["datasets"] = {ODD: {"kind": "mnist", "source": "folder", "path": f"data/{PLACE}"}}
    config["partitions"] = {ODD: config["partitions"]["by-group"]}
    config["structures"] = {ODD: {"kind": "custom", "groups": {ODD: WORKERS[:6], "`id`": WORKERS[4:]}}}
    paper = config["papers"]["dpogl"]
    paper["common"] |= {"dataset": ODD, "partition": ODD, "structure": ODD, "rounds": 2}
    paper["runs"] = {ODD.replace("/", ""): {"algorithm": "dp-ogl", "noise_multiplier": 0.5}}
    paper["leakage"] |= {"structures": [ODD], "structure": ODD}
    del paper["leakage"]["audit"]
    config["papers"] = {"dpogl": paper}
    (folder / "config.yaml").write_text(yaml.safe_dump(config, allow_unicode=True))
    return folder


@pytest.mark.workflow
def test_odd_names_are_only_names(odd):
    done = snakemake(odd, "--cores", "2")
    assert done.returncode == 0, done.stdout + done.stderr
    assert not list(odd.parent.rglob("hacked*"))
    (run,) = pd.read_csv(odd / "results/dpogl/runs.csv").to_dict("records")
    assert (run["dataset"], run["structure"], run["grid"]) == (ODD, ODD, ODD.replace("/", ""))
    (histogram,) = (odd / "results/partitions").glob("*/histogram.csv")
    clients = pd.read_csv(histogram, keep_default_na=False, dtype=str)["client"]
    assert set(clients) == set(WORKERS)
    made = [path.relative_to(odd) for path in (odd / "results").rglob("*")]
    assert all(re.fullmatch(r"[\w./-]+", str(path)) for path in made), "names on disk are slugs"
