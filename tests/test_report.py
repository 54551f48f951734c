"""The report as a browser shows it."""

import json
import re
import shutil
import subprocess
import zipfile

import pytest
from checkout import snakemake

pytestmark = [pytest.mark.workflow, pytest.mark.xdist_group("workflow")]

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update", "--enable-logging=stderr",
    "--virtual-time-budget=5000",
]  # fmt: skip


@pytest.fixture(scope="module")
def report(finished, tmp_path_factory):
    """The unpacked report of the tiny experiment."""
    folder = tmp_path_factory.mktemp("report")
    made = snakemake(finished, "--report", str(folder / "report.zip"))
    assert made.returncode == 0, made.stderr
    with zipfile.ZipFile(folder / "report.zip") as archive:
        archive.extractall(folder)
    return folder / "report"


def test_the_report_holds_every_result_with_its_caption(report):
    page = (report / "report.html").read_text()
    results, _ = json.JSONDecoder().raw_decode(page, page.index('var results = {"') + len("var results = "))
    shown = {result["name"] for result in results.values()}
    assert shown == {
        "accuracy.html", "accuracy_by_epsilon.png", "accuracy_by_round.png", "partition.png", "structures.html",
        "structures.png", "leakage_over_time.png", "leakage_over_distance.png", "leakage_of_pairs.png",
        "contact_sheet_femnist_embedded.png", "contact_sheet_celeba_embedded.png",
        "leakage_audit.png", "leakage.html", "accuracy_by_leakage.png", "role_of_interval.png", "verdicts.html",
    }  # fmt: skip
    assert all((report / result["data_uri"]).stat().st_size > 0 for result in results.values())
    assert all(re.search("scale|worker|client", result["caption"]) for result in results.values())


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine")
def test_the_report_opens_without_console_errors(report, tmp_path):
    """Chromium prints what a page logs as `INFO:CONSOLE`; Tailwind's advice about production is a warning."""
    shown = subprocess.run(
        [CHROMIUM, *FLAGS, f"--user-data-dir={tmp_path}", "--dump-dom", (report / "report.html").as_uri()],
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert "Snakemake" in shown.stdout and "Results" in shown.stdout
    logged = [line for line in shown.stderr.splitlines() if "CONSOLE" in line and "tailwindcss" not in line]
    assert logged == []
