"""Generated stand-ins: repeatable, called generated, and with writers who differ; and the sheets that show them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from data_folders import refused, snapshot
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression

from fedpapers.data import glyphs
from fedpapers.data.faces import draw_smiles, prepare_celeba_like
from fedpapers.data.format import Dataset, verify_dataset
from fedpapers.data.glyphs import draw_characters, draw_hand, draw_labels, prepare_femnist_like
from fedpapers.reporting.contact_sheet import plot_contact_sheet


@pytest.fixture(scope="module")
def characters(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    folder = tmp_path_factory.mktemp("data") / "femnist"
    prepare_femnist_like(folder, writers=100, scale=0.3, seed=1)
    return verify_dataset(folder)


@pytest.fixture(scope="module")
def portraits(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    folder = tmp_path_factory.mktemp("data") / "celeba"
    prepare_celeba_like(folder, identities=50, scale=1, seed=1)
    return verify_dataset(folder)


def test_they_are_called_generated(characters: Dataset, portraits: Dataset) -> None:
    for data, name in ((characters, "FEMNIST-like (generated)"), (portraits, "CelebA-like (generated)")):
        assert data.about["name"] == name and data.about["generated"] is True and data.about["source"] == "embedded"
    assert characters.images.shape[1:] == (28, 28) and portraits.images.shape[1:] == (84, 84, 3)
    assert len(characters.about["classes"]) == 62 and portraits.about["classes"] == ["not smiling", "smiling"]
    assert len(characters.writer_names) == 100 and list(characters.writer_names) == sorted(characters.writer_names)


def test_one_seed_repeats_and_two_differ(tmp_path: Path) -> None:
    for name, prepare in (
        ("femnist", lambda out, seed: prepare_femnist_like(out, writers=4, scale=0.1, seed=seed)),
        ("celeba", lambda out, seed: prepare_celeba_like(out, identities=4, scale=0.3, seed=seed)),
    ):
        for run, seed in enumerate((0, 0, 1)):
            prepare(tmp_path / f"{name}{run}", seed)
        first, again, other = (snapshot(tmp_path / f"{name}{run}") for run in range(3))
        assert first is not None and other is not None
        assert first == again
        assert first["images.npy"][-100_000:] != other["images.npy"][-100_000:]


def test_a_writer_does_not_depend_on_how_many_others_there_are(tmp_path: Path, characters: Dataset) -> None:
    prepare_femnist_like(tmp_path, writers=3, scale=0.3, seed=1)
    few = verify_dataset(tmp_path)
    assert np.array_equal(few.images, characters.images[: len(few)])
    assert np.array_equal(few.labels, characters.labels[: len(few)])


def test_numbers_of_samples_are_those_of_leaf() -> None:
    written = np.array([len(draw_labels(0, writer, 1)) for writer in range(3550)])
    assert abs(written.mean() - 226.83) < 5 and abs(written.std() - 88.94) < 5 and written.min() >= 2
    shown = np.array([len(draw_smiles(0, identity, 1)) for identity in range(3000)])
    assert abs(shown.mean() - 21.44) < 0.5 and abs(shown.std() - 7.63) < 0.5
    assert shown.min() >= 5 and shown.max() <= 35
    few = np.array([len(draw_labels(0, writer, 0.1)) for writer in range(1000)])
    assert abs(few.mean() - 22.7) < 1 and few.min() >= 2
    assert len(draw_labels(0, 0, 1e-9)) == len(draw_smiles(0, 0, 1e-9)) == 2


def test_labels_are_skewed_and_complete() -> None:
    counts = np.array([np.bincount(draw_labels(0, writer, 1), minlength=62) for writer in range(300)])
    common = counts.sum(axis=0) / counts.sum()
    assert common.min() > 0 and 0.45 < common[:10].sum() < 0.55
    shares = counts / counts.sum(axis=1, keepdims=True)
    distance = np.abs(shares - common).sum(axis=1).mean() / 2
    samples = [np.random.default_rng(k).multinomial(n, common) / n for k, n in enumerate(counts.sum(axis=1))]
    by_chance = np.mean([np.abs(sample - common).sum() / 2 for sample in samples])
    assert distance > 1.5 * by_chance
    smiles = [draw_smiles(0, identity, 1) for identity in range(500)]
    assert 0.45 < np.concatenate(smiles).mean() < 0.55


def nearest_share(
    images: NDArray[np.uint8], target: NDArray[np.int64], held_out: NDArray[np.bool_], allowed: NDArray[np.bool_]
) -> float:
    """How often the target of the nearest of the other images, among those allowed, is the held-out one's own."""
    flat = images.reshape(len(images), -1).astype(np.float32)
    flat /= np.linalg.norm(flat, axis=1, keepdims=True) + 1e-6
    near = np.where(allowed, flat[held_out] @ flat[~held_out].T, -1).argmax(axis=1)
    return float((target[~held_out][near] == target[held_out]).mean())


