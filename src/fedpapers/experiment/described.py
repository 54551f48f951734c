"""What all parts of the configuration are made of: kinds of values, and models that refuse what they do not know."""

from __future__ import annotations

import re
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

from fedpapers.errors import nearest


def _no_truth_value(value: Any) -> Any:
    if isinstance(value, bool):
        raise PydanticCustomError("float_type", "expected a number")
    return value


NotBool = BeforeValidator(_no_truth_value)  # pydantic takes `yes` for 1.0
Name = Annotated[str, Field(min_length=1, max_length=60, pattern=r"^[^/\x00-\x1f]+$", coerce_numbers_to_str=True)]
Label = Annotated[str, Field(min_length=1, coerce_numbers_to_str=True)]
Count = Annotated[int, Field(ge=1, strict=True)]
Seed = Annotated[int, Field(ge=0, lt=2**63, strict=True)]
Positive = Annotated[float, Field(gt=0), NotBool]
Fraction = Annotated[float, Field(gt=0, lt=1), NotBool]
Rate = Annotated[float, Field(gt=0, le=1), NotBool]


_NO_WORDS = ("na", "n/a", "nan", "null", "none", "inf", "infinity", "true", "false")


def is_words(text: str) -> bool:
    """Whether readers of a CSV take a text for itself, not for a number, a truth value or nothing."""
    try:
        float(text)
    except ValueError:
        return text.casefold().strip("-+# <>") not in _NO_WORDS
    return False


def distinct(values: list[Any]) -> list[Any]:
    """The values, each of which may stand in the list once."""
    seen = set()
    for value in values:
        if value in seen:
            raise ValueError(f"{value} stands here twice; expected each once")
        seen.add(value)
    return values


Value = TypeVar("Value")
Axis = Annotated[list[Value], Field(min_length=1), AfterValidator(distinct)]
"""Values of a parameter, all different."""


class Described(BaseModel):
    """A part of the configuration: unknown keys are refused, values do not change."""

    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="strings", allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def _keys_are_known(cls, content: Any) -> Any:
        for key in content if isinstance(content, dict) else ():
            if key not in cls.model_fields:
                hint = nearest(str(key), cls.model_fields)
                raise PydanticCustomError("unknown_key", "unknown key '{key}'; {hint}", {"key": key, "hint": hint})
        return content


def slug(*parts: str) -> str:
    """A readable part of a path: letters, digits, dots and dashes, at most 80 of them."""
    return "_".join(re.sub(r"[^A-Za-z0-9.-]+", "-", part).strip("-.") or "x" for part in parts)[:80].strip("-_.")
