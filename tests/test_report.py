"""The report as a browser shows it."""

import json
import re
import shutil
import zipfile

import pytest
from checkout import snakemake

pytestmark = [pytest.mark.workflow, pytest.mark.xdist_group("workflow")]

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
CATEGORIES = ("DP-OGL", "DPFedMTL", "MultFAug")
PICTURE = "img[src$='.png']"
NEW_PICTURE = f"""seen => [...document.querySelectorAll("{PICTURE}")].some(
    image => image.naturalWidth > 100 && !seen.includes(image.getAttribute("src")))"""


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
        "leakage_audit.png", "leakage.html", "accuracy_by_leakage.png", "role_of_interval.png", "verdicts.html",
        "latency.png", "arrivals.png", "sample_privacy.png", "layout.png", "hops.html", "payload.html",
        "relay_verdicts.html",
        "contact_sheet_femnist_embedded.png", "contact_sheet_celeba_embedded.png", "clients.html", "methods.html",
        "noise.html", "guarantees.html", "claims.html", "tradeoff.png", "convergence.png",
        "devices.png", "seeds_and_digits.png", "quality.png", "accuracy_by_hops.png", "augmentation.html",
        "augmentation_verdicts.html",
    }  # fmt: skip
    assert all((report / result["data_uri"]).stat().st_size > 0 for result in results.values())
    assert all(re.search("scale|worker|client", result["caption"]) for result in results.values())


@pytest.fixture
def page(report):
    """The report in the system's Chromium, and what goes wrong in it; its own advice is a warning and no matter."""
    playwright = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
    if CHROMIUM is None:
        pytest.skip("no Chromium on this machine")
    wrong = []
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page(viewport={"width": 1400, "height": 900})
        page.set_default_timeout(120_000)
        page.on("console", lambda message: wrong.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("requestfailed", lambda request: wrong.append(f"not loaded: {request.url}"))
        page.goto((report / "report.html").as_uri(), wait_until="domcontentloaded")
        yield page
        browser.close()
    assert wrong == []


def test_every_category_opens_and_shows_every_result(page):
    """Each figure is a picture of its own, each table has rows and says how it was made."""
    pictures, tables = set(), set()
    rows = page.locator("tr", has=page.locator("[iconname=eye]"))
    for category in CATEGORIES:
        page.get_by_text(category, exact=True).first.click()
        rows.first.wait_for()
        for k in range(rows.count()):
            name, kind, _ = rows.nth(k).locator("td").all_inner_texts()
            rows.nth(k).locator("[iconname=eye]").click()
            if kind == "figure":
                page.wait_for_function(NEW_PICTURE, arg=sorted(pictures))
                pictures.add(page.locator(PICTURE).first.get_attribute("src"))
            else:
                table = page.frame_locator("iframe")
                table.get_by_text("Made from the runs and settings").wait_for()
                assert table.locator("tr").count() > 1, name
                tables.add(page.locator("iframe").first.get_attribute("src"))
        page.get_by_text("Results", exact=True).first.click()
    assert (len(pictures), len(tables)) == (22, 14)
