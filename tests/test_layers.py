"""Imports go downwards only, and training imports no more than it needs."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src/fedpapers"
FILES = sorted(SOURCE.rglob("*.py"))

LAYERS = [  # from the top; those that stand side by side know nothing of each other
    {"cli", "__main__"},
    {"experiment"},
    {"augment"},
    {"federated", "relay"},
    {"privacy", "data"},
    {
        "groups",
        "models",
        "convolution",
        "convolution_loops",
        "randomness",
        "files",
        "errors",
        "memory",
        "parallel",
        "process",
        "version",
        "stamps",
        "__init__",
    },
]
GROUND = LAYERS[-1]
REPORTING = {"reporting", "files", "errors", "groups"}


def part(file):
    """The part of the package to which a file belongs."""
    return file.relative_to(SOURCE).parts[0].removesuffix(".py")


def imported(file):
    """The parts of the package that a file imports, anywhere in it."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}: relative import"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        for name in names:
            package, _, inner = name.partition(".")
            if package == "fedpapers":
                first = inner.partition(".")[0]
                known = (SOURCE / first).is_dir() or (SOURCE / f"{first}.py").is_file()
                yield first if first and known else "__init__"  # `from fedpapers import __version__`


def allowed(part):
    """What a part may import: itself and what lies below it."""
    if part == "reporting":
        return REPORTING
    if part in GROUND:
        return GROUND
    (layer,) = (place for place, parts in enumerate(LAYERS) if part in parts)
    below = set().union(*LAYERS[layer + 1 :])
    return below | {part} | (LAYERS[0] | {"reporting"} if layer == 0 else set())


def test_every_part_has_its_layer():
    assert {part(file) for file in FILES} <= set().union(*LAYERS) | {"reporting"}


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.relative_to(SOURCE).as_posix())
def test_imports_go_downwards(file):
    assert set(imported(file)) - allowed(part(file)) == set()


def test_ground_floor_has_no_circles():
    graph = {part(file): set(imported(file)) - {"__init__"} for file in FILES if part(file) in GROUND}
    while graph:
        free = [name for name, needs in graph.items() if not needs & graph.keys()]
        assert free, f"these import each other: {sorted(graph)}"
        for name in free:
            del graph[name]


def test_training_imports_no_more_than_it_needs():
    heavy = "torchvision opacus dp_accounting pandas matplotlib seaborn scipy networkx mlxtend snakemake"
    code = (
        f"import sys, fedpapers.experiment.train\nprint(*(name for name in '{heavy}'.split() if name in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


def test_command_line_starts_light():
    code = "import sys, fedpapers.cli\nprint(*(name for name in ('torch', 'numpy', 'pydantic') if name in sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
