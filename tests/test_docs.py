"""The commands in the documentation say what the documentation says."""

import re
import shlex
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
    for page in [*DOCS.glob("*.md"), *root.glob("*.md")]:
        for link in re.findall(r"\]\(([^)#\s]+)\)", page.read_text()):
            assert link.startswith("https://") or (page.parent / link).exists(), f"{page.name}: {link}"
