"""What reruns what: the table of docs/reruns.md, each row played with Snakemake itself on a tiny experiment.

A copy of the checkout runs once; each row then changes something in a copy of that and asks `snakemake -n` what it
would do. Copies keep file times, so that nothing but the change is new.
"""

import json
import re
from collections import Counter

import pytest
import yaml
from checkout import snakemake

pytestmark = [pytest.mark.workflow, pytest.mark.xdist_group("workflow")]

AGGREGATES = {"collect_runs", "account", "tabulate_accuracy", "plot_accuracy_by_epsilon", "plot_accuracy_by_round"}
LEAKING_RUNS = {"account_leakage", "tabulate_leakage", "plot_accuracy_by_leakage", "plot_role_of_interval"}
RESULTS = AGGREGATES | LEAKING_RUNS | {"tabulate_verdicts"}
STUDY = {"study_leakage", "plot_leakage_over_time", "plot_leakage_over_distance", "plot_leakage_of_pairs"}
PRICED = {"account", "tabulate_accuracy", "plot_accuracy_by_epsilon"}
ACCOUNTING = LEAKING_RUNS | PRICED | {"tabulate_verdicts"}
AUDIT = {"audit_leakage", "plot_leakage_audit"}
ARRIVALS = {"study_arrivals", "plot_arrivals", "tabulate_hops", "tabulate_relay_verdicts"}
SAMPLES = {"study_sample_privacy", "plot_sample_privacy", "tabulate_relay_verdicts"}
RELAYS = ARRIVALS | SAMPLES | {"study_latency", "plot_latency", "map_layout"}
LEARNING = {
    "compress_seeds", "train_gan", "judge_generator", "train_classifier", "collect_cells", "plot_seeds_and_digits",
    "plot_accuracy_by_hops", "plot_quality", "tabulate_augmentation", "tabulate_augmentation_verdicts",
}  # fmt: skip
RUNS = 5  # of DP-OGL in configs/tiny.yaml, each in two segments
CHARACTERS, FACES = 7, 1  # runs of DPFedMTL there, each in one segment, on two data sets
MTL_RESULTS = {"collect_runs", "account", "tabulate_methods", "tabulate_noise", "tabulate_claims", "plot_convergence"}
COUNTED = {"count_clients", "tabulate_clients", "certify", "tabulate_guarantees", "plot_tradeoff"}
CERTIFIED = {"certify", "tabulate_guarantees", "tabulate_claims", "plot_tradeoff"}
SEGMENTS = 2 * RUNS + CHARACTERS + FACES


def once(*rules):
    """Rule -> number of jobs, for sets of rules that run once in each set."""
    return dict(sum(map(Counter, rules), Counter()))


def planned(folder, *arguments):
    """Rule -> number of jobs that a dry run plans, target rules left out."""
    answer = snakemake(folder, "-n", "--cores", "2", *arguments)
    text = answer.stdout + answer.stderr
    assert answer.returncode == 0, text
    if "Nothing to be done" in text:
        return {}
    table = re.findall(r"^(\w+) +(\d+)$", text.split("Job stats:")[1].split("total")[0], re.MULTILINE)
    targets = ("all", "dpogl", "dpfedmtl", "multfaug", "augmentation", "leakage", "relay")
    return {rule: int(count) for rule, count in table if rule not in targets}


def edit(folder, file, old, new):
    path = folder / file
    text = path.read_text()
    assert text.count(old) == 1, f"{old!r} stands {text.count(old)} times in {file}"
    path.write_text(text.replace(old, new))


def configure(folder, change):
    path = folder / "config.yaml"
    config = yaml.safe_load(path.read_text())
    change(config)
    path.write_text(yaml.safe_dump(config, sort_keys=False))


def test_the_tiny_experiment_leaves_all_results(finished):
    results = finished / "results"
    assert len(list(results.glob("runs/*/run.json"))) == RUNS + CHARACTERS + FACES
    names = "accuracy_by_epsilon accuracy_by_round partition structures"
    leakage = "leakage_over_time leakage_over_distance leakage_of_pairs leakage_audit"
    for name in f"{names} {leakage} accuracy_by_leakage role_of_interval".split():
        assert (results / f"dpogl/figures/{name}.png").read_bytes().startswith(b"\x89PNG")
        assert (results / f"dpogl/figures/{name}.pdf").read_bytes().startswith(b"%PDF")
    for name in ("contact_sheet_femnist_embedded", "contact_sheet_celeba_embedded"):
        assert (results / f"dpfedmtl/figures/{name}.png").read_bytes().startswith(b"\x89PNG")
    for name in ("accuracy", "leakage", "structures", "verdicts"):
        assert r"\toprule" in (results / f"dpogl/tables/{name}.tex").read_text()
    record = json.loads(next(results.glob("runs/*/round-000002.json")).read_text())
    assert record["made"]["code"] and record["run"]["seed"] == 0 and record["sha256"]