def test_a_hand_is_recognised_by_its_characters(characters: Dataset) -> None:
    assert characters.writers is not None
    held_out = np.random.default_rng(0).random(len(characters)) < 0.1
    everything = np.ones((held_out.sum(), (~held_out).sum()), dtype=bool)
    # Chance is 1 %.
    assert nearest_share(characters.images, characters.writers, held_out, everything) > 0.3
    # Characters are legible in another's hand, and more so in their writer's own.
    own = characters.writers[held_out][:, None] == characters.writers[~held_out][None]
    others = nearest_share(characters.images, characters.labels, held_out, ~own)
    assert 0.5 < others < nearest_share(characters.images, characters.labels, held_out, everything)


def test_ink_is_bright_on_a_ground_of_zero(characters: Dataset) -> None:
    assert np.median(characters.images) == 0 and 20 < characters.images.mean() < 80
    assert (characters.images.reshape(len(characters), -1).max(axis=1) > 90).mean() > 0.99


def test_every_glyph_is_drawn_in_every_font() -> None:
    labels = np.arange(62)
    for font in range(len(glyphs._FONTS)):
        cells = glyphs._glyphs(font)
        assert cells.shape == (62, 48, 48) and cells.reshape(62, -1).max(axis=1).min() > 0.5
        # All different, and none cut at the edge.
        assert len({cell.tobytes() for cell in cells}) == 62
        assert max(cells[:, 0].max(), cells[:, -1].max(), cells[:, :, 0].max(), cells[:, :, -1].max()) < 0.02
    drawn = draw_characters(draw_hand(0, 0), labels, np.random.default_rng(0))
    assert drawn.shape == (62, 28, 28) and drawn.dtype == np.uint8


def test_the_mouth_says_who_smiles(portraits: Dataset) -> None:
    """A linear classifier sees it in strangers' mouths and hardly elsewhere; a small network reaches 96 %."""
    assert portraits.writers is not None
    strangers = portraits.writers >= 35
    scores = []
    for rows in (slice(46, 72), slice(0, 46)):
        crop = portraits.images[:, rows, 22:62].mean(axis=3).reshape(len(portraits), -1)
        crop = (crop - crop.mean(axis=1, keepdims=True)) / crop.std(axis=1, keepdims=True)
        model = LogisticRegression(C=0.01, max_iter=300).fit(crop[~strangers], portraits.labels[~strangers])
        scores.append(model.score(crop[strangers], portraits.labels[strangers]))
    assert scores[0] > 0.65 and scores[0] > scores[1] + 0.08


def test_identities_are_recognised_by_their_faces(portraits: Dataset) -> None:
    assert portraits.writers is not None
    held_out = np.random.default_rng(0).random(len(portraits)) < 0.2
    everything = np.ones((held_out.sum(), (~held_out).sum()), dtype=bool)
    centre = portraits.images[:, 16:70, 22:62]
    assert nearest_share(centre, portraits.writers, held_out, everything) > 0.2  # chance is 2 %


def test_sizes_out_of_range(tmp_path: Path) -> None:
    for writers, scale, needle in ((0, 1, "writers is 0"), (1, 0, "scale is 0"), (1, float("nan"), "scale is nan")):
        refused(lambda w=writers, s=scale: prepare_femnist_like(tmp_path, writers=w, scale=s, seed=0), needle)
    refused(lambda: prepare_celeba_like(tmp_path, identities=0, scale=1, seed=0), "identities is 0")
    assert list(tmp_path.iterdir()) == []


def test_contact_sheets(characters: Dataset, portraits: Dataset) -> None:
    for data, each, width in ((characters, 1, 62 * 28), (portraits, 3, 6 * 84)):
        assert data.writers is not None
        figure = plot_contact_sheet(
            data.images,
            data.labels,
            data.writers,
            data.writer_names,
            data.about["classes"],
            data.about["name"],
            columns_per_class=each,
        )
        (axes,) = figure.axes
        assert axes.get_title() == f"{data.about['name']}: 10 of {len(data.writer_names)} clients"
        assert axes.images[0].get_array().shape[:2] == (10 * data.images.shape[1], width)  # type: ignore[union-attr]
