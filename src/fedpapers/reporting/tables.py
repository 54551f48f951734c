"""Tables for people: CSV, Markdown, LaTeX (booktabs) and HTML of the same content."""

from __future__ import annotations

import math
from collections.abc import Mapping
from html import escape
from pathlib import Path

import pandas as pd

from fedpapers.files import write_text

NOT_AVAILABLE = "not available"

_LATEX = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "^": r"\^{}", "~": r"\~{}", "%": r"\%",
    "&": r"\&", "_": r"\_", "#": r"\#", "\n": " ", "–": "--", "−": "$-$", "√": r"$\surd$", "·": r"$\cdot$",
    "≥": r"$\geq$", "≤": r"$\leq$", "≈": r"$\approx$", "±": r"$\pm$", "×": r"$\times$", "→": r"$\to$",
    "∞": r"$\infty$", "⌈": r"$\lceil$", "⌉": r"$\rceil$", "α": r"$\alpha$", "δ": r"$\delta$",
    "ε": r"$\varepsilon$", "η": r"$\eta$", "θ": r"$\theta$", "μ": r"$\mu$", "ρ": r"$\rho$", "σ": r"$\sigma$",
    "τ": r"$\tau$",
}  # fmt: skip

_PAGE = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><style>
body {{ font-family: sans-serif; font-size: 14px; }}
table {{ border-collapse: collapse; border-top: 2px solid; border-bottom: 2px solid; }}
th {{ border-bottom: 1px solid; }}
th, td {{ padding: 4px 12px; text-align: left; }}
footer {{ margin-top: 1em; font-size: 11px; color: #555; }}
</style></head><body>
{table}
<footer>{note}</footer>
</body></html>
"""


def write_table(frame: pd.DataFrame, files: Mapping[str, str], note: str) -> None:
    """Write a table of texts and numbers in its four forms.

    Args:
        frame: Columns with the headings that are shown; the index is not.
        files: Where to: `csv` for programs; `md` for a page; `tex` for a paper, a booktabs tabular without a float
            around it; `html` for the report.
        note: How it was made, one line: below the table, in LaTeX a comment, and not in the CSV, which has no place
            for it.
    """
    in_cells = frame.map(lambda cell: str(cell).replace("|", "\\|").replace("\n", " "))
    markdown = in_cells.to_markdown(index=False, disable_numparse=True)
    html = frame.to_html(index=False, border=0)
    write_text(Path(files["csv"]), frame.to_csv(index=False))
    write_text(Path(files["md"]), f"{markdown}\n\n*{note}*\n")
    write_text(Path(files["tex"]), f"{_latex(frame)}% {note}\n")
    write_text(Path(files["html"]), _PAGE.format(table=html, note=escape(note)))


def mean_and_sd(values: pd.Series[float], scale: float = 100, digits: int = 1) -> str:
    """`mean ± sd` with the sample standard deviation; of a single value itself, and no sd."""
    mean = f"{values.mean() * scale:.{digits}f}"
    return mean if len(values) < 2 else f"{mean} ± {values.std(ddof=1) * scale:.{digits}f}"


def shown(value: object) -> str:
    """A parameter as it is shown; a dash where a run has none."""
    if isinstance(value, float):
        return "–" if math.isnan(value) else f"{value:g}"
    return str(value)


def shown_epsilon(value: float) -> str:
    """ε as it is shown: three figures or more, `inf` for no guarantee at all."""
    return "inf" if math.isinf(value) else "0" if value == 0 else f"{value:.3g}" if value < 1000 else f"{value:.0f}"


def _latex(frame: pd.DataFrame) -> str:
    def row(cells: list[object]) -> str:
        return " & ".join(_escaped(str(cell)) for cell in cells) + r" \\"

    body = "\n".join(row(list(cells)) for cells in frame.itertuples(index=False))
    return "\n".join(
        [
            rf"\begin{{tabular}}{{{'l' * len(frame.columns)}}}",
            r"\toprule",
            row(list(frame.columns)),
            r"\midrule",
            body,
            r"\bottomrule",
            r"\end{tabular}",
            "",
        ]
    )


def _escaped(text: str) -> str:
    return "".join(_LATEX.get(character, character) for character in text)
