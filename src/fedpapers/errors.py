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
