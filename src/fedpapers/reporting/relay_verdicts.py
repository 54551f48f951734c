"""What MultFAug claims about its radio, against the study of layouts: a rule and our numbers for each claim.

A difference counts when it is larger than three of its standard errors; those of a curve's steps are paired.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence

import pandas as pd

from fedpapers.reporting.published import CSR_SHARE, LEAST_LATENCY, MOST_LABEL_PRIVACY
from fedpapers.reporting.relay_study import with_error
from fedpapers.reporting.verdicts import Outcome, Verdict, holds, throughout, together

_SURE = 3  # standard errors beyond which a difference of means over layouts counts

_SHARE_OFF = 0.02
_COVERED = 0.99

Cases = Mapping[str, Outcome]


def relay_verdicts(
    latency: pd.DataFrame,
    arrivals: pd.DataFrame,
    sample_privacy: pd.DataFrame,
    payloads: pd.DataFrame,
    deadlines: Mapping[str, int],
) -> list[Verdict]:
    """The verdicts that the tables of the study decide.

    Args:
        latency: Latency over ρ, M and l.
        arrivals: Arrivals over M.
        sample_privacy: Sample privacy over ρ and over the deadlines.
        payloads: Bits of an image.
        deadlines: Of `tight` and `loose`: τ in slots.
    """
    tight = arrivals[arrivals["deadline"] == deadlines["tight"]]
    loose = arrivals[arrivals["deadline"] == deadlines["loose"]]
    return [
        *_latency_verdicts(latency, payloads),
        *_label_privacy_verdicts(tight, loose),
        *_seed_verdicts(tight, loose),
        *_sample_privacy_verdicts(sample_privacy),
        csr_share(payloads),
    ]


# Rules


def sign(difference: float, error: float) -> int:
    """1 or -1 for a difference that counts, 0 for one that may be chance or is not there."""
    if math.isnan(difference) or abs(difference) <= _SURE * error:
        return 0
    return 1 if difference > 0 else -1


def all_are(signs: Iterable[int], wanted: int) -> Outcome:
    """Whether all differences have the wanted sign; not decided while one may be chance, or none is there."""
    return throughout(holds(one == wanted if one else None) for one in signs)


def turns_at(curve: pd.DataFrame, place: float, wanted: int, axis: str = "max_hops") -> Outcome:
    """Whether a curve's steps have the sign -`wanted` up to a place and `wanted` after it: 1 for a minimum there."""
    if place not in set(curve[axis]):
        return "not decided"
    after = curve.loc[curve["step"].notna(), axis] > place
    turned = (one if late else -one for one, late in zip(_signs(curve, "step"), after, strict=True))
    return all_are(turned, wanted)


def steps_are(curve: pd.DataFrame, wanted: int) -> Outcome:
    """Whether a curve only rises (1) or only falls (-1)."""
    return all_are(_signs(curve, "step"), wanted)


def bends_are(curve: pd.DataFrame, wanted: int) -> Outcome:
    """Whether a curve is convex (1) or concave (-1)."""
    return all_are(_signs(curve, "bend"), wanted)


# Claims


def _latency_verdicts(latency: pd.DataFrame, payloads: pd.DataFrame) -> list[Verdict]:
    reference = latency[latency["quantity"] == "reference"]
    hops, rates, dummies = (reference[reference["axis"] == axis] for axis in ("max_hops", "rho", "dummies"))
    minima = {
        f"N = {devices}": turns_at(_of(hops, devices), best, 1) for devices, best in LEAST_LATENCY.items()
    }  # fmt: skip
    fluctuates = {name: holds(1 in _signs(own, "step")) for name, own in _by_devices(rates).items()}
    csr = payloads[(payloads["form"] == "csr") & payloads["grown"].notna()]
    grown = ", ".join(f"{share:.1%}" for share in csr["grown"])
    return [
        _verdict(
            "The reference device's latency is least at M = 2 for N = 10, and at M = 3 for N = 25 (Fig. 3b).",
            minima, _values(hops, "s") + "; steps " + _differences(hops, "step"),
        ),
        _verdict(
            "It is convex in M (Fig. 3b).", _cases(hops, lambda own: bends_are(own, 1)),
            "second differences in s: " + _differences(hops, "bend"),
        ),
        _more_devices(hops, "It is larger for N = 25 than for N = 10, at each M (Fig. 3b)."),
        _because_of_samples(latency[latency["axis"] == "max_hops"]),
        _verdict(
            "It falls with the compression rate ρ (Fig. 3a).", _cases(rates, lambda own: steps_are(own, -1)),
            _values(rates, "s", "rho"),
        ),
        _verdict(
            "It fluctuates over ρ, as a larger ρ need not give a smaller CSR form (Fig. 3a).", fluctuates,
            "means, same layouts at each ρ: what fluctuates beside them is chance; steps in s: "
            + _differences(rates, "step", 4)
            + f"; single images that are larger than at the ρ before: {grown or 'not available'}",
        ),
        _verdict(
            "It rises with the number of dummy labels (Fig. 3c).", _cases(dummies, lambda own: steps_are(own, 1)),
            _values(dummies, "s", "dummies"),
        ),
    ]  # fmt: skip


