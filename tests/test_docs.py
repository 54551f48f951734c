"""The commands in the documentation say what the documentation says."""

import importlib.util
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from fedpapers.cli import app

DOCS = Path(__file__).parents[1] / "docs"
BLOCK = re.compile(r"^```console\n\$ fedpapers (?P<command>[^\n]+)\n(?P<output>.*?)^```$", re.MULTILINE | re.DOTALL)
EXAMPLES = [
    (page.name, *match.groups()) for page in sorted(DOCS.glob("*.md")) for match in BLOCK.finditer(page.read_text())
]


@pytest.mark.parametrize(("page", "command", "output"), EXAMPLES, ids=[f"{e[0]}-{e[1][:30]}" for e in EXAMPLES])
def test_a_command_prints_what_the_page_shows(page, command, output, tmp_path, monkeypatch):
    for file in (DOCS / "examples").iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    monkeypatch.chdir(tmp_path)
    answer = CliRunner().invoke(app, shlex.split(command))
    assert answer.exit_code == 0 and answer.output.rstrip() == output.rstrip()


def test_the_pages_have_examples():
    assert len(EXAMPLES) >= 3


def test_numbers_in_the_text_of_the_guide(tmp_path, monkeypatch):
    text = (DOCS / "leakage.md").read_text()
    common = f"{DOCS}/examples/hospitals.yaml --epochs 40 --sampling-rate 0.5 --delta 1e-5"
    for options, shown in (
        (f"plan {common} --interval 20 --targets {DOCS}/examples/agreed.yaml", "σ = 2.21"),
        (f"plan {common} --interval 5 --algorithm dp-ogl-local --targets {DOCS}/examples/agreed.yaml", "σ = 4.15"),
        (f"leakage {common} --interval 5 --noise-multiplier 2 --algorithm dp-ogl-plus", "24.38"),
        (f"leakage {common} --interval 5 --noise-multiplier 2 --algorithm dp-ogl-plus", "3.666"),
    ):
        answer = CliRunner().invoke(app, shlex.split(options))
        assert shown in answer.output
    assert "σ = 2.21" in text and "σ = 4.15" in text and "24.4\ninstead of 3.67" in text


def test_links_lead_somewhere():
    root = DOCS.parent
    for page in [*DOCS.rglob("*.md"), *root.glob("*.md")]:
        for link in re.findall(r"\]\(([^)#\s]+)\)", page.read_text()):
            assert link.startswith("https://") or (page.parent / link).exists(), f"{page.name}: {link}"


def test_the_site_builds_strictly_and_needs_no_network(tmp_path):
    """A page that is named and not there, or a link that leads nowhere, fails the build."""
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path)]
    done = subprocess.run(command, cwd=DOCS.parent, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    front = (tmp_path / "index.html").read_text()
    assert "What comes out" in front and 'src="images/accuracy_by_epsilon.png"' in front
    assert 'href="../noise-placement.html"' in (tmp_path / "papers/dpfedmtl.html").read_text()
    loaded = (
        r"""<(?:script|img|iframe|link(?! rel="(?:canonical|next|prev)"))[^>]*(?:src|href)=["']?(?:https?:)?//[^>]*>"""
    )
    for page in tmp_path.rglob("*.html"):
        assert re.findall(loaded, page.read_text()) == [], page


def test_pages_take_tables_and_figures_from_results(tmp_path):
    """`docs/take_results.py` fills a place again and again, and leaves one alone for which there is nothing."""
    spec = importlib.util.spec_from_file_location("take_results", DOCS / "take_results.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.DOCS = tmp_path
    (tmp_path / "images").mkdir()
    (tmp_path / "papers").mkdir()
    page = tmp_path / "papers/a.md"
    page.write_text(
        "<!-- take a/t.md -->\n<!-- taken -->\n<!-- take a/f.png What it is -->\nnone yet\n<!-- taken -->\n"
    )
    (tmp_path / "a").mkdir()
    for text in ("| a   |\n|:-----|\n| 1   |\n", "| b   |\n|:-----|\n| 2   |\n"):
        (tmp_path / "a/t.md").write_text(text)
        module.main(tmp_path)
        shown = page.read_text()
        assert f"| {text[2]} |\n|:---|\n" in shown and shown.count("<!-- taken -->") == 2 and "none yet" in shown
    (tmp_path / "a/f.png").write_bytes(b"png")
    module.main(tmp_path)
    assert "![What it is](../images/f.png)" in page.read_text() and (tmp_path / "images/f.png").read_bytes() == b"png"