def test_nothing_reruns_when_nothing_changes(checkout):
    assert planned(checkout) == {}


def test_a_touch_reruns_nothing(checkout):
    for part in ("src", "scripts", "rules"):
        for file in (checkout / part).rglob("*.*"):
            file.touch()
    assert planned(checkout) == {}


def test_a_comment_or_docstring_reruns_nothing(checkout):
    for part in ("src", "scripts"):
        for file in (checkout / part).rglob("*.py"):
            file.write_text(file.read_text() + "\n# a comment\n")
    for file in (checkout / "rules").glob("*.smk"):
        file.write_text(file.read_text() + "\n# a comment\n")
    rounds = "src/fedpapers/federated/rounds.py"
    edit(checkout, rounds, '"""The engine: one round of any algorithm', '"""Machinery: one round of any algorithm')
    edit(checkout, rounds, '"""Go on from `state`', '"""Continue from `state`')
    assert planned(checkout) == {}


def test_a_plotting_script_reruns_its_figure(checkout):
    edit(checkout, "scripts/plot_accuracy_by_round.py", "figures.start()", "figures.start()\nprint('drawn')")
    assert planned(checkout) == {"plot_accuracy_by_round": 1}


def test_a_plotting_module_reruns_the_figures_that_use_it(checkout):
    edit(checkout, "src/fedpapers/reporting/partition.py", 'cmap="viridis"', 'cmap="cividis"')
    assert planned(checkout) == {"plot_partition": 1, "plot_devices": 1}


def test_an_accountant_reruns_the_accounting_and_what_shows_it(checkout):
    edit(checkout, "src/fedpapers/privacy/accounting.py", "_LARGEST_MU = 1e15", "_LARGEST_MU = 1e14")
    assert planned(checkout) == once(PRICED, {"account"} | CERTIFIED)


def test_the_conversion_to_epsilon_reruns_all_that_converts(checkout):
    edit(checkout, "src/fedpapers/privacy/rdp.py", "for k in range(1, 41)]", "for k in range(1, 42)]")
    assert planned(checkout) == once(ACCOUNTING | STUDY | AUDIT, {"account"} | CERTIFIED)


def test_a_leakage_bound_reruns_the_study_and_its_figures(checkout):
    edit(checkout, "src/fedpapers/privacy/leakage.py", "_MOST_GROUPS_OF_LARGE = 8", "_MOST_GROUPS_OF_LARGE = 7")
    assert planned(checkout) == dict.fromkeys(STUDY | AUDIT | LEAKING_RUNS | {"tabulate_verdicts"}, 1)


def test_one_more_studied_structure_reruns_the_study(checkout):
    def more(config):
        config["structures"]["pair"] = {"kind": "string", "groups": 2, "size": 4, "shared": 1}
        config["papers"]["dpogl"]["leakage"]["structures"].append("pair")

    configure(checkout, more)
    shown = {"plot_structures", "tabulate_structures", "tabulate_verdicts"}
    assert planned(checkout) == dict.fromkeys(STUDY | shown, 1)


def test_another_deadline_reruns_what_has_one(checkout):
    configure(checkout, lambda c: c["papers"]["multfaug"]["layouts"]["deadlines"].update(tight=20))
    assert planned(checkout) == dict.fromkeys(ARRIVALS | SAMPLES, 1)


def test_more_layouts_rerun_latency_and_arrivals(checkout):
    configure(checkout, lambda c: c["papers"]["multfaug"]["layouts"].update(layouts=80))
    assert planned(checkout) == dict.fromkeys(ARRIVALS | {"study_latency", "plot_latency"}, 1)


def test_the_radio_reruns_the_studies_of_layouts(checkout):
    edit(checkout, "src/fedpapers/relay/channel.py", "SLOT_S = 0.032", "SLOT_S = 0.02")
    rerun = RELAYS | {"study_payload", "plot_latency", "tabulate_payload"}  # one module makes all tables
    assert planned(checkout) == dict.fromkeys(rerun | LEARNING, 1)  # other seeds arrive


def test_without_a_study_of_leakage_the_rest_is_as_it_was(checkout):
    configure(checkout, lambda c: c["papers"]["dpogl"].pop("leakage"))
    assert planned(checkout) == {"tabulate_verdicts": 1}


def test_a_training_formula_reruns_training_and_what_follows(checkout):
    edit(checkout, "src/fedpapers/federated/sgd.py", "(-learning_rate * loss)", "(-1 * learning_rate * loss)")
    assert planned(checkout) == {"train": SEGMENTS, **once(RESULTS | AUDIT, MTL_RESULTS)}


