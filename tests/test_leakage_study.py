"""The study of leakage: its tables against the golden chain and against what must hold between them."""

import math
from pathlib import Path

import pandas as pd
import pytest

from fedpapers import groups
from fedpapers.errors import InputError
from fedpapers.experiment.config import load_config
from fedpapers.experiment.leakage_study import OVER_TIME, PAIRS, Study, leakage_of_pairs, leakage_over_time
from fedpapers.experiment.plan import Plan
from fedpapers.files import read_yaml
from fedpapers.reporting.structures import longest_way, structures_table

TINY = Path(__file__).parents[1] / "configs/tiny.yaml"
CHAIN = {  # ε of DP-OGL at distances 0 to 5: papers' T = 40, S = 5, σ = 2, q = 1/2, δ = 1e-5
    "naive": [9.07] * 6,
    "delay": [9.07, 8.42, 7.74, 7.01, 6.23, 5.36],
    "percolation": [9.07, 6.34, 5.37, 4.40, 3.43, 2.52],
}


def members(structure):
    return {name: list(workers) for name, workers in structure.members.items()}


@pytest.fixture(scope="module")
def study():
    return Study(
        structures={"chain": members(groups.string(6, 3, 1)), "apart": members(groups.disjoint(2, 2))},
        epochs=40,
        intervals=[1, 5],
        noise_multiplier=2.0,
        sampling_rate=0.5,
        structure="chain",
        interval=5,
        response=0.3,
        delta=1e-5,
    )


@pytest.fixture(scope="module")
def pairs(study):
    return pd.DataFrame(leakage_of_pairs(study)).astype({"distance": float, "epsilon": float})


@pytest.fixture(scope="module")
def over_time(study):
    return pd.DataFrame(leakage_over_time(study)).astype({"epsilon": float})


def wide(frame, *by):
    return frame.set_index([*by, "bound"])["epsilon"].unstack("bound")


@pytest.mark.parametrize("bound", CHAIN)
def test_both_tables_have_the_golden_values_of_the_chain(bound, pairs, over_time):
    own = pairs[(pairs["structure"] == "chain") & (pairs["algorithm"] == "dp-ogl") & (pairs["S"] == 5)]
    own = own[(own["from"] == "1") & (own["bound"] == bound)].groupby("distance")["epsilon"]
    assert list(own.max()) == pytest.approx(CHAIN[bound], abs=0.006)
    assert (own.max() == own.min()).all()
    end = over_time[(over_time["T"] == 40) & (over_time["bound"] == bound) & (over_time["sampling_rate"] == 0.5)]
    assert list(end.sort_values("distance")["epsilon"]) == pytest.approx(list(own.max()), rel=1e-12)


def test_interval_algorithms_have_the_golden_values_of_the_chain(pairs):
    near = pairs[(pairs["structure"] == "chain") & (pairs["S"] == 5) & (pairs["from"] == "1") & (pairs["to"] == "4")]
    epsilon = near.set_index(["algorithm", "bound"])["epsilon"]
    assert epsilon["dp-ogl-plus", "percolation"] == pytest.approx(16.06, abs=0.006)
    assert epsilon["dp-ogl-plus", "paper"] == pytest.approx(3.67, abs=0.006)


def test_tables_are_tidy(pairs, over_time):
    assert tuple(pairs.columns) == PAIRS and tuple(over_time.columns) == OVER_TIME
    assert not pairs.duplicated([*PAIRS[:-1]]).any() and not over_time.duplicated([*OVER_TIME[:-1]]).any()
    assert not (pairs["from"] == pairs["to"]).any()
    workers = {"chain": 13, "apart": 4}
    counts = pairs.groupby(["structure", "algorithm", "S", "bound"]).size().unstack("structure")
    assert (counts == {name: n * (n - 1) for name, n in workers.items()}).all(axis=None)
    assert set(pairs.loc[pairs["bound"] == "paper", "algorithm"]) == {"dp-ogl-plus"}


def test_each_proven_bound_is_at_most_the_one_before(pairs):
    table = wide(pairs, "structure", "algorithm", "S", "from", "to")
    for weak, strong in (("naive", "delay"), ("delay", "cut"), ("cut", "percolation")):
        assert (table[strong] <= table[weak] * (1 + 1e-12)).all()


