"""The study of the relays: its tables against golden values and closed forms, its verdicts on made-up tables."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from fedpapers.data.format import read_dataset
from fedpapers.errors import InputError
from fedpapers.experiment.config import load_config
from fedpapers.experiment.plan import Plan
from fedpapers.experiment.relay_study import (
    CURVES,
    PAYLOADS,
    ArrivalStudy,
    LatencyStudy,
    Point,
    SampleStudy,
    arrival_curves,
    curve,
    latency_curves,
    mapped_layout,
    payloads,
    sample_privacy_curves,
)
from fedpapers.files import read_yaml
from fedpapers.relay.layouts import read_layout
from fedpapers.relay.report import Setting, relay_report
from fedpapers.relay.statistics import estimate
from fedpapers.reporting import relay_verdicts as claims
from fedpapers.reporting.relay_study import hops_table, payload_table

TINY = Path(__file__).parents[1] / "configs/tiny.yaml"
GOLDEN = json.loads((Path(__file__).parent / "golden/relay.json").read_text(encoding="utf-8"))
HOPS = [1, 2, 3, 4, 5]
DEADLINES = {"tight": 25, "loose": 400}


@pytest.fixture(scope="module")
def latency():
    study = LatencyStudy(1500, [10, 25], HOPS, [0.0, 0.04, 0.15, 0.3], [0, 1, 2], usual_hops=3, seed=31)
    return pd.DataFrame(latency_curves(study), columns=list(CURVES))


@pytest.fixture(scope="module")
def images(digits):
    data = read_dataset(digits)
    return np.asarray(data.images), np.asarray(data.labels)


@pytest.fixture(scope="module")
def arrivals(images):
    study = ArrivalStudy(1500, [10, 25], HOPS, DEADLINES, seed=32)
    return pd.DataFrame(arrival_curves(study, *images), columns=list(CURVES))


@pytest.fixture(scope="module")
def sample_privacy(images):
    study = SampleStudy(60, [10, 25], 3, [0.0, 0.15], DEADLINES, seed=33)
    return pd.DataFrame(sample_privacy_curves(study, *images), columns=list(CURVES))


@pytest.fixture(scope="module")
def bits(images):
    return pd.DataFrame(payloads([0.0, 0.04, 0.15, 0.3], 34, images[0]), columns=list(PAYLOADS))


def chosen(table, **values):
    for column, value in values.items():
        table = table[table[column].isna() if value is None else table[column] == value]
    return table


def assert_agree(rows, golden):
    """Within 4 standard errors of the difference, and 5 digits where the golden error is rounded to 0."""
    assert len(rows) == len(golden)
    for mean, error, (golden_mean, golden_error) in zip(rows["mean"], rows["standard_error"], golden, strict=True):
        assert abs(mean - golden_mean) <= 4 * math.hypot(error, golden_error) + 1e-4, (mean, error, golden_mean)


# Tables


@pytest.mark.parametrize("devices", [10, 25])
def test_latency_has_the_golden_values(latency, devices):
    names = {"reference": "ref", "system": "sys_of_means", "hops": "hops", "routes": "routes"}
    for ours, theirs in names.items():
        rows = chosen(latency, axis="max_hops", devices=devices, quantity=ours)
        assert rows["max_hops"].tolist() == HOPS
        assert_agree(rows, GOLDEN["expected_latency"][f"N{devices}_{theirs}"])
    by_rho = GOLDEN["latency_by_rho"][f"N{devices}"]
    rows = chosen(latency, axis="rho", devices=devices, quantity="reference")
    assert_agree(rows, [by_rho[f"{rho:g}"] for rho in rows["rho"]])


@pytest.mark.parametrize("devices", [10, 25])
@pytest.mark.parametrize("deadline", [25, 400, None])
def test_arrivals_have_the_golden_values(arrivals, devices, deadline):
    """The golden ones are those of the MNIST test images, these of the embedded digits, whose sizes hardly differ."""
    names = {"seeds": "seeds", "labels": "labels", "coverage": "cov_ref", "label_privacy": "PLfloor",
             "label_privacy_without_floor": "PL0"}  # fmt: skip
    golden = GOLDEN["arrivals"][f"N{devices}_tau_{deadline}"]
    for ours, theirs in names.items():
        assert_agree(chosen(arrivals, devices=devices, deadline=deadline, quantity=ours), golden[theirs])


def test_sample_privacy_rises_with_rho_and_the_deadline_matters_by_the_map(sample_privacy):
    steps = chosen(sample_privacy, axis="rho").dropna(subset=["step"])
    assert (steps["step"] > 10 * steps["step_error"]).all()
    # Those of the MNIST test images (N, τ): the embedded digits are others.
    for devices, deadline, own, common in ((10, 25, None, 0.2801), (25, 25, 0.2371, 0.2731), (25, 400, 0.249, 0.271)):
        rows = chosen(sample_privacy, axis="rho", rho=0, devices=devices, deadline=deadline).set_index("quantity")
        assert rows.loc["common_map", "mean"] == pytest.approx(common, rel=0.05)
        assert own is None or rows.loc["own_map", "mean"] == pytest.approx(own, rel=0.05)
    tighter = chosen(sample_privacy, axis="deadline", quantity="own_map").dropna(subset=["step"])
    assert len(tighter) == 4 and (tighter["step"] < -3 * tighter["step_error"]).all()


def test_payloads_are_those_of_the_images(bits, images):
    nonzeros = (images[0] != 0).sum(axis=(1, 2)).mean()
    for rho, golden in GOLDEN["ratios"].items():
        own = chosen(bits, rho=float(rho)).set_index("form")
        if own.empty:
            continue
        # Tolerance: four standard errors of the masks.
        left = nonzeros * (1 - own.loc["csr", "zeroed_pixels"] / 784)
        assert own.loc["csr", "mean_bits"] == pytest.approx(290 + 13 * left, rel=3e-3)
        assert own.loc["values", "mean_bits"] == pytest.approx(8 * left, rel=3e-3)
        assert own.loc["csr_wide", "mean_bits"] == pytest.approx(290 + 37 * left, rel=3e-3)
        assert own.loc["csr", "mean_bits"] / 6272 == pytest.approx(golden["csr"], abs=0.002)
    first = chosen(bits, rho=0.0, form="csr").iloc[0]
    assert first["mean_bits"] == pytest.approx(290 + 13 * nonzeros, rel=1e-12) and pd.isna(first["grown"])
    assert bits["grown"].dropna().between(0, 0.3).all()


def test_steps_and_bends_are_paired():
    draw = np.random.default_rng(0)
    base = draw.normal(size=200)
    found = {hops: {"x": base + hops**2 + 0.01 * draw.normal(size=200)} for hops in (1, 2, 4)}
    points = [Point(10, hops) for hops in found]
    rows = pd.DataFrame(curve("max_hops", points, lambda point: found[point.max_hops]), columns=list(CURVES))
    assert rows["mean"].tolist() == [pytest.approx(own["x"].mean()) for own in found.values()]
    step = estimate(found[4]["x"] - found[2]["x"])
    assert (rows.loc[2, "step"], rows.loc[2, "step_error"]) == pytest.approx(step)
    assert rows.loc[2, "step_error"] < 0.1 * rows.loc[2, "standard_error"]
    slopes = (found[4]["x"] - found[2]["x"]) / 2 - (found[2]["x"] - found[1]["x"])
    assert (rows.loc[1, "bend"], rows.loc[1, "bend_error"]) == pytest.approx(estimate(slopes))
    assert rows["bend"].isna().tolist() == [True, False, True] and rows["step"].isna().tolist() == [True, False, False]


def test_a_route_that_is_alone_shares_with_nobody(latency):
    study = LatencyStudy(50, [1], [1], [0.0], [1], usual_hops=1, seed=0)
    one = pd.DataFrame(latency_curves(study), columns=list(CURVES)).set_index(["axis", "quantity"])
    assert one.loc[("rho", "reference"), "mean"] == one.loc[("rho", "reference_alone"), "mean"]
    assert one["step"].isna().all()
    for devices, known in ((10, [0.32, 0.46, 0.60, 0.91, 1.04]), (25, [0.31, 0.40, 0.43, 0.56, 0.77])):
        alone = chosen(latency, axis="max_hops", devices=devices, quantity="reference_alone")["mean"]
        assert alone.tolist() == pytest.approx(known, rel=0.05)  # 1,500 layouts of another implementation


def test_equal_seeds_give_equal_tables(images):
    study = SampleStudy(3, [10], 2, [0.0, 0.15], DEADLINES, seed=1)
    first, again, other = (list(sample_privacy_curves(s, *images)) for s in (study, study, replace(study, seed=2)))
    assert first == again and first != other


def test_a_label_without_samples_is_refused(images):
    kept = images[1] != 3
    with pytest.raises(InputError, match="no sample of label 3"):
        list(arrival_curves(ArrivalStudy(2, [10], [1], DEADLINES, 0), images[0][kept], images[1][kept]))


def test_the_layout_on_the_map_can_be_asked_about(tmp_path):
    text, report = mapped_layout([25, 10], 3, 0)
    (tmp_path / "layout.yaml").write_text(text)
    assert len(report["devices"]) == 10
    assert relay_report(read_layout(tmp_path / "layout.yaml"), Setting(3)) == report


# What is shown


def test_tables_for_people(latency, arrivals, bits):
    table = hops_table(latency, arrivals, DEADLINES)
    assert [*table.columns] == ["Mean over layouts", "N", "Deadline", *(f"M = {hops}" for hops in HOPS)]
    privacy = chosen(table, **{"Mean over layouts": "label privacy", "N": "25"})
    assert privacy["Deadline"].tolist() == ["τ = 25 (tight)", "τ = 400 (loose)", "none"]
    assert (privacy["M = 1"] == "0.5000").all()
    payload = payload_table(bits)
    assert payload["Pixels set to 0"].tolist() == ["0", "31", "117", "235"]
    assert payload["CSR / dense (6272 bits)"].tolist()[0] == "0.359"
    assert payload["Images larger than at the ρ before"].tolist()[0] == "–"


# Verdicts


def made_up(steps, error=0.01, places=None, **setting):
    """A curve with given steps, each with the same paired error."""
    values = np.cumsum([1.0, *steps])
    bends = [math.nan, *np.diff(steps), math.nan][: len(values)]
    columns = {"max_hops": places or range(1, len(values) + 1), "mean": values, "standard_error": 1.0,
               "step": [math.nan, *steps], "step_error": error, "bend": bends, "bend_error": error}  # fmt: skip
    return pd.DataFrame(columns | {"axis": "max_hops", "devices": 10, "rho": 0.0, "dummies": 1} | setting)


def test_a_difference_counts_from_three_errors_on():
    assert [claims.sign(*pair) for pair in ((0.31, 0.1), (0.29, 0.1), (-0.31, 0.1), (0, 0), (math.nan, 0.1))] == [
        1, 0, -1, 0, 0,
    ]  # fmt: skip
    assert claims.sign(1e-9, 0) == 1


@pytest.mark.parametrize(
    ("steps", "at_2", "at_3", "falls", "convex"),
    [
        ([-1, 1, 2], "holds", "does not hold", "does not hold", "holds"),
        ([-1, -0.5, 2], "does not hold", "holds", "does not hold", "holds"),
        ([-1, 0.01, 2], "not decided", "not decided", "does not hold", "holds"),
        ([-1, 1, 1.01], "holds", "does not hold", "does not hold", "not decided"),
        ([-1, -1, -0.5], "does not hold", "does not hold", "holds", "not decided"),
        ([-1, 2, 1], "holds", "does not hold", "does not hold", "does not hold"),
        ([], "not decided", "not decided", "not decided", "not decided"),
    ],
)
def test_rules_on_one_curve(steps, at_2, at_3, falls, convex):
    own = made_up(steps)
    assert claims.turns_at(own, 2, 1) == at_2
    assert claims.turns_at(own, 3, 1) == at_3
    assert claims.turns_at(own, 9, 1) == "not decided"
    assert claims.steps_are(own, -1) == falls
    assert claims.bends_are(own, 1) == convex


@pytest.mark.parametrize(("csr", "outcome"), [(0.36, "does not hold"), (0.21, "holds"), (0.1, "does not hold")])
def test_share_of_the_csr_form(csr, outcome):
    table = pd.DataFrame([
        {"rho": rho, "form": form, "mean_bits": share * 6272 * (1 - rho), "dense_bits": 6272, "grown": math.nan}
        for rho in (0.0, 0.05) for form, share in (("csr", csr), ("values", 0.19), ("csr_wide", 0.23))
    ])  # fmt: skip
    verdict = claims.csr_share(table)
    assert verdict.outcome == outcome
    assert f"CSR {csr:.3f} to {csr * 0.95:.3f} of the original" in verdict.evidence


def test_verdicts_on_the_tables_of_the_study(latency, arrivals, sample_privacy, bits):
    found = claims.relay_verdicts(latency, arrivals, sample_privacy, bits, DEADLINES)
    outcomes = {verdict.claim: verdict.outcome for verdict in found}
    assert len(outcomes) == 15

    def of(*words):
        (outcome,) = (value for claim, value in outcomes.items() if all(word in claim for word in words))
        return outcome

    assert of("least at M = 2") == "holds"
    assert of("convex in M") == "holds in part"
    assert of("because its routes gather more") == "does not hold"
    assert of("falls with the compression rate") == "holds"
    assert of("fluctuates") == "does not hold"
    assert of("dummy labels") == "holds"
    assert of("largest at M = 4") in ("holds in part", "not decided")  # level from 4 to 5 for N = 25
    assert of("whatever M is") == "holds in part"
    assert of("rises with ρ") == "holds"
    assert of("1/5") == "does not hold"
    assert all(verdict.evidence for verdict in found)


def test_what_was_not_studied_is_not_decided(latency, arrivals, sample_privacy, bits):
    few = [table[table["devices"] == 10] for table in (latency, arrivals, sample_privacy)]
    found = {verdict.claim: verdict for verdict in claims.relay_verdicts(*few, bits, DEADLINES)}
    (larger,) = (verdict for claim, verdict in found.items() if "at each M" in claim)
    assert larger.outcome == "not decided"
    (least,) = (verdict for claim, verdict in found.items() if "least at M = 2" in claim)
    assert least.outcome == "not decided" and "N = 10: holds" in least.evidence


def test_verdicts_on_one_point_only():
    images = np.zeros((30, 28, 28), dtype=np.uint8)
    images[:, :5] = 9
    labels = np.arange(30) % 10
    one = pd.DataFrame(latency_curves(LatencyStudy(4, [7], [2], [0.1], [1], 2, 0)), columns=list(CURVES))
    there = pd.DataFrame(arrival_curves(ArrivalStudy(4, [7], [2], DEADLINES, 0), images, labels), columns=list(CURVES))
    study = SampleStudy(4, [7], 2, [0.1], DEADLINES, 0)
    private = pd.DataFrame(sample_privacy_curves(study, images, labels), columns=list(CURVES))
    size = pd.DataFrame(payloads([0.1], 0, images), columns=list(PAYLOADS))
    outcomes = {v.claim: v.outcome for v in claims.relay_verdicts(one, there, private, size, DEADLINES)}
    undecided = [claim for claim, outcome in outcomes.items() if outcome == "not decided"]
    assert len(undecided) >= 10


# The configuration


def changed(**values):
    content = read_yaml(TINY)
    content["papers"]["multfaug"]["layouts"] |= values
    return content


@pytest.mark.parametrize(
    ("values", "complaint"),
    [
        ({"layouts": 1}, "papers.multfaug.layouts.layouts is 1; expected a whole number of at least 2"),
        ({"layouts": 30_000}, "have 750,000 devices together; expected at most 500,000; lower layouts"),
        ({"privacy_layouts": 0}, "papers.multfaug.layouts.privacy_layouts is 0; expected"),
        ({"devices": []}, "papers.multfaug.layouts.devices is an empty list; expected"),
        ({"devices": [0]}, "papers.multfaug.layouts.devices.0 is 0; expected a whole number of at least 1"),
        ({"devices": [25, 10]}, "papers.multfaug.layouts.devices: 10 stands after 25; expected ascending values"),
        ({"max_hops": [0, 1]}, "papers.multfaug.layouts.max_hops.0 is 0; expected a whole number of at least 1"),
        ({"max_hops": [1, 1]}, "1 stands after 1; expected ascending values, each once"),
        ({"max_hops": 3}, "papers.multfaug.layouts.max_hops is 3; expected a list"),
        ({"compression_rates": [0, 1]}, "compression_rates.1 is 1; expected a number of at least 0 and below 1"),
        ({"compression_rates": [False]}, "compression_rates.0 is false; expected a number"),
        ({"compression_rates": [float("nan")]}, "compression_rates.0 is .nan; expected a finite number"),
        ({"dummies": [10]}, "dummies.0 is 10; expected a whole number of at least 0 and at most 9"),
        ({"deadlines": {"tight": 400, "loose": 25}}, "tight is 400; expected fewer slots than loose (25)"),
        ({"deadlines": {"tight": 25}}, "papers.multfaug.layouts.deadlines.loose is missing"),
        ({"dataset": "mist"}, "papers.multfaug.layouts.dataset: 'mist' is not one of datasets; did you mean 'mnist'?"),
        ({"hops": 3}, "papers.multfaug.layouts: unknown key 'hops'"),
        ({"seed": -1}, "papers.multfaug.layouts.seed is -1"),
    ],
)
def test_a_mistake_in_the_study_ends_in_one_line(values, complaint):
    with pytest.raises(InputError) as error:
        load_config(changed(**values))
    assert complaint in str(error.value) and "\n" not in str(error.value)


def test_a_configuration_needs_no_study_of_layouts():
    content = read_yaml(TINY)
    del content["papers"]["multfaug"]
    plan = Plan(load_config(content))
    assert plan.relay.if_laid_out(["a file"]) == []
    with pytest.raises(InputError, match=r"papers\.multfaug\.layouts is missing"):
        plan.relay.latency_study(None)


def test_the_study_may_be_all_there_is():
    content = read_yaml(TINY)
    content["papers"] = {"multfaug": {"layouts": content["papers"]["multfaug"]["layouts"]}}
    plan = Plan(load_config(content))
    assert plan.tables == {} and plan.relay.if_laid_out(["a file"]) == ["a file"]
    folder = Path(plan.relay.travelling_data(None)["about"]).parent.name
    assert json.loads(plan.dataset(type("Wildcards", (), {"dataset": folder})))["source"] == "embedded"


def test_scripts_get_what_the_studies_take():
    plan = Plan(load_config(read_yaml(TINY)))
    assert LatencyStudy(**plan.relay.latency_study(None)).max_hops == HOPS
    assert ArrivalStudy(**plan.relay.arrival_study(None)).deadlines == DEADLINES
    assert SampleStudy(**plan.relay.sample_study(None)).privacy_layouts == 4
    assert set(plan.relay.payload_study(None)) == {"compression_rates", "seed"}
    assert mapped_layout(**plan.relay.mapped_layout(None))[1]["routes"]