def _more_devices(hops: pd.DataFrame, claim: str) -> Verdict:
    few, many = LEAST_LATENCY
    gaps = _gaps(_of(hops, few), _of(hops, many))
    evidence = f"N = {many} minus N = {few} in s: " + ", ".join(
        f"M = {m}: {_signed(gap, error)}" for m, (gap, error) in gaps.items()
    )
    return Verdict(claim, all_are([sign(*gap) for gap in gaps.values()], 1), evidence)


def _because_of_samples(latency: pd.DataFrame) -> Verdict:
    few, many = LEAST_LATENCY
    alone = latency[latency["quantity"] == "reference_alone"]
    samples = latency[latency["quantity"] == "samples"]
    found = _more_devices(alone, "N = 25 is slower because its routes gather more samples.")
    return Verdict(
        found.claim, found.outcome,
        f"where routes do not share the band, {found.evidence}; samples at the end of a route: "
        + _values(samples[samples["devices"].isin([few, many])], ""),
    )  # fmt: skip


def _label_privacy_verdicts(tight: pd.DataFrame, loose: pd.DataFrame) -> list[Verdict]:
    early, late, bare = (
        curves[curves["quantity"] == quantity]
        for curves, quantity in (
            (tight, "label_privacy"), (loose, "label_privacy"), (tight, "label_privacy_without_floor"),
        )
    )  # fmt: skip
    peak = MOST_LABEL_PRIVACY
    return [
        _verdict(
            f"Under the tight deadline label privacy is largest at M = {peak} (Fig. 6c).",
            _cases(early, lambda own: turns_at(own, peak, -1)),
            f"{_values(early, '')}; steps {_differences(early, 'step', 5)}; without the floor of one transmission: "
            f"steps {_differences(bare, 'step', 5)}",
        ),
        _verdict(
            "Under the tight deadline label privacy is concave in M (Fig. 6c).",
            _cases(early, lambda own: bends_are(own, -1)), "second differences: " + _differences(early, "bend", 5),
        ),
        _verdict(
            "Under the loose deadline label privacy rises with M (Fig. 6c).",
            _cases(late, lambda own: steps_are(own, 1)),
            f"{_values(late, '')}; steps {_differences(late, 'step', 5)}",
        ),
    ]  # fmt: skip


def _seed_verdicts(tight: pd.DataFrame, loose: pd.DataFrame) -> list[Verdict]:
    early, late = (curves[curves["quantity"] == "seeds"] for curves in (tight, loose))
    covered = loose[loose["quantity"] == "coverage"]
    peaks = {f"N = {devices}": turns_at(_of(early, devices), best, -1) for devices, best in LEAST_LATENCY.items()}
    level = {f"number of seeds, {name}": holds(not any(_signs(own, "step"))) for name, own in _by_devices(late).items()}
    cover = {
        f"target label covered, {name}": holds(bool((own["mean"] >= _COVERED).all()))
        for name, own in _by_devices(covered).items()
    }
    return [
        _verdict(
            "Under the tight deadline most seeds arrive at the M of the least latency (Fig. 6).", peaks,
            f"{_values(early, '', digits=1)}; steps {_differences(early, 'step')}",
        ),
        _verdict(
            "Under the loose deadline the server gets its seeds whatever M is (Fig. 6).", level | cover,
            f"seeds {_values(late, '', digits=1)}; coverage {_values(covered, '')} (covered: at least {_COVERED})",
        ),
    ]  # fmt: skip


def _sample_privacy_verdicts(curves: pd.DataFrame) -> list[Verdict]:
    over_rho, over_deadline = (curves[curves["axis"] == axis] for axis in ("rho", "deadline"))
    rises: dict[str, Outcome] = {}
    for (quantity, devices, slots), own in over_rho.groupby(["quantity", "devices", "deadline"], sort=False):
        rises[f"{_spoken(quantity)}, N = {devices}, τ = {slots}"] = steps_are(own, 1)
    steps = over_deadline[over_deadline["step"].notna()]
    tighter = {
        f"{_spoken(quantity)}, N = {devices}": together(all_are([one], 1) for one in _signs(own, "step"))
        for (quantity, devices), own in steps.groupby(["quantity", "devices"], sort=False)
    }
    ends = over_rho.groupby(["quantity", "devices", "deadline"], sort=False)["mean"].agg(["first", "last"])
    ranges = ", ".join(
        f"{_spoken(quantity)}, N = {devices}, τ = {slots}: {first:.3f} to {last:.3f}"
        for (quantity, devices, slots), first, last in zip(ends.index, ends["first"], ends["last"], strict=True)
    )
    gains = "; ".join(
        f"{_spoken(quantity)}, N = {devices}: "
        + ", ".join(_signed(step, error, 4) for step, error in _pairs(own, "step"))
        for (quantity, devices), own in steps.groupby(["quantity", "devices"], sort=False)
    )
    return [
        _verdict("Sample privacy rises with ρ (Fig. 5).", rises, f"from the smallest to the largest ρ: {ranges}"),
        _verdict("A tighter deadline raises sample privacy (Fig. 5).", tighter, f"tight minus loose, by ρ: {gains}"),
    ]


