"""The algorithms, each a description that the one engine reads.

An algorithm says which groups train, which parameters a group shares, and by which mechanism a group releases its
sum. What follows is all that tells one algorithm from another.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from fedpapers.groups import Groups

Grouping = Literal["single", "each", "overlapping", "disjoint"]


@dataclass(frozen=True)
class Algorithm:
    """What tells one federated algorithm from another.

    Attributes:
        title: The name that tables and figures show.
        groupings: The ways in which it may group the clients; the first is the default. `single`: one group of
            all. `each`: a group for each client. `overlapping`: the structure as it is. `disjoint`: the structure
            with each worker in the first of its groups only.
        private_mechanism: Whether updates are clipped and noise is added; else sums are released as they are.
        personal_layers: Whether some layers stay private to each client.
        samples: Whether clients are sampled; else every client takes part in every round.
        releases: When a group's sum is released: after each round, or once an interval of S rounds.
        exchanges: Whether, within an interval, members of a group exchange models without clipping and noise; else
            each of them trains on alone until the release.
    """

    title: str
    groupings: tuple[Grouping, ...]
    private_mechanism: bool = False
    personal_layers: bool = False
    samples: bool = True
    releases: Literal["round", "interval"] = "round"
    exchanges: bool = False

    @property
    def mixes(self) -> bool:
        """Whether models pass between groups, so that the interval of inter-group epochs matters."""
        return "overlapping" in self.groupings


ALGORITHMS: Mapping[str, Algorithm] = {
    "local": Algorithm("Local", ("each",), samples=False),
    "fedavg": Algorithm("FedAvg", ("single",)),
    "dpfedavg": Algorithm("DPFedAvg", ("single",), private_mechanism=True),
    "fedmtl": Algorithm("FedMTL", ("single",), personal_layers=True),
    "dpfedmtl": Algorithm("DPFedMTL", ("single",), private_mechanism=True, personal_layers=True),
    "ogl": Algorithm("OGL", ("overlapping", "disjoint")),
    "dp-ogl": Algorithm("DP-OGL", ("overlapping", "disjoint"), private_mechanism=True),
    "dp-ogl-plus": Algorithm(
        "DP-OGL+", ("overlapping", "disjoint"), private_mechanism=True, releases="interval", exchanges=True
    ),
    "dp-ogl-local": Algorithm(
        "DP-OGL (local)", ("overlapping", "disjoint"), private_mechanism=True, releases="interval"
    ),
}


def training_groups(grouping: Grouping, structure: Groups) -> Groups:
    """The groups in which the clients of a structure train."""
    match grouping:
        case "single":
            return structure.merged()
        case "each":
            return structure.separated()
        case "disjoint":
            return structure.disjoint()
        case "overlapping":
            return structure
