"""What one run is: its canonical description, from which its hash and its folder's name follow.

The number of rounds is no part of it: a run with more rounds is the same run, trained further.
"""

from __future__ import annotations

import math
from typing import Annotated, Literal

from pydantic import Field, model_validator

from fedpapers.experiment.described import Count, Described, NotBool, Positive, Rate, Seed
from fedpapers.experiment.partition_spec import PartitionRecipe
from fedpapers.federated.algorithms import ALGORITHMS, Algorithm


class Hyperparameters(Described):
    """What may vary from run to run; a key that does not apply to an algorithm has no value in its runs."""

    algorithm: Literal[
        "local", "fedavg", "dpfedavg", "fedmtl", "dpfedmtl", "ogl", "dp-ogl", "dp-ogl-plus", "dp-ogl-local"
    ] = Field(description="Which algorithm trains.")
    model: Literal["mnist-cnn", "linear", "femnist-cnn", "celeba-cnn", "celeba-cnn-small"] = Field(
        description="Which network."
    )
    local_steps: Count = Field(description="L: mini-batch steps of a client in a round.")
    batch_size: Count = Field(description="Samples of a mini-batch; a client that has fewer gives all of them.")
    learning_rate: Positive = Field(description="η of the clients' plain SGD.")
    sampling_rate: Rate | None = Field(
        None, description="q (π in DP-OGL): probability that a member of a group joins a round."
    )
    cohort_size: Positive | None = Field(
        None,
        description="K, in place of sampling_rate: q = K/M, where M, the number of clients, is read from the data.",
    )
    clipping_norm: Annotated[float, Field(gt=0, allow_inf_nan=True), NotBool] | None = Field(
        None, description="C: largest L2 norm of a client's update; `.inf` for none."
    )
    noise_multiplier: Annotated[float, Field(ge=0), NotBool] | None = Field(
        None, description="σ: the noise has standard deviation σ·C. 0 adds none: ε is infinite."
    )
    noise: Literal["central", "client"] | None = Field(
        None, description="Who adds the noise: the group's master to the sum, or each client to its update."
    )
    grouping: Literal["overlapping", "disjoint"] | None = Field(
        None, description="Train in the structure as it is, or with each worker in its first group only."
    )
    interval: Count | None = Field(
        None, description="S: rounds from one inter-group epoch, in which models pass between groups, to the next."
    )
    mixing: Literal["update", "model"] | None = Field(
        None, description="What a group's update is added to: its model, or the mean of its members' start models."
    )
    features: Literal["normalised"] | None = Field(
        None,
        description="What the last layer sees of each sample: features with mean 0 and a fixed length, so that "
        "no step depends on how large they are; left out: features as they are.",
    )
    private_layers: str | None = Field(
        None, min_length=1, description="Layers that never leave a client: names with commas between, or `last`."
    )
    personalise_epochs: int | None = Field(
        None,
        ge=0,
        strict=True,
        description="Epochs on a client's own training data in which it trains its private layers alone before it is "
        "tested. They stay with the client: neither the model nor ε knows of it.",
    )
    evaluate_every: Count = Field(description="Rounds from one evaluation to the next.")
    seed: Seed = Field(description="Seed of all of the run's draws, its partition's included.")

    @property
    def description(self) -> Algorithm:
        """The algorithm's description."""
        return ALGORITHMS[self.algorithm]

    @property
    def private_names(self) -> list[str]:
        """Names of the private layers."""
        return self.private_layers.replace(" ", "").split(",") if self.private_layers else []

    @property
    def release_every(self) -> int:
        """Rounds from one release to the next."""
        return (self.interval or 1) if self.description.releases == "interval" else 1

    @model_validator(mode="after")
    def _noise_is_finite(self) -> Hyperparameters:
        if self.noise_multiplier and self.clipping_norm is not None and math.isinf(self.clipping_norm):
            raise ValueError(
                f"clipping_norm is .inf with noise_multiplier {self.noise_multiplier:g}; expected a finite one, as the"
                " noise has standard deviation σ·C"
            )
        return self


def applicable(algorithm: str) -> dict[str, bool]:
    """For each hyper-parameter that not every algorithm has, whether this one has it (and then needs it)."""
    described = ALGORITHMS[algorithm]
    return {
        "sampling_rate": described.samples,
        "cohort_size": described.samples,
        "clipping_norm": described.private_mechanism,
        "noise_multiplier": described.private_mechanism,
        "noise": described.private_mechanism,
        "grouping": len(described.groupings) > 1,
        "interval": described.mixes,
        "mixing": described.mixes,
        "private_layers": described.personal_layers,
        "personalise_epochs": described.personal_layers,
    }


class Run(PartitionRecipe, Hyperparameters):
    """The canonical description of one run, all names resolved."""

    @property
    def recipe(self) -> PartitionRecipe:
        """What its partition depends on."""
        return PartitionRecipe(**{name: getattr(self, name) for name in PartitionRecipe.model_fields})