def csr_share(payloads: pd.DataFrame) -> Verdict:
    """Whether a CSR sample has a fifth of the bits of an original one of 8 bits a pixel."""
    share = payloads.assign(share=payloads["mean_bits"] / payloads["dense_bits"])
    shares = {str(form): own.sort_values("rho") for form, own in share.groupby("form")}
    fits = bool((abs(shares["csr"]["share"] - CSR_SHARE) <= _SHARE_OFF).any())
    first, last = (f"{shares['csr']['rho'].iloc[place]:g}" for place in (0, -1))
    ends = {form: f"{own['share'].iloc[0]:.3f} to {own['share'].iloc[-1]:.3f}" for form, own in shares.items()}
    return Verdict(
        "The CSR form of a sample has 1/5 of the bits of the original, at 8 bits a pixel.", holds(fits),
        f"ρ = {first} to {last}: CSR {ends['csr']} of the original; its values without the indices {ends['values']}; "
        f"CSR with pixels of 32 bits {ends['csr_wide']}. Holds within {_SHARE_OFF} of 1/5 at some ρ",
    )  # fmt: skip


# Numbers as text


def _verdict(claim: str, cases: Cases, numbers: str) -> Verdict:
    """The verdict on several cases; those that differ from it are named."""
    outcome = together(cases.values())
    apart = "; ".join(f"{name}: {case}" for name, case in cases.items() if case != outcome)
    return Verdict(claim, outcome, f"{apart}. {numbers}" if apart else numbers)


def _cases(curves: pd.DataFrame, rule: Callable[[pd.DataFrame], Outcome]) -> dict[str, Outcome]:
    return {name: rule(own) for name, own in _by_devices(curves).items()} or {"": "not decided"}


def _by_devices(curves: pd.DataFrame) -> dict[str, pd.DataFrame]:
    return {f"N = {devices}": own for devices, own in curves.groupby("devices", sort=False)}


def _of(curves: pd.DataFrame, devices: int) -> pd.DataFrame:
    return curves[curves["devices"] == devices]


def _signs(curve: pd.DataFrame, kind: str) -> list[int]:
    return [sign(value, error) for value, error in _pairs(curve, kind)]


def _gaps(few: pd.DataFrame, many: pd.DataFrame) -> dict[int, tuple[float, float]]:
    """M -> difference of two curves of different layouts, and its error."""
    both = few.merge(many, on="max_hops", suffixes=("_few", "_many"))
    gaps = both["mean_many"] - both["mean_few"]
    errors = (both["standard_error_few"] ** 2 + both["standard_error_many"] ** 2) ** 0.5
    return {int(m): (gap, error) for m, gap, error in zip(both["max_hops"], gaps, errors, strict=True)}


def _values(curves: pd.DataFrame, unit: str, axis: str = "max_hops", digits: int = 3) -> str:
    """The means of each N over an axis."""
    symbol = {"max_hops": "M", "rho": "ρ", "dummies": "l"}[axis]
    return "; ".join(
        f"{name}, {symbol} = {_places(own[axis])}: "
        + ", ".join(f"{mean:.{digits}f}" for mean in own["mean"]) + (f" {unit}" if unit else "")
        for name, own in _by_devices(curves).items()
    )  # fmt: skip


def _places(places: Sequence[float] | pd.Series[float]) -> str:
    return f"{min(places):g} to {max(places):g}"


def _differences(curves: pd.DataFrame, kind: str, digits: int = 3) -> str:
    """The steps or bends of each N, with their paired errors."""
    return "; ".join(
        f"{name}: " + ", ".join(_signed(value, error, digits) for value, error in _pairs(own, kind))
        for name, own in _by_devices(curves).items()
    )


def _pairs(own: pd.DataFrame, kind: str) -> list[tuple[float, float]]:
    there = own[own[kind].notna()]
    return list(zip(there[kind], there[f"{kind}_error"], strict=True))


def _signed(value: float, error: float, digits: int = 3) -> str:
    return ("+" if value > 0 else "") + with_error(value, error, digits)


def _spoken(quantity: object) -> str:
    return str(quantity).replace("_", " ")