def test_nothing_leaks_out_of_reach_and_members_of_plus_see_everything(pairs):
    proven = pairs[~pairs["bound"].isin(["naive", "paper"])]
    assert (proven.loc[proven["distance"] == math.inf, "epsilon"] == 0).all()
    plus = pairs[(pairs["algorithm"] == "dp-ogl-plus") & (pairs["S"] == 5) & (pairs["distance"] == 0)]
    assert (plus["epsilon"] == math.inf).all()


def test_with_an_interval_of_one_epoch_the_algorithms_are_one(pairs):
    one = pairs[(pairs["S"] == 1) & (pairs["bound"] != "paper")]
    by_algorithm = one.pivot_table(index=["structure", "from", "to", "bound"], columns="algorithm", values="epsilon")
    assert (by_algorithm.nunique(axis=1) == 1).all()
    plus = wide(pairs[(pairs["S"] == 1) & (pairs["algorithm"] == "dp-ogl-plus")], "structure", "from", "to")
    assert (plus["paper"] == plus["delay"]).all()


def test_the_exact_reference_stays_below_the_bounds_of_its_sampling_rate(over_time):
    everybody = over_time[over_time["sampling_rate"] == 1]
    table = wide(everybody, "T", "distance")
    assert set(over_time.loc[over_time["bound"] == "exact", "sampling_rate"]) == {1.0}
    assert (table["exact"] <= table["percolation"]).all()
    assert table.loc[(40, 0), "exact"] > 0.9 * table.loc[(40, 0), "percolation"]


def test_leakage_grows_with_time_from_nothing(over_time):
    for _, own in over_time.sort_values("T").groupby(["sampling_rate", "distance", "bound"]):
        assert own["epsilon"].iloc[0] == 0
        assert (own["epsilon"].diff().dropna() >= -1e-9).all()


def test_table_of_structures():
    shown = structures_table({
        "chain": members(groups.string(6, 3, 1)), "apart": members(groups.disjoint(2, 2)),
        "figure": members(groups.overlapping()),
    }).set_index("Structure")  # fmt: skip
    assert list(shown.loc["chain"]) == ["13", "6", "3", "5", "1–2", "5"]
    assert list(shown.loc["apart"]) == ["4", "2", "2", "0", "1", "not connected"]
    assert list(shown.loc["figure"]) == ["7", "5", "2–3", "5", "1–2", "3"]


def test_longest_way_goes_from_worker_to_worker():
    structure = members(groups.overlapping())
    way = longest_way(structure)
    assert way[0] == "1" and way[-1] == "7" and len(way) == 9
    for worker, group, other in zip(way[::2], way[1::2], way[2::2], strict=False):
        assert {worker, other} <= set(structure[group])


# The configuration


def changed(**values):
    content = read_yaml(TINY)
    content["papers"]["dpogl"]["leakage"] |= values
    return content


@pytest.mark.parametrize(
    ("values", "complaint"),
    [
        ({"structures": ["strin"]}, "structure is 'string'; expected one of the study's structures"),
        (
            {"structures": ["string", "overlaping"]},
            "papers.dpogl.leakage.structures: 'overlaping' is not one of structures; did you mean 'overlapping'?",
        ),
        ({"structures": ["string", "string"]}, "string stands here twice"),
        ({"interval": 3}, "interval is 3; expected one of the study's intervals, [1, 2]"),
        ({"intervals": [0]}, "papers.dpogl.leakage.intervals.0 is 0; expected a whole number of at least 1"),
        ({"noise_multiplier": 0}, "papers.dpogl.leakage.noise_multiplier is 0; expected a number above 0"),
        ({"epoch": 3}, "papers.dpogl.leakage: unknown key 'epoch'; did you mean 'epochs'?"),
    ],
)
def test_a_mistake_in_the_study_ends_in_one_line(values, complaint):
    with pytest.raises(InputError) as error:
        load_config(changed(**values))
    assert complaint in str(error.value) and "\n" not in str(error.value)


def test_a_configuration_needs_no_study():
    content = read_yaml(TINY)
    del content["papers"]["dpogl"]["leakage"]
    plan = Plan(load_config(content))
    assert plan.leakage.if_studied(["a file"]) == [] and plan.leakage.structures(None) == {}
    with pytest.raises(InputError, match=r"papers.dpogl.leakage is missing"):
        plan.leakage.study(None)


def test_what_scripts_get_is_the_study():
    study = Study(**Plan(load_config(read_yaml(TINY))).leakage.study(None))
    assert study.groups("string") == groups.string(3, 3, 1)
    assert (study.delta, study.interval, study.response) == (1e-5, 2, 0.3)
