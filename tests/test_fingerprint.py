"""The fingerprint of code changes with its meaning, and with nothing else."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

import pytest

from fedpapers.experiment import fingerprint as module
from fedpapers.experiment.fingerprint import files_behind, fingerprint

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src/fedpapers"

SMALL = {
    "__init__.py": '"""The package."""\n\n__version__ = "1"\n',
    "top.py": (
        '"""Top."""\n\nfrom fedpapers.inner import near\n\n\n'
        'class Thing:\n    """A thing."""\n\n    size = 1\n\n\n'
        'def use():\n    """Use it."""\n    from fedpapers.inner.lazy import late\n\n    return near.value + late\n'
    ),
    "inner/__init__.py": '"""Inner."""\n',
    "inner/near.py": '"""Near."""\n\nimport fedpapers.inner.far\n\nvalue = fedpapers.inner.far.value + 1\n',
    "inner/far.py": "value = 1\n",
    "inner/lazy.py": "late = 1\n",
    "other.py": "value = 1\n",
}


@pytest.fixture(autouse=True)
def fresh():
    yield forget()
    forget()


def forget():
    for cached in (module._tree, module._imports):
        cached.cache_clear()


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A small package in place of ours: the folder of its sources."""
    source = tmp_path / "src/fedpapers"
    for name, text in SMALL.items():
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_text(text, encoding="utf-8")
    monkeypatch.setattr(module, "_SOURCE", source)
    return source


def edit(package, name, old, new):
    file = package / name
    text = file.read_text(encoding="utf-8")
    assert text.count(old) == 1
    file.write_text(text.replace(old, new), encoding="utf-8")


def after(change):
    """The fingerprints before and after a change."""
    before = fingerprint("fedpapers.top")
    change()
    forget()
    return before, fingerprint("fedpapers.top")


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("top.py", '"""Top."""', '"""Another\n\nmodule docstring."""  # and a comment'),
        ("top.py", '"""Top."""\n', ""),
        ("top.py", '    """A thing."""\n', ""),
        ("top.py", '"""Use it."""', '"""Use it well."""'),
        ("top.py", "    size = 1", "\n    # the size\n    size = (1)\n\n"),
        ("top.py", "near.value + late", "(\n        near.value\n        + late\n    )"),
        ("inner/near.py", '"""Near."""', "'''Nearer.'''"),
        ("inner/__init__.py", '"""Inner."""\n', ""),
        ("other.py", "1", "2"),
    ],
)
def test_same_meaning_same_fingerprint(package, name, old, new):
    before, then = after(lambda: edit(package, name, old, new))
    assert then == before


def test_touch_changes_nothing(package):
    before, then = after(lambda: [os.utime(file, (1, 1)) for file in package.rglob("*.py")])
    assert then == before


def test_place_of_the_checkout_changes_nothing(package, tmp_path, monkeypatch):
    before = fingerprint("fedpapers.top")
    shutil.move(tmp_path / "src", tmp_path / "elsewhere/src")
    monkeypatch.setattr(module, "_SOURCE", tmp_path / "elsewhere/src/fedpapers")
    assert fingerprint("fedpapers.top") == before


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("top.py", "size = 1", "size = 2"),
        ("top.py", "size = 1", "size = 1.0"),
        ("inner/near.py", "+ 1", "- 1"),
        ("inner/far.py", "1", "2"),
        ("inner/lazy.py", "1", "2"),
        ("inner/__init__.py", '"""Inner."""\n', "import math\n"),
        ("__init__.py", '"""The package."""\n', "import math\n"),
    ],
)
def test_other_meaning_other_fingerprint(package, name, old, new):
    before, then = after(lambda: edit(package, name, old, new))
    assert then != before


def test_package_of_a_module_that_imports_nothing_counts(package):
    assert files_behind("fedpapers.inner.far") == {
        package / name for name in ("inner/far.py", "inner/__init__.py", "__init__.py")
    }


