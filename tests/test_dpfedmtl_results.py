"""Tables, figures and verdicts of DPFedMTL, from made-up runs."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from fedpapers.errors import InputError
from fedpapers.experiment.guarantees import CURVES, EPSILONS
from fedpapers.files import sealed, sha256
from fedpapers.reporting import figures, published
from fedpapers.reporting.dpfedmtl import (
    METHODS,
    Results,
    clients_table,
    count_clients,
    methods_table,
    noise_table,
    plot_convergence,
    read_results,
)
from fedpapers.reporting.dpfedmtl_claims import claims
from fedpapers.reporting.guarantees import guarantees_table, plot_tradeoff, read_epsilons
from fedpapers.reporting.verdicts import verdict_table

FEMNIST = "FEMNIST (40,000 characters of 178 writers)"  # as its reader names it
SIGMAS = (0.11, 0.65, 2.42, 9.69)
SEEDS = (0, 1, 2)
GOOD = {  # accuracies with which every claim of the paper holds
    "celeba": {
        "local": 0.70, "fedavg": 0.88, "fedmtl": 0.90,
        "dpfedavg": (0.86, 0.80, 0.62, 0.50), "dpfedmtl": (0.895, 0.89, 0.88, 0.86),
    },
    "femnist": {
        "local": 0.50, "fedavg": 0.70, "fedmtl": 0.81,
        "dpfedavg": (0.60, 0.50, 0.30, 0.05), "dpfedmtl": (0.80, 0.79, 0.78, 0.77),
    },
}  # fmt: skip


COUNTS = pd.DataFrame(
    [
        {"dataset": "celeba", "data": "CelebA-like (generated)", "generated": True, "clients": 100,
         "samples": 2150, "mean": 21.5, "deviation": 7.5, "classes": 2},
        {"dataset": "femnist", "data": FEMNIST, "generated": False, "clients": 178,
         "samples": 40000, "mean": 224.7, "deviation": 80.0, "classes": 62},
        {"dataset": "mine", "data": "Mine", "generated": False, "clients": 2, "samples": 10, "mean": 5.0,
         "deviation": 0.0, "classes": 2},
    ]
)  # fmt: skip


def made_up(accuracies=GOOD, seeds=SEEDS, **more):
    """Runs whose accuracies scatter by ± 0.2 points, the same for all methods of a seed."""
    rows = []
    for dataset, of_methods in accuracies.items():
        for algorithm, values in of_methods.items():
            for sigma, accuracy in zip(SIGMAS, values, strict=True) if isinstance(values, tuple) else [(None, values)]:
                for seed in seeds:
                    own = accuracy + 0.002 * (seed - 1) + 0.0003 * ((seed * 7 + len(algorithm)) % 3)
                    rows.append(
                        {
                            "run": f"{algorithm}-{dataset}-{sigma}-{seed}", "grid": "all", "algorithm": algorithm,
                            "title": METHODS[algorithm], "dataset": dataset, "partition": "by-writer", "rounds": 100,
                            "noise_multiplier": sigma, "noise": "client" if sigma else None, "seed": seed,
                            "accuracy": own, "accuracy_unpersonalised": own - 0.05 if "mtl" in algorithm else own,
                            "sampling_rate": None if algorithm == "local" else 0.1, "local_steps": 1,
                            "accuracy_by_sample": own, "loss": 1.0, "constant_accuracy": 0.1, **more,
                        }
                    )  # fmt: skip
    return pd.DataFrame(rows)


def results_of(runs, folder, counts=COUNTS):
    runs.to_csv(folder / "runs.csv", index=False)
    return Results(read_results(str(folder / "runs.csv")), counts)


def made_up_history(runs):
    """Every method saturates; those with private layers three times as fast."""
    rounds = np.arange(0, 101, 10)
    return pd.concat(
        [
            pd.DataFrame(
                {
                    "run": row["run"],
                    "round": rounds,
                    "accuracy": row["accuracy"] * (1 - np.exp(-rounds / (8 if "mtl" in row["algorithm"] else 24))),
                }
            )
            for row in runs.to_dict("records")
        ],
        ignore_index=True,
    )


@pytest.fixture
def results(tmp_path):
    return results_of(made_up(), tmp_path)


@pytest.fixture(scope="module")
def epsilons():
    """The tidy table without accountants at work: what is shown is what stands there."""
    values = {
        "celeba": {0.65: (0.465, 1.41, 14.9), 2.42: (0.0537, 0.0558, 2.7), 9.69: (0.0109, 0.0112, 0.54)},
        "femnist": {0.65: (7.95, 9.43, 60.4), 2.42: (0.845, 0.868, 9.39), 9.69: (0.178, 0.179, 1.82)},
    }
    rows = []
    for dataset, of_sigma in values.items():
        for sigma, three in of_sigma.items():
            places = (("central", "gdp"), ("central", "pld"), ("client", "exact"))
            for (noise, accountant), value in zip(places, three, strict=True):
                rows.append(
                    dict.fromkeys(EPSILONS, "")
                    | {
                        "setting": "paper", "dataset": dataset, "clients": 178, "sampling_rate": 0.01, "rounds": 400,
                        "noise_multiplier": sigma, "claimed_epsilon": 8.0, "formula_noise_multiplier": 0.606,
                        "release_epsilon": 7.27, "noise": noise, "accountant": accountant, "delta": 1e-5,
                        "epsilon": value, "approximation": accountant == "gdp", "unit": "all data of one client",
                        "relation": "zero-out" if noise == "client" else "add-or-remove-one", "adversary": "somebody",
                        "note": "pld failed: x; the RDP bound stands in" if value == 9.43 else "",
                    }
                )  # fmt: skip
    return pd.DataFrame(rows, columns=list(EPSILONS))


def test_clients_are_counted_from_the_partition(tmp_path):
    (tmp_path / "histogram.csv").write_text(
        "client,split,label,samples\nNA,train,0,3\nNA,train,1,1\nNA,test,1,2\n7,train,0,9\n7,test,0,1\n"
    )
    about = {"data": "FEMNIST-like (generated)", "generated": True, "classes": ["0", "1", "2"], "groups": {}}
    about["histogram_sha256"] = sha256(tmp_path / "histogram.csv")
    (tmp_path / "about.json").write_text(json.dumps(sealed(about)))
    one = {"dataset": "femnist", "folder": str(tmp_path), "title": None}
    counts = count_clients([one])
    (row,) = counts.to_dict("records")
    assert (row["clients"], row["samples"], row["mean"], row["classes"]) == (2, 16, 8, 3)
    assert row["deviation"] == pytest.approx(math.sqrt(8))
    shown = clients_table(counts)
    assert shown.iloc[0].tolist() == ["FEMNIST-like (generated)", "generated", "2", "16", "8.00", "2.83", "0.35", "3"]
    assert shown.iloc[1]["Samples"] == "200,288"
    mine = {"dataset": "mine", "folder": str(tmp_path), "title": "Ours & theirs"}
    both = count_clients([one, mine])
    assert both.iloc[:1].equals(counts) and both["data"].tolist()[1] == "Ours & theirs"
    assert both["classes"].tolist() == [3, 2] and both["generated"].tolist() == [True, True]
    for damage in ("client,split,label,samples\n7,train,0,9\n", ""):
        (tmp_path / "histogram.csv").write_text(damage)
        with pytest.raises(InputError, match=r"histogram\.csv: not the file that was written; delete it"):
            count_clients([one])
    (tmp_path / "about.json").write_text("{")
    with pytest.raises(InputError, match=r"about\.json: missing or damaged; delete it"):
        count_clients([one])
    assert set(shown["Real or generated"].iloc[1:]) == {"real, as LEAF counts it"}


def test_table_of_methods(results):
    table = methods_table(results).set_index(["Data", "Method"])
    assert len(table) == 10
    ours = table.loc[(FEMNIST, "DPFedMTL")]
    assert (ours["σ"], ours["Accuracy (%)"], ours["Seeds"]) == ("9.69", "77.0 ± 0.2", "3")
    assert ours["Without personalisation (%)"] == "72.0 ± 0.2"
    assert table.loc[(FEMNIST, "FedAvg"), "Without personalisation (%)"] == "–"
    published_cells = table["Published, on the real data (%)"]
    assert published_cells[FEMNIST, "DPFedMTL"] == "76.79"
    assert published_cells["CelebA-like (generated)", "DPFedMTL"] == "90.25 (CelebA; ours is generated)"
    assert (published_cells == "not available").sum() == 8


def test_table_by_noise(results):
    table = noise_table(results).set_index(["Data", "σ", "Method"])
    assert len(table) == 16
    drop = table["Drop from FedAvg or FedMTL (points)"]
    assert drop[FEMNIST, "9.69", "DPFedMTL"].startswith("4.0 ±")
    assert drop["CelebA-like (generated)", "9.69", "DPFedAvg"].startswith("38.0 ±")
    assert table.loc[(FEMNIST, "9.69", "DPFedMTL"), "Published drop (points)"] == "4.45 from 81.24 %"
    assert (table["Published drop (points)"] == "not available").sum() == 15


def test_tables_bear_what_is_missing(tmp_path):
    runs = made_up({"femnist": {"fedmtl": 0.8, "dpfedmtl": GOOD["femnist"]["dpfedmtl"]}}, seeds=(0,))
    results = results_of(runs.drop(columns="accuracy_unpersonalised"), tmp_path)
    table = methods_table(results).set_index("Method")
    assert table.loc["Local", "Accuracy (%)"] == "not run"
    assert table.loc["Local", "Seeds"] == "0"
    assert table.loc["DPFedMTL", ["Accuracy (%)", "Without personalisation (%)"]].tolist() == ["76.9", "–"]
    assert "not run" in set(noise_table(results)["Accuracy (%)"])
    without_noise = results_of(made_up({"femnist": {"fedmtl": 0.8}}), tmp_path)
    assert len(noise_table(without_noise)) == 0
    assert len(methods_table(without_noise)) == 5


def test_runs_that_differ_in_more_than_the_seed_are_not_averaged(tmp_path):
    runs = pd.concat([made_up(clipping_norm=0.1), made_up(clipping_norm=0.5).assign(accuracy=0.1)])
    results = results_of(runs.assign(run=range(len(runs))), tmp_path)
    table = methods_table(results)
    names = table.loc[table["Data"] == FEMNIST, "Method"].tolist()
    assert names[:2] == ["Local (C = 0.1)", "Local (C = 0.5)"]
    assert set(table["Seeds"]) == {"3"}
    assert results.accuracy("femnist", "fedmtl").max() > 0.8  # claims look at the first variant


def test_every_claim_holds_where_the_numbers_say_so(results, epsilons):
    history = made_up_history(results.runs)
    table = verdict_table(claims(results, history, epsilons))
    assert len(table) == 10
    assert table["Verdict"].tolist() == ["holds"] * 8 + ["holds in part", "does not hold"]
    assert table["Our numbers"].str.contains("Rule: ").all()
    assert "CelebA-like (generated): +2.0" in table["Our numbers"].iloc[1]
    assert "CelebA σ = 0.65: 1.41" in table["Our numbers"].iloc[8]
    assert "CelebA σ = 0.65: 0.465" in table["Our numbers"].iloc[9]


def test_claims_fall_with_the_numbers(tmp_path, epsilons):
    bad = {
        dataset: {**of, "fedmtl": 0.4, "dpfedmtl": of["dpfedavg"], "dpfedavg": of["dpfedmtl"]}
        for dataset, of in GOOD.items()
    }
    results = results_of(made_up(bad), tmp_path)
    outcomes = [verdict.outcome for verdict in claims(results, made_up_history(results.runs), epsilons)]
    assert outcomes[0] == "does not hold"
    assert outcomes[3:6] == ["does not hold"] * 3


@pytest.mark.parametrize(
    "left",
    [{"mine": {"local": 0.8}}, {"femnist": {"fedmtl": 0.8}}, {"celeba": {"dpfedavg": GOOD["celeba"]["dpfedavg"]}}],
)
def test_claims_are_not_decided_without_runs(tmp_path, epsilons, left):
    results = results_of(made_up(left), tmp_path)
    verdicts = claims(results, made_up_history(results.runs), epsilons)
    assert [verdict.outcome for verdict in verdicts[:8]] == ["not decided"] * 8
    assert "nan" not in " ".join(verdict.evidence for verdict in verdicts)
    no_paper = claims(results, made_up_history(results.runs), epsilons.assign(setting="ours"))
    assert [verdict.outcome for verdict in no_paper[8:]] == ["not decided"] * 2


def test_a_method_that_does_not_learn_converges_neither_fast_nor_slowly(results, epsilons):
    history = made_up_history(results.runs)
    flat = history["run"].str.startswith("dpfedavg-femnist-9.69")
    history.loc[flat, "accuracy"] = 0.02
    verdicts = claims(results, history, epsilons)
    assert (verdicts[6].outcome, verdicts[7].outcome) == ("holds", "not decided")
    assert "DPFedAvg at the start, at the start, at the start" in verdicts[7].evidence
    slower = history.assign(accuracy=np.where(history["run"].str.startswith("fedmtl"), 0.3, history["accuracy"]))
    verdict = claims(results, slower, epsilons)[6]
    assert (verdict.outcome, "FedMTL never, never, never" in verdict.evidence) == ("does not hold", True)


def test_one_seed_and_noisy_seeds_decide_nothing(tmp_path, epsilons):
    results = results_of(made_up(seeds=(0,)), tmp_path)
    assert claims(results, made_up_history(results.runs), epsilons)[0].outcome == "not decided"


def test_table_of_guarantees(epsilons, tmp_path):
    epsilons.to_csv(tmp_path / "epsilons.csv", index=False)
    table = guarantees_table(read_epsilons(str(tmp_path / "epsilons.csv")), {})
    assert len(table) == 12
    row = table[(table["Data"] == "FEMNIST") & (table["σ"] == "0.65") & (table["Noise"] == "central")].iloc[0]
    assert row["ε (PLD)"] == "9.43*"
    assert row["ε (closed form)"] == "–"
    assert (row["Relation"], row["Unit"]) == ("add-or-remove-one", "all data of one client")
    assert not table.isna().any().any()


def test_published_values_are_few():
    assert published.accuracy(FEMNIST, "dpfedmtl", 9.69).drop == 4.45
    assert published.accuracy("FEMNIST-like (generated)", "fedmtl", None) is None
    assert published.accuracy("MNIST", "dpfedmtl", 0.65) is None
    assert published.of_paper("CelebA-like (generated)") == "celeba"
    assert published.of_paper("CelebA (200,288 images of 9,343 identities)") == "celeba"
    assert published.of_paper("CelebA-small") is published.of_paper("not femnist") is None


def test_methods_are_compared_at_the_papers_noise_where_that_was_run(results):
    assert [results.headline(dataset) for dataset in ("celeba", "femnist", "mine")] == [0.65, 9.69, None]
    elsewhere = replace(results, runs=results.runs[~results.runs["noise_multiplier"].isin([0.65, 9.69])])
    assert [elsewhere.headline(dataset) for dataset in ("celeba", "femnist")] == [0.11, 0.11]


def test_figures_can_be_drawn(results, tmp_path):
    figures.start()
    figure = plot_convergence(results, made_up_history(results.runs), "embedded")
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    assert labels == ["Local, in the end", *list(METHODS.values())[1:]]
    assert [axes.get_title() for axes in figure.axes] == ["CelebA-like (generated), σ = 0.65", f"{FEMNIST}, σ = 9.69"]
    local, fedavg = figure.axes[0].lines[:2]
    assert local.get_ydata()[0] == local.get_ydata()[1] == pytest.approx(0.7, abs=0.01)
    assert fedavg.get_xdata()[-1] == 100
    figures.save(figure, str(tmp_path / "a.png"), str(tmp_path / "a.pdf"))
    type_1 = np.linspace(0, 1, 11)
    rows = [
        ("paper", "celeba", 0.002, 400, sigma, curve, a, (1 - a) ** (1 + 1 / sigma))
        for sigma in SIGMAS
        for curve in ("limit", "central", "client")
        for a in type_1
    ]
    figure = plot_tradeoff(pd.DataFrame(rows, columns=list(CURVES)), {})
    assert [axes.get_xlabel() for axes in figure.axes] == ["type I error"] * 3
    figures.save(figure, str(tmp_path / "b.png"), str(tmp_path / "b.pdf"))
