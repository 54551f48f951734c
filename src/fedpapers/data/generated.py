"""What the generated data sets have in common."""

from __future__ import annotations

from fedpapers.errors import InputError


def check_size(data: str, what: str, number: int, scale: float) -> None:
    """Check how much is to be generated.

    Raises:
        InputError: `number` is below 1, or `scale` is not positive and at most 100.
    """
    if number < 1:
        raise InputError(f"{data}: {what} is {number}; expected at least 1")
    if not 0 < scale <= 100:
        raise InputError(f"{data}: scale is {scale}; expected a positive number, at most 100")


def numbered(what: str, count: int) -> list[str]:
    """Names whose alphabetical order is that of their numbers."""
    digits = max(4, len(str(count)))
    return [f"{what}-{number:0{digits}}" for number in range(1, count + 1)]