def test_script_is_found_by_its_path(package, tmp_path):
    script = tmp_path / "scripts/draw.py"
    script.parent.mkdir()
    script.write_text('"""Draw."""\nfrom fedpapers.inner.near import value\n', encoding="utf-8")
    assert script in files_behind("scripts/draw.py")
    assert package / "inner/far.py" in files_behind("scripts/draw.py")
    before = fingerprint("scripts/draw.py")
    edit(package, "inner/far.py", "1", "2")
    forget()
    changed = fingerprint("scripts/draw.py")
    script.write_text("from fedpapers.inner.near import value\nprint(value)\n", encoding="utf-8")
    forget()
    assert len({before, changed, fingerprint("scripts/draw.py")}) == 3


def test_order_of_sources_does_not_matter(package):
    assert fingerprint("fedpapers.top", "fedpapers.other") == fingerprint("fedpapers.other", "fedpapers.top")
    assert fingerprint("fedpapers.top", "fedpapers.other") != fingerprint("fedpapers.top")


def test_what_is_not_there_is_an_error(package):
    with pytest.raises(FileNotFoundError, match=r"fedpapers\.no"):
        fingerprint("fedpapers.no")
    with pytest.raises(FileNotFoundError):
        fingerprint("scripts/no.py")


def test_relative_import_is_an_error(package):
    edit(package, "other.py", "value", "from . import top\nvalue")
    with pytest.raises(ImportError, match="absolute"):
        fingerprint("fedpapers.other")


# Our own package


def behind(*sources):
    return {file.relative_to(ROOT).as_posix().removeprefix("src/fedpapers/") for file in files_behind(*sources)}


def test_training_depends_on_the_engine_and_not_on_what_reads_its_results():
    files = behind("fedpapers.experiment.train")
    engine = {"federated/rounds.py", "federated/cohort.py", "privacy/mechanism.py", "models.py", "randomness.py"}
    specs = {
        f"experiment/{name}.py" for name in ("spec", "partition_spec", "dataset_spec", "structure_spec", "described")
    }
    assert engine | specs | {"experiment/train.py"} <= files
    readers = ("cli", "reporting/", "experiment/augmentation", "experiment/grid", "experiment/run_files")
    accountants = ("privacy/accounting", "privacy/loss_distributions", "privacy/rdp", "privacy/gdp")
    assert [file for file in files if file.startswith(readers + accountants)] == []


@pytest.mark.parametrize("made", ["train", "train_gan", "train_classifier", "train_judge", "prepare_partition"])
def test_what_is_made_does_not_depend_on_how_the_configuration_is_read_and_planned(made):
    files = behind(f"fedpapers.experiment.{made}")
    assert [file for file in files if re.match(r"experiment/(.*_)?(config|plan)(_errors)?\.py", file)] == []


def test_leakage_depends_on_the_conversion_to_epsilon_and_not_on_other_accountants():
    files = behind("scripts/study_leakage.py")
    assert {"privacy/rdp.py", "privacy/gdp.py", "privacy/divergence.py"} <= files
    assert not {"privacy/accounting.py", "privacy/loss_distributions.py"} & files


def test_partition_does_not_depend_on_training():
    files = behind("fedpapers.experiment.prepare_partition")
    schemes = {f"data/{name}.py" for name in ["partition", "split", "schemes", "group_classes", "writers", "draws"]}
    assert schemes <= files
    training = {
        "experiment/spec.py",
        "experiment/train.py",
        "federated/algorithms.py",
        "federated/rounds.py",
        "models.py",
    }
    assert not training & files


@pytest.mark.parametrize("script", sorted(path.name for path in (ROOT / "scripts").glob("[pt]*_*.py")))
def test_plots_and_tables_do_not_depend_on_the_engine(script):
    files = behind(f"scripts/{script}")
    assert f"scripts/{script}" in files
    assert [file for file in files if file.startswith(("experiment/", "federated/", "privacy/", "data/"))] == []
