"""One layout's routes, hops, latency and label privacy: what `fedpapers relay` answers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from fedpapers.errors import InputError
from fedpapers.relay.channel import SLOT_S, parse_fading
from fedpapers.relay.compression import mean_sample_bits
from fedpapers.relay.layouts import IntArray, Layouts
from fedpapers.relay.privacy import label_privacy
from fedpapers.relay.routes import find_routes
from fedpapers.relay.seeds import Seeds, labels_held
from fedpapers.relay.transmission import Relays, Transmission

_LARGEST = 1e9


@dataclass(frozen=True)
class Setting:
    """What is asked about a layout.

    Attributes:
        max_hops: M ≥ 1, the most hops of a route.
        cap: b ≥ 1, the most samples of one label on a route.
        sparsify: ρ in [0, 1); a sample has the mean CSR size at this rate.
        csr_bits_per_sample: Size of every sample without its label, in place of that; None for that.
        deadline: τ ≥ 0 in slots; None for none.
        slot: T_c > 0 in seconds.
        fading: `rayleigh`, `none` or `pattern:…` (`fedpapers.relay.channel.parse_fading`).
        seed: Of all draws.

    Raises:
        InputError: A value is out of its range.
    """

    max_hops: int
    cap: int = 4
    sparsify: float = 0.0
    csr_bits_per_sample: float | None = None
    deadline: float | None = None
    slot: float = SLOT_S
    fading: str = "rayleigh"
    seed: int = 0

    def __post_init__(self) -> None:
        _check("max-hops", self.max_hops, self.max_hops >= 1, "at least 1 hop")
        _check("cap", self.cap, self.cap >= 1, "at least 1 sample a label")
        _check("sparsify", self.sparsify, 0 <= self.sparsify < 1, "a share of at least 0 and below 1")
        _check("slot", self.slot, 0 < self.slot <= _LARGEST, f"seconds above 0, at most {_LARGEST:g}")
        _check("seed", self.seed, self.seed >= 0, "an integer of at least 0")
        if self.csr_bits_per_sample is not None:
            fits = 0 <= self.csr_bits_per_sample <= _LARGEST
            _check("csr-bits-per-sample", self.csr_bits_per_sample, fits, f"bits from 0 to {_LARGEST:g}")
        if self.deadline is not None:
            _check(
                "deadline",
                self.deadline,
                0 <= self.deadline < math.inf,
                "a finite number of slots of at least 0; leave it out for none",
            )
        parse_fading(self.fading)

    @property
    def sample_bits(self) -> float:
        """The size of every sample, without its label."""
        return mean_sample_bits(self.sparsify) if self.csr_bits_per_sample is None else self.csr_bits_per_sample


def relay_report(layout: Layouts, setting: Setting) -> dict[str, Any]:
    """What `fedpapers relay --json` prints; `docs/relay-model.md` says what each number means.

    Args:
        layout: One layout (L = 1).
        setting: What is asked.

    Raises:
        InputError: A hop needs more than 10⁸ successful slots.
    """
    routes = find_routes(layout.positions, setting.max_hops)
    fading = parse_fading(setting.fading)
    relays = Relays(layout, routes, Seeds(setting.cap), setting.sample_bits, fading, setting.seed, setting.slot)
    sent = relays.transmit()
    held = relays.collect(sent, setting.deadline)
    hops = _hops(relays, sent)
    return {
        "routes": [
            {
                "devices": routes.devices[t, : len(hops[t])].tolist(),
                "hops": hops[t],
                **_arrivals(held[t], layout.dummy_counts[0, routes.devices[t, 0]]),
                "latency_s": _finite(setting.slot * float(sent.slots[t].sum())),
                "expected_latency_s": setting.slot * float(sent.expected[t].sum()),
            }
            for t in range(len(hops))
        ],
        "system_latency_s": _finite(setting.slot * float(sent.slots.sum(axis=1).max())),
        "devices": _devices(layout),
        "setting": {**vars(setting), "sample_bits": setting.sample_bits},
    }


def _hops(relays: Relays, sent: Transmission) -> list[list[dict[str, Any]]]:
    """The hops of each route."""
    links = relays.links()
    columns = {
        "distance_m": relays.routes.distances,
        "mean_snr": links.mean_snr,
        "success_probability": links.success_probability,
        "slot_bits": links.slot_bits,
        "samples": sent.samples,
        "bits": sent.bits,
        "required_slots": sent.required,
        "expected_slots": sent.expected,
    }
    return [
        [
            {name: column[t, hop].item() for name, column in columns.items()}
            | {"used_slots": _whole(sent.slots[t, hop].item())}
            for hop in range(length)
        ]
        for t, length in enumerate(relays.routes.lengths.tolist())
    ]


def _arrivals(held: IntArray, dummies: int) -> dict[str, Any]:
    """What the server has from one route, of which it holds [10, w]."""
    labels = labels_held(held).nonzero()[0].tolist()
    return {
        "labels_arrived": labels,
        "samples_arrived": int((held >= 0).sum()),
        "label_privacy": float(label_privacy(len(labels), dummies)),
    }


def format_report(report: dict[str, Any]) -> str:
    """The text of a `relay_report` for people, without a line break at its end."""
    setting = report["setting"]
    deadline = setting["deadline"]
    lines = [
        f"{len(report['devices'])} devices on {len(report['routes'])} routes of at most {setting['max_hops']} hops; "
        f"cap {setting['cap']}, {setting['sample_bits']:g} bits a sample, slot {setting['slot']:g} s, "
        f"fading {setting['fading']}, " + ("no deadline" if deadline is None else f"deadline {deadline:g} slots")
    ]
    for route in report["routes"]:
        lines += ["", f"{' → '.join(map(str, route['devices']))} → server", _hop_table(route["hops"]), _outcome(route)]
    return "\n".join([*lines, "", f"system latency: {_seconds(report['system_latency_s'])}"])


def _hop_table(hops: list[dict[str, Any]]) -> str:
    titles = {
        "distance_m": "metres",
        "mean_snr": "mean SNR",
        "success_probability": "success",
        "samples": "samples",
        "bits": "bits",
        "slot_bits": "bits a slot",
        "required_slots": "slots needed",
        "expected_slots": "expected",
        "used_slots": "used",
    }
    rows = [list(titles.values()), *([_short(hop[key]) for key in titles] for hop in hops)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join("  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in rows)


def _outcome(route: dict[str, Any]) -> str:
    labels = ", ".join(map(str, route["labels_arrived"])) or "none"
    return (
        f"latency {_seconds(route['latency_s'])} (expected {_seconds(route['expected_latency_s'])}); "
        f"{route['samples_arrived']} samples arrived, labels {labels}; label privacy {route['label_privacy']:.4g}"
    )


def _seconds(value: float | str) -> str:
    return "inf" if isinstance(value, str) else f"{value:.4g} s"


def _short(value: float | str) -> str:
    return value if isinstance(value, str) else f"{value}" if isinstance(value, int) else f"{value:.5g}"


def _devices(layout: Layouts) -> list[dict[str, Any]]:
    places, targets, dummies = layout.positions[0].tolist(), layout.targets[0].tolist(), layout.dummies[0].tolist()
    return [
        {"x": x, "y": y, "target": target, "dummies": [label for label in own if label >= 0]}
        for (x, y), target, own in zip(places, targets, dummies, strict=True)
    ]


def _whole(slots: float) -> int | str:
    return int(slots) if math.isfinite(slots) else "inf"


def _finite(value: float) -> float | str:
    return value if math.isfinite(value) else "inf"


def _check(option: str, value: float, fits: bool, expected: str) -> None:
    if not fits:
        raise InputError(f"--{option} {value}: expected {expected}")
