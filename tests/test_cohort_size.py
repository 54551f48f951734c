"""A likelihood-ratio test on the size of the cohort: the subsampled Gaussian's ε does not hold for noise at clients."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from scipy import stats

from fedpapers.privacy.accounting import epsilon
from fedpapers.privacy.cohort_size import cohort_size_epsilon
from fedpapers.privacy.mechanism import Mechanism
from fedpapers.privacy.releases import sampled_gaussian
from fedpapers.randomness import Purpose, generator

DELTA = 1e-5
CLIENTS, COHORT, ROUNDS, SIGMA = 178, 3, 1000, 9.69  # DPFedMTL's setting on FEMNIST
CLIPPING_NORM = 0.5
RATE = COHORT / CLIENTS


def test_cohort_size_forces_more_than_the_subsampled_gaussian_says():
    claimed = epsilon(sampled_gaussian(SIGMA, RATE, ROUNDS), DELTA, "pld").value
    forced = cohort_size_epsilon(CLIENTS, RATE, ROUNDS, DELTA)
    assert claimed == pytest.approx(0.179, abs=1e-3)
    assert forced == pytest.approx(1.19, abs=5e-3)


def test_forced_epsilon_follows_from_two_probabilities():
    """An event, written out: its probabilities by a sum over the binomial's terms."""
    threshold = 3200
    with_client, without = CLIENTS * ROUNDS, (CLIENTS - 1) * ROUNDS
    sizes = np.arange(threshold, threshold + 2000)
    likely = stats.binom.pmf(sizes, with_client, RATE).sum()
    unlikely = stats.binom.pmf(sizes, without, RATE).sum()
    assert (likely, unlikely) == pytest.approx((1.38e-4, 3.88e-5), rel=5e-3)  # as docs/noise-placement.md has them
    assert likely > math.exp(0.18) * unlikely + DELTA  # already breaks what is claimed
    best = cohort_size_epsilon(CLIENTS, RATE, ROUNDS, DELTA)
    assert best == pytest.approx(math.log((likely - DELTA) / unlikely), rel=1e-6)


def read_cohort_size(release: NDArray[np.floating]) -> int:
    """How many clients added noise to a sum, from its mean square; their updates are taken for small.

    The estimate errs by J·√(2/P), and by less than ‖sum of the updates‖²/(P·σ²·C²) ≤ (J/σ)²/P.
    """
    return round(float(np.mean(np.square(release, dtype=np.float64))) / (SIGMA * CLIPPING_NORM) ** 2)


@pytest.mark.parametrize("noise", ["client", "central"])
def test_size_is_read_from_the_release_only_if_clients_add_the_noise(noise):
    """The engine's own mechanism, P = 100,000 coordinates, each client's update as long as clipping lets it be."""
    size, mechanism = 100_000, Mechanism(RATE, CLIPPING_NORM, SIGMA, noise=noise)
    update = torch.full((size,), CLIPPING_NORM / math.sqrt(size))
    right = 0
    for round in range(40):
        drawn = int(mechanism.sample(CLIENTS, generator(0, Purpose.COHORT, round=round)).sum())
        sources = range(1, drawn + 1) if noise == "client" else range(1)
        draws = [generator(0, Purpose.NOISE, round=round, client=n) for n in sources]
        release = mechanism.add_noise(drawn * update, draws)
        right += read_cohort_size(release.numpy()) == drawn
    assert right == 40 if noise == "client" else right < 20


def test_attack_tells_with_from_without():
    """Simulated runs of both worlds: the sum of the sizes has the error rates that the bound is made from."""
    runs, draw = 4000, generator(1, Purpose.AUDIT)
    absent = draw.binomial(CLIENTS - 1, RATE, size=(runs, ROUNDS)).sum(1)
    present = draw.binomial(CLIENTS, RATE, size=(runs, ROUNDS)).sum(1)
    for threshold in (2950, 3000, 3050):
        for seen, trials in ((absent, (CLIENTS - 1) * ROUNDS), (present, CLIENTS * ROUNDS)):
            exact = stats.binom.sf(threshold - 1, trials, RATE)
            assert np.mean(seen >= threshold) == pytest.approx(exact, abs=4 * math.sqrt(exact * (1 - exact) / runs))


def test_more_rounds_tell_more_and_more_clients_less():
    values = [cohort_size_epsilon(CLIENTS, RATE, rounds, DELTA) for rounds in (1, 100, 1000, 5000)]
    assert values == sorted(values)
    assert cohort_size_epsilon(9343, 20 / 9343, 400, DELTA) < 0.05
    assert cohort_size_epsilon(10**6, 1e-6, 1, 0.5) == 0
