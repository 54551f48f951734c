"""The one error that a user's own input may cause."""

from __future__ import annotations

import difflib
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager


class InputError(ValueError):
    """Something that the user gave cannot be used.

    The message is one line: where it stands, what it is, what was expected, and a hint.
    The command line prints it as it is and exits with status 2.
    """

    def __str__(self) -> str:
        """The message, safe to be printed whatever names it holds."""
        return printable(super().__str__())


def printable(text: str) -> str:
    """Text in which nothing but line breaks controls a terminal: other characters that do not print are escaped.

    The escapes are JSON's, so that a JSON text stays one.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c == "\n" else _escaped(c) for c in text)


def _escaped(character: str) -> str:
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[k] << 8 | units[k + 1]:04x}" for k in range(0, len(units), 2))


@contextmanager
def one_line() -> Iterator[None]:
    """End the process with one line on standard error where the block raises an `InputError`: for scripts."""
    try:
        yield
    except InputError as error:
        sys.exit(f"error: {error}")


def nearest(word: str, known: Iterable[object]) -> str:
    """A hint that names the known word nearest to a mistyped one, or all of them."""
    names = [str(name) for name in known]
    match = difflib.get_close_matches(word, names, n=1)
    return f"did you mean '{match[0]}'?" if match else f"known: {', '.join(names)}"
