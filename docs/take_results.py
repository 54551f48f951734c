"""Take tables and figures from the results into the pages on papers: `python docs/take_results.py [RESULTS]`.

A page says what it takes, `<!-- take dpogl/tables/verdicts.md -->` or, for a figure, with the words that stand for
it, `<!-- take dpogl/figures/partition.png Who holds which labels -->`; all up to `<!-- taken -->` is replaced. What the
results do not have is left as it is. Tables bring the line with them that says how they were made.
"""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path

DOCS = Path(__file__).parent
PLACE = re.compile(r"(<!-- take (\S+)(?: ([^\n]+?))? -->\n).*?(<!-- taken -->)", re.DOTALL)


def main(results: Path) -> None:
    """Fill every place of every page, and say what was taken."""
    for page in sorted((DOCS / "papers").glob("*.md")):
        text = page.read_text(encoding="utf-8")
        page.write_text(PLACE.sub(lambda place: taken(place, results), text), encoding="utf-8")


def taken(place: re.Match[str], results: Path) -> str:
    """A place with what the results have for it."""
    file = results / place[2]
    if not file.is_file():
        print(f"not there: {file}")
        return place[0]
    print(f"taken: {file}")
    if file.suffix == ".md":
        table = re.sub(r"-{4,}", "---", re.sub(r" {2,}", " ", file.read_text(encoding="utf-8").strip()))
        return f"{place[1]}\n{table}\n\n{place[4]}"
    shutil.copyfile(file, DOCS / "images" / file.name)
    return f"{place[1]}\n![{place[3]}](../images/{file.name})\n\n{place[4]}"


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "results"))
