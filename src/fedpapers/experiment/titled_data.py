"""Data sets as a user writes them: those of `dataset_spec`, and the title of data that are his own.

A title is for people. It is no part of a data set, a partition or a run, so it never leaves the configuration with
what describes them, and stands apart from `dataset_spec`, on which training depends.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field

from fedpapers.experiment.dataset_spec import CelebaData, FemnistData, MnistData
from fedpapers.experiment.described import Described, is_words

_MARKUP = set("\\`*_|{}<>[]$^~#")
_PUBLISHED = ("mnist", "femnist", "celeba")


def _plain_words(title: str) -> str:
    if not 0 < len(title) <= 60 or title != title.strip():
        raise ValueError(f"the title is {title[:60]!r}; expected 1 to 60 characters, without space around them")
    if bad := [c for c in title if c in _MARKUP or not c.isprintable()]:
        raise ValueError(f"the title holds {bad[0]!r}, which tables or captions may take for markup; expected words")
    if not (title[0].isalpha() and is_words(title)):
        raise ValueError(f"the title is {title!r}; expected words, a letter first")
    if title.casefold().startswith(_PUBLISHED):
        raise ValueError(f"the title {title!r} begins as published data are called; expected a name that is yours")
    return title


Title = Annotated[str, AfterValidator(_plain_words)]


class _Titled(Described):
    title: Title | None = Field(
        None,
        exclude=True,
        description="What tables, figures, captions and verdicts call data of your own, which are not a paper's; for "
        "`folder` only. Left out: they are taken for the paper's.",
    )


class TitledMnist(_Titled, MnistData):
    """MNIST digits, or other images of 28 × 28 in its format."""


class TitledFemnist(_Titled, FemnistData):
    """Handwritten characters of 62 classes, known by their writers."""


class TitledCeleba(_Titled, CelebaData):
    """Faces that smile or not, known by whom they show."""


def _complete(data: TitledMnist | TitledFemnist | TitledCeleba) -> TitledMnist | TitledFemnist | TitledCeleba:
    if data.title is not None and data.source != "folder":
        raise ValueError(f"title does not go with source {data.source}; expected none, or null, or source: folder")
    return data.complete()


TitledDataset = Annotated[
    Annotated[TitledMnist | TitledFemnist | TitledCeleba, Field(discriminator="kind")], AfterValidator(_complete)
]
