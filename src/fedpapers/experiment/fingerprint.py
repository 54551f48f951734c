"""What code a result depends on, as a short text that changes when that code changes its meaning.

Snakemake sees changes of a rule's own script, and of its file's time, but not of imported modules. So every rule
carries the fingerprint of its code among its params: a hash of the syntax trees, without docstrings, of the module
and of all that it imports inside this package, wherever in the module the import stands. Comments, formatting,
docstrings and file times leave it as it is.
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
    files = {_file(source) for source in sources}
    waiting = list(files)
    while waiting:
        for module in _imports(waiting.pop()):
            if module not in files:
                files.add(module)
                waiting.append(module)
    trees = sorted((_label(file), _tree(file)) for file in files)
    return hashlib.sha256(repr(trees).encode()).hexdigest()[:12]


def _label(file: Path) -> str:
    """A name for a file that does not depend on where the checkout lies."""
    return file.relative_to(_SOURCE).as_posix() if file.is_relative_to(_SOURCE) else file.name


def _file(source: str) -> Path:
    if source.endswith(".py"):
        return (_SOURCE.parents[1] / source).resolve(strict=True)
    found = _module_file(source)
    if found is None:
        raise FileNotFoundError(f"no module {source} in {_SOURCE}")
    return found


def _module_file(module: str) -> Path | None:
    path = _SOURCE.joinpath(*module.split(".")[1:])
    candidates = (path / "__init__.py", path.with_suffix(".py"))
    return next((file for file in candidates if file.is_file()), None)


@cache
def _parsed(file: Path) -> ast.Module:
    return ast.parse(file.read_text(encoding="utf-8"), filename=str(file))


@cache
def _tree(file: Path) -> str:
    """The syntax tree as text, without docstrings and places."""
    tree = ast.parse(ast.unparse(_parsed(file)))
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and (
            ast.get_docstring(node, clean=False) is not None
        ):
            node.body = node.body[1:] or [ast.Pass()]
    return ast.dump(tree)


@cache
def _imports(file: Path) -> tuple[Path, ...]:
    """The files of this package that a file imports anywhere; a package brings its `__init__` along."""
    modules: set[str] = set()
    for name in _imported_names(_parsed(file)):
        parts = name.split(".")
        modules.update(".".join(parts[:end]) for end in range(1, len(parts) + 1))
    found = (_module_file(module) for module in sorted(modules))
    return tuple(path for path in found if path is not None)


def _imported_names(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.split(".")[0] == _PACKAGE)
        elif isinstance(node, ast.ImportFrom):
            if node.level:
                raise ImportError(f"relative import of {node.module}: the fingerprint follows absolute ones only")
            if (node.module or "").split(".")[0] == _PACKAGE:
                yield from (f"{node.module}.{alias.name}" for alias in node.names)
