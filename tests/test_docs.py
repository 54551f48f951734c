"""The commands in the documentation say what the documentation says."""

import importlib.util
import re
import shlex
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from fedpapers.cli import app
from fedpapers.experiment.config import read_config
from fedpapers.experiment.plan import Plan

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


def test_what_the_readme_changes_in_the_configuration_can_be_used(tmp_path):
    """Each piece of YAML of its section goes to the place that the text names."""
    section = (DOCS.parent / "README.md").read_text().partition("## Change it")[2].partition("\n## ")[0]
    pieces = [textwrap.dedent(piece) for piece in re.findall(r"(?:^    .+\n)+", section, re.M)]
    grid, structures, groups = (yaml.safe_load(piece) for piece in pieces if re.match(r"\S+:", piece))
    config = yaml.safe_load((DOCS.parent / "config.yaml").read_text())
    before = read(config, tmp_path)
    config["papers"]["dpogl"]["runs"] |= grid["runs"]
    with_grid = read(config, tmp_path)
    new = [with_grid[one] for one in with_grid.keys() - before.keys()]
    assert sorted((run.algorithm, run.noise_multiplier, run.seed) for run in new) == [
        ("dp-ogl", 2.0, seed) for seed in (0, 1, 2)
    ]
    config["structures"] = config.get("structures", {}) | structures["structures"]
    config["papers"]["dpogl"]["runs"] |= groups
    with_groups = read(config, tmp_path)
    assert {with_groups[one].structure.kind for one in with_groups.keys() - with_grid.keys()} == {"custom"}


def read(config, folder):
    """The runs of DP-OGL in a configuration."""
    (folder / "config.yaml").write_text(yaml.safe_dump(config))
    return {planned.id: planned.run for planned in Plan(read_config([folder / "config.yaml"])).tables["dpogl"]}


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
