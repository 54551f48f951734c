"""What the site adds to the pages: files of the checkout as pages, and links where a page names another one."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
NAMED = re.compile(r"(?<!\[)`docs/([\w/-]+\.md)`")


def on_page_markdown(markdown: str, page: Any, files: Any, **_: Any) -> str:
    """The text of a page; one with `source` in its head shows that file of the checkout."""
    source = page.meta.get("source")
    text = (ROOT / source).read_text(encoding="utf-8").replace("](docs/", "](") if source else markdown
    up = "../" * page.file.src_uri.count("/")

    def link(match: re.Match[str]) -> str:
        known = files.get_file_from_path(match[1]) is not None
        return f"[`{match[1]}`]({up}{match[1]})" if known else match[0]

    return NAMED.sub(link, text)
