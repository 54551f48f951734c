"""`fedpapers verify` on a tiny experiment: what does not belong is named, and its command mends it."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import pandas as pd
import pytest
import yaml
from checkout import ROOT, snakemake

from fedpapers.experiment.verify import Finding, format_verification
from fedpapers.files import read_sealed, sealed
from fedpapers.stamps import digest, read_stamp

pytestmark = [pytest.mark.workflow, pytest.mark.xdist_group("workflow")]


def verify(folder, *options):
    """The report of a checkout, and the status."""
    environment = {**os.environ, "PYTHONPATH": str(folder / "src")}
    command = [sys.executable, "-m", "fedpapers", "verify", "--json", *options]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode in (0, 1), done.stderr
    return json.loads(done.stdout), done.returncode


def found(folder):
    """Artefact -> problem and rule."""
    report, status = verify(folder)
    assert status == bool(report["findings"]) and all("\n" not in one["why"] for one in report["findings"])
    return {one["artefact"]: (one["problem"], one["rule"]) for one in report["findings"]}


def flip_a_byte(path):
    """Change one bit and leave the file's time as it is."""
    content, times = bytearray(path.read_bytes()), path.stat()
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))


def test_a_fresh_result_belongs(finished):
    report, status = verify(finished)
    assert report["findings"] == [] and report["notes"] == [] and status == 0 and report["checked"] > 150


def test_tables_say_how_they_were_made(finished):
    tables = finished / "results/dpogl/tables"
    stamp = json.loads((tables / "accuracy.stamp.json").read_text())
    for kind in ("md", "tex", "html"):
        text = (tables / f"accuracy.{kind}").read_text()
        assert stamp["recipe"] in text and stamp["code"] in text and f"pandas {stamp['versions']['pandas']}" in text
    assert stamp["recipe"] not in (tables / "accuracy.csv").read_text() and len(pd.read_csv(tables / "accuracy.csv"))
    assert set(stamp["inputs"]) == {"results/dpogl/runs.csv", "results/dpogl/privacy.csv"}
    assert len(stamp["outputs"]) == 4 and str(finished) not in json.dumps(stamp)


def test_every_script_leaves_a_stamp():
    scripts = list((Path(__file__).parents[1] / "scripts").glob("*.py"))
    assert scripts and all(script.read_text().endswith("\nstamp(snakemake)\n") for script in scripts)


def test_what_was_altered_is_named_and_mended(checkout):
    results = checkout / "results"
    state = sorted(results.glob("runs/dp-ogl_*/round-000004.safetensors"))[0]
    labels = results / "data/mnist_embedded/labels.npy"
    network = sorted(results.glob("multfaug/classifiers/*.json"))[0]
    figure = results / "dpogl/figures/partition.png"
    for file in (state, labels, network, figure):
        flip_a_byte(file)
    table = results / "dpogl/tables/accuracy.md"
    table.write_text(table.read_text().replace("DPFedAvg", "ours"))
    (results / "dpogl/tables/structures.csv").unlink()
    (results / "dpogl/tables/mine.csv").write_text("a\n1\n")
    shutil.copytree(state.parent, results / "runs/dp-ogl_mine_01234567")
    report, status = verify(checkout)
    found = {one["artefact"]: one for one in report["findings"]}

    def of(path):
        one = found[str(path.relative_to(checkout))]
        return one["problem"], one["rule"]

    assert status == 1 and of(state) == ("damaged", "train") and of(labels) == ("damaged", "prepare_data")
    assert of(network) == ("damaged", "train_classifier") and of(figure) == ("damaged", "plot_partition")
    assert of(table) == ("damaged", "tabulate_accuracy")
    assert of(results / "dpogl/tables/structures.csv") == ("missing", "tabulate_structures")
    assert of(results / "dpogl/tables/mine.csv") == of(results / "runs/dp-ogl_mine_01234567") == ("foreign", None)
    assert {one["problem"] for one in found.values()} <= {"damaged", "missing", "foreign", "stale"}

    for file in (state, labels, network):  # what follows from them would take minutes
        flip_a_byte(file)
    targets = {"all"}
    for one in found.values():
        if one["problem"] == "foreign":
            assert "rm " not in one["mend"] and "fedpapers verify FILE" in one["mend"]
            path = checkout / one["artefact"]
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        elif one["rule"] in ("plot_partition", "tabulate_accuracy", "tabulate_structures"):
            remove, _, make = one["mend"].partition("snakemake ")
            subprocess.run(remove.removesuffix("&& ") or "true", shell=True, cwd=checkout, check=True)
            targets |= set(shlex.split(make.removesuffix(" --cores all")))
    made = snakemake(checkout, "--cores", "2", *sorted(targets))
    assert made.returncode == 0 and verify(checkout)[0]["findings"] == [], made.stderr