def test_what_generates_one_data_set_leaves_the_others_alone(checkout):
    edit(checkout, "src/fedpapers/data/glyphs.py", "_DIGITS = 0.5", "_DIGITS = 0.6")
    first = {"prepare_data", "prepare_partition", "plot_contact_sheet"}
    assert planned(checkout) == {"train": CHARACTERS, **once(first, MTL_RESULTS | COUNTED)}


def test_the_partition_code_reruns_partitions_and_what_follows(checkout):
    edit(checkout, "src/fedpapers/data/split.py", "n * train_fraction + 0.5", "0.5 + n * train_fraction")
    assert planned(checkout) == {
        "prepare_partition": 3,
        "train": SEGMENTS,
        **once(RESULTS | {"plot_partition"}, MTL_RESULTS | COUNTED),
    }


def test_one_more_noise_multiplier_trains_the_new_runs(checkout):
    configure(checkout, lambda c: c["papers"]["dpogl"]["runs"]["private"]["noise_multiplier"].append(2.0))
    assert planned(checkout) == {"train": 2 * 2, **dict.fromkeys(RESULTS, 1)}


def test_one_more_seed_trains_the_new_runs_on_their_partition(checkout):
    configure(checkout, lambda c: c["papers"]["dpogl"]["common"].update(seed=[0, 1]))
    assert planned(checkout) == {"prepare_partition": 1, "train": 2 * RUNS, **dict.fromkeys(RESULTS, 1)}


def test_one_more_interval_trains_the_new_runs(checkout):
    configure(checkout, lambda c: c["papers"]["dpogl"]["runs"]["groups"].update(interval=[1, 2]))
    assert planned(checkout) == {"train": 2, **dict.fromkeys(RESULTS, 1)}


def test_one_more_structure_trains_the_new_runs(checkout):
    def more(config):
        config["structures"]["pair"] = {"kind": "string", "groups": 2, "size": 4, "shared": 1}
        config["papers"]["dpogl"]["runs"]["groups"]["structure"] = ["overlapping", "pair"]

    configure(checkout, more)
    assert planned(checkout) == {"prepare_partition": 1, "train": 2, **dict.fromkeys(RESULTS, 1)}


def test_more_rounds_train_the_added_segment(checkout):
    configure(checkout, lambda c: c["papers"]["dpogl"]["common"].update(rounds=6))
    assert planned(checkout) == {"train": RUNS, **dict.fromkeys(RESULTS, 1)}


def test_another_delta_reruns_the_accounting(checkout):
    configure(checkout, lambda c: c["papers"]["dpogl"].update(delta=1e-6))
    assert planned(checkout) == dict.fromkeys(ACCOUNTING | STUDY | AUDIT, 1)


def test_threads_memory_and_profile_rerun_nothing(checkout):
    configure(checkout, lambda c: c["training"].update(threads=2, device="cpu"))
    assert planned(checkout, "--default-resources", "mem_mb=500", "--jobs", "1") == {}


def test_order_and_comments_of_the_configuration_rerun_nothing(checkout):
    path = checkout / "config.yaml"
    config = yaml.safe_load(path.read_text())
    path.write_text("# a comment\n" + yaml.safe_dump(dict(reversed(config.items())), sort_keys=False))
    assert planned(checkout) == {}


def test_a_lost_result_is_made_again(checkout):
    (checkout / "results/dpogl/figures/partition.png").unlink()
    assert planned(checkout) == {"plot_partition": 1}


def test_a_bad_configuration_ends_in_one_line(checkout):
    configure(checkout, lambda c: c["papers"]["dpogl"]["common"].update(nois_multiplier=1.0))
    answer = snakemake(checkout, "-n", "--cores", "2")
    assert answer.returncode != 0
    complaint = [line for line in answer.stderr.splitlines() if "nois_multiplier" in line]
    assert len(complaint) == 1 and "did you mean 'noise_multiplier'?" in complaint[0]
    assert "Traceback" not in answer.stderr


def test_metrics_that_were_edited_reach_no_table(checkout):
    table = (checkout / "results/dpogl/runs.csv").read_text()
    metrics = next((checkout / "results/runs").glob("*/round-000002.metrics.csv"))
    text = metrics.read_text()
    metrics.write_text(text.replace(text.splitlines()[-1].split(",")[1], "0.99", 1))
    answer = snakemake(checkout, "--cores", "1", "-R", "collect_runs")
    assert answer.returncode != 0 and "0.99" not in table
    log = answer.stdout + answer.stderr
    assert f"error: results/runs/{metrics.parent.name}/{metrics.name}: not the file that was written" in log
