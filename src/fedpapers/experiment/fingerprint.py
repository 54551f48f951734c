"""What code a result depends on, as a short text that changes when that code changes its meaning.

Snakemake sees changes of a rule's own script, and of its file's time, but not of imported modules. So every rule
carries the fingerprint of its code among its params: a hash of the syntax trees, without docstrings and descriptions
of fields, of the module and of all that it imports inside this package, wherever in the module the import stands.
Comments, formatting, documentation and file times leave it as it is.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

_PACKAGE = "fedpapers"
_SOURCE = Path(__file__).parents[1]


def fingerprint(*sources: str) -> str:
    """Twelve hexadecimal digits for some code and what it imports.

    Args:
        sources: Modules by their dotted names, or scripts by their paths in the checkout, which end in `.py`.

    Raises:
        FileNotFoundError: There is no such module or script.
    """
    trees = sorted((_label(file), _tree(file)) for file in files_behind(*sources))
    return hashlib.sha256(repr(trees).encode()).hexdigest()[:12]


def files_behind(*sources: str) -> set[Path]:
    """The files of some code and of all that it imports inside this package; see `fingerprint`."""
    files = {file for source in sources for file in _named(source)}
    waiting = list(files)
    while waiting:
        for module in _imports(waiting.pop()):
            if module not in files:
                files.add(module)
                waiting.append(module)
    return files


def _label(file: Path) -> str:
    """A name for a file that does not depend on where the checkout lies."""
    return file.relative_to(_SOURCE).as_posix() if file.is_relative_to(_SOURCE) else file.name


def _named(source: str) -> set[Path]:
    if source.endswith(".py"):
        return {(_SOURCE.parents[1] / source).resolve(strict=True)}
    if _module_file(source) is None:
        raise FileNotFoundError(f"no module {source} in {_SOURCE}")
    return _with_packages(source)


def _with_packages(module: str) -> set[Path]:
    """The files that the import of a module reads: its own and the `__init__` of each package around it."""
    parts = module.split(".")
    found = (_module_file(".".join(parts[:end])) for end in range(1, len(parts) + 1))
    return {path for path in found if path is not None}


def _module_file(module: str) -> Path | None:
    path = _SOURCE.joinpath(*module.split(".")[1:])
    candidates = (path / "__init__.py", path.with_suffix(".py"))
    return next((file for file in candidates if file.is_file()), None)


def _parsed(file: Path) -> ast.Module:
    return ast.parse(file.read_text(encoding="utf-8"), filename=str(file))


@cache
def _tree(file: Path) -> str:
    """The syntax tree as text, without documentation and places."""
    tree = _parsed(file)
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and (
            ast.get_docstring(node, clean=False) is not None
        ):
            node.body = node.body[1:] or ([] if isinstance(node, ast.Module) else [ast.Pass()])
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Field":
            node.keywords = [keyword for keyword in node.keywords if keyword.arg != "description"]
    return ast.dump(tree)


@cache
def _imports(file: Path) -> frozenset[Path]:
    """The files of this package that a file imports, anywhere in it."""
    return frozenset(found for name in _imported_names(_parsed(file)) for found in _with_packages(name))


def _imported_names(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.split(".")[0] == _PACKAGE)
        elif isinstance(node, ast.ImportFrom):
            if node.level:
                raise ImportError(f"relative import of {node.module}: the fingerprint follows absolute ones only")
            if (node.module or "").split(".")[0] == _PACKAGE:
                yield from (f"{node.module}.{alias.name}" for alias in node.names)