def test_the_command_that_mends_results_of_a_named_configuration_runs(checkout):
    (checkout / "config.yaml").rename(checkout / "own.yaml")
    shutil.copy2(ROOT / "config.yaml", checkout)
    (checkout / "results/dpogl/tables/structures.md").write_text("mine")
    (one,) = verify(checkout, "own.yaml")[0]["findings"]
    assert one["problem"] == "damaged"
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    done = subprocess.run(one["mend"], shell=True, cwd=checkout, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert verify(checkout, "own.yaml")[0]["findings"] == []


def kinds_of_files(folder):
    """Rule -> one file of each kind that it makes."""
    _, *rows = [line.split("\t") for line in snakemake(folder, "--summary", "all").stdout.splitlines() if "\t" in line]
    kinds = {}
    for file, _, rule, *_ in rows:
        kinds.setdefault(rule, {}).setdefault(re.sub(r".*\d\.|.*_[0-9a-f]{8}\.", "", Path(file).name), file)
    return {rule: list(files.values()) for rule, files in kinds.items()}


@pytest.mark.parametrize("place", range(4))
def test_a_flipped_bit_in_a_file_of_every_rule_is_named(checkout, place):
    flipped = {rule: files[place] for rule, files in kinds_of_files(checkout).items() if len(files) > place}
    flipped.pop("prepare_data", None)  # what is dealt from a data set is not checked without it
    for file in flipped.values():
        flip_a_byte(checkout / file)
    damaged = {(name, rule) for name, (problem, rule) in found(checkout).items() if problem == "damaged"}
    missed = {(file, rule) for rule, file in flipped.items()} - damaged
    assert len(flipped) > 5 and not missed


def test_a_consistent_file_of_something_else_is_named(checkout):
    results = checkout / "results"
    one, other = (next(results.glob(f"runs/{name}_*/round-000004.json")) for name in ("dp-ogl", "ogl"))
    for kind in ("safetensors", "metrics.csv", "clients.csv", "json"):
        shutil.copy2(other.with_suffix(f".{kind}"), one.with_suffix(f".{kind}"))
    shutil.copy2(other.with_name("run.json"), one.with_name("run.json"))
    (results / "bench").mkdir()
    last = sorted(results.glob("runs/fedavg_*/round-*.json"))[-1]
    record = json.loads(last.read_text())
    record["inputs"]["partition"] = "0" * 64
    del record["seal"]
    last.write_text(json.dumps(sealed(record)))
    named = found(checkout)
    assert named[str(one.relative_to(checkout))] == named[str(one.with_name("run.json").relative_to(checkout))]
    assert named[str(one.relative_to(checkout))] == ("damaged", "train") and "results/bench" not in named
    assert named[str(last.relative_to(checkout))] == ("stale", "train")


def test_another_hyper_parameter(checkout):
    config = yaml.safe_load((checkout / "config.yaml").read_text())
    config["papers"]["dpogl"]["runs"]["groups"]["learning_rate"] = 0.2
    config["papers"]["dpogl"]["leakage"]["noise_multiplier"] = 3.0
    (checkout / "config.yaml").write_text(yaml.safe_dump(config, sort_keys=False))
    old = next((checkout / "results/runs").glob("ogl_*"))
    named = found(checkout)
    assert named[f"results/runs/{old.name}"] == ("foreign", None)
    assert any(name.startswith("results/runs/ogl_") and value == ("missing", "train") for name, value in named.items())
    assert named["results/dpogl/runs.csv"] == ("stale", "collect_runs")
    assert named["results/dpogl/leakage_pairs.csv"] == ("stale", "study_leakage")
    assert not any(name.startswith(("results/multfaug", "results/dpfedmtl")) for name in named)


def test_another_code(checkout):
    for file, old, new in (
        ("scripts/plot_accuracy_by_round.py", "figures.start()", "figures.start()\nprint('drawn')"),
        ("src/fedpapers/augment/cgan.py", '"""', '"""A generator. '),
    ):
        path = checkout / file
        path.write_text(path.read_text().replace(old, new, 1))
    figure = {"results/dpogl/figures/accuracy_by_round.{pdf,png}": ("stale", "plot_accuracy_by_round")}
    assert found(checkout) == figure
    shutil.rmtree(checkout / ".snakemake/metadata")
    assert found(checkout) == {**figure, ".snakemake/metadata": ("unknown", None)}
    engine = checkout / "src/fedpapers/federated/rounds.py"
    engine.write_text(engine.read_text() + "\n_MORE = 1\n")
    rules = {rule for problem, rule in found(checkout).values() if problem == "stale"}
    assert rules >= {
        "train",
        "audit_leakage",
        "plot_accuracy_by_round",
    }  # what imports the engine, by records and stamps
    assert not rules & {"prepare_data", "train_gan", "tabulate_accuracy"}


def test_results_that_were_laid_there_by_hand(checkout):
    for file in (checkout / "results/dpogl/tables").glob("accuracy.*"):
        file.unlink()
    (checkout / "results/dpogl/tables/accuracy.stamp.json").unlink(missing_ok=True)
    for kind in ("csv", "md", "tex", "html"):
        (checkout / f"results/dpogl/tables/accuracy.{kind}").write_text("mine")
    assert found(checkout) == {"results/dpogl/tables/accuracy.{csv,tex,md,html}": ("unknown", "tabulate_accuracy")}


def test_nothing_was_made_yet(checkout):
    shutil.rmtree(checkout / "results")
    report, _ = verify(checkout)
    assert [(one["artefact"], one["problem"]) for one in report["findings"]] == [("results", "missing")]
    text = format_verification(report).splitlines()
    assert text[0] == "compared with config.yaml" and text[-1] == "0 files checked: nothing of the plan is there"


def test_results_of_another_configuration_take_few_lines_and_are_not_to_be_removed(checkout):
    config = yaml.safe_load((checkout / "configs/tiny.yaml").read_text())
    config["training"]["segment_rounds"] = 1  # trains anew
    config["papers"]["dpogl"]["runs"] = {"one": {"algorithm": "fedavg", "seed": list(range(40, 80))}}
    (checkout / "other.yaml").write_text(yaml.safe_dump(config, sort_keys=False))
    report, status = verify(checkout, "other.yaml")
    text = format_verification(report)
    first, *lines = text.splitlines()
    assert status == 1 and first == f"compared with {report['configuration']}" == "compared with other.yaml"
    assert len(report["findings"]) > 100 and len(lines) < 25 and "rm " not in text
    assert re.search(r"^foreign: \d+ folders or files in results/runs: ", text, re.MULTILINE)
    assert re.search(r"^missing: \d+ files in results/runs: ", text, re.MULTILINE)
    assert verify(checkout, "--config", "other.yaml")[0] == report


def test_what_follows_from_other_findings_is_one_line():
    causes = {"a.csv": "its settings or its code changed", "b.csv": "it is not what its rule wrote"}
    upstream = "what it is made from is to be made again"
    found = [Finding(name, "stale", why, "rule", "snakemake") for name, why in causes.items()]
    found += [Finding(f"{k}.png", "stale", upstream, "rule", "snakemake") for k in range(7)]
    head, *lines, more, verdict = format_verification(reported(found, 20)).splitlines()
    assert head == "compared with a.yaml" and "--json" in more
    assert [line.split(":")[1].split()[0] for line in lines] == ["a.csv", "b.csv", "7"]
    assert verdict == "20 files checked: 9 stale"


def reported(found, checked):
    return {"configuration": "a.yaml", "checked": checked, "findings": [*map(asdict, found)], "notes": []}


def test_a_handful_is_named_and_more_are_counted_by_folder_and_cause():
    missing = [
        Finding(f"results/runs/{k}/round-000002.{{json,csv}}", "missing", "gone", "train", "x") for k in range(5)
    ]
    foreign = [Finding(f"results/{folder}/{k}", "foreign", "mine", None, "y") for folder in "ab" for k in range(3)]
    damaged = [Finding(f"results/data/{k}.npy", "damaged", "torn", "prepare_data", "z") for k in range(9)]
    lines = format_verification(reported([*missing, *foreign, *damaged], 30)).splitlines()
    assert lines[1:10] == [str(one) for one in damaged] and lines[12:17] == [str(one) for one in missing]
    assert lines[10:12] == [f"foreign: 3 folders or files in results/{folder}: mine; y" for folder in "ab"]
    assert lines[-1] == "30 files checked: 9 damaged; besides 10 missing, 6 foreign"
    lines = format_verification(reported([*missing, missing[0]], 30)).splitlines()
    assert lines[1:2] == ["missing: 12 files in results/runs: gone"]
    assert lines[-1] == "30 files checked: all as they should be; besides 12 missing"
    assert format_verification(reported([], 3)).splitlines()[1:] == [
        "3 files checked: all belong to the present code and configuration"
    ]


def test_seals_and_digests(tmp_path):
    path = tmp_path / "a.json"
    path.write_text(json.dumps(sealed({"accuracy": 0.5, "made": {"seconds": 1}})))
    assert read_sealed(path) == {"accuracy": 0.5, "made": {"seconds": 1}}
    known = digest(path)
    path.write_text(json.dumps(sealed({"accuracy": 0.5, "made": {"seconds": 2}})))
    assert digest(path) == known
    path.write_text(path.read_text().replace("0.5", "0.6"))
    assert digest(path) != known
    with pytest.raises(ValueError, match="not what was written"):
        read_sealed(path)
    assert read_stamp(tmp_path / "a.csv") is None


def test_outside_of_a_checkout(tmp_path):
    shutil.copy2(Path(__file__).parents[1] / "configs/tiny.yaml", tmp_path / "config.yaml")
    command = [sys.executable, "-m", "fedpapers", "verify"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 2 and done.stderr.startswith("error: Snakefile: no such file") and not done.stdout
