"""The mending study: its cells of corruptions, and the kinds that its inspectors were not trained on."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from studies.feature_states import counts, find_in_states
from studies.mending import (
    ALONE,
    BLANK,
    DETECTORS,
    GROUPS,
    LENGTHS,
    SETTINGS,
    STRENGTHS,
    TREATMENTS,
    UNSEEN,
    length_cell,
    plan_of,
    study,
    without,
)
from studies.mending_unseen import bank_without

from jostle.corruptions.engine.spec import Spec
from jostle.evaluation.recipes.thumos14_c import CORRUPTIONS
from jostle.mending.descriptor_layout import CELLS, CHANNELS
from jostle.training.descriptor_bank import CorruptedFilm, FilmBank, picture_corruptions

KINDS = ("thumos14-c/black_frame:2", "thumos14-c-i3d/black_frame:1", "thumos14-c/mix_spatial:1", "imagenet-c/fog:3")


def test_cell_names_are_unique() -> None:
    names = [cell.name for cells in GROUPS.values() for cell in cells]
    assert len(names) == len(set(names))


def test_every_length_is_a_cell_of_some_group() -> None:
    names = {cell.name for cells in GROUPS.values() for cell in cells}
    assert {length_cell(kind, percent) for kind in CORRUPTIONS for percent in LENGTHS} <= names


def test_strengths_differ_from_those_in_the_training_of_the_inspector() -> None:
    trained_values: dict[str, set[object]] = {}
    for name in picture_corruptions():
        entry = Spec.parse(f"{name}:1").entry
        trained_values.setdefault(entry.corruption, set()).update(entry.values)
    for cell in GROUPS["strengths"]:
        (spec,) = cell.specs
        assert spec.value not in trained_values[spec.entry.corruption]
    assert len(GROUPS["strengths"]) == 3 * len(STRENGTHS) + 3


def test_a_bank_without_a_kind_keeps_the_others() -> None:
    descriptors = np.zeros((4, CHANNELS, CELLS, CELLS), np.uint8)
    bank = FilmBank.of(
        [CorruptedFilm("film", "drawn", descriptors, tuple((kind, 0, descriptors[:2]) for kind in KINDS))]
    )
    (film,) = bank_without(bank, "black_frame").films
    assert [span.kind for span in film.spans] == ["imagenet-c/fog:3"]
    (film,) = bank_without(bank, "occlusion").films
    assert [span.kind for span in film.spans] == [KINDS[0], KINDS[1], KINDS[3]]


def test_true_and_false_positives_are_counted() -> None:
    detected, corrupted = np.array([1, 1, 0, 0, 1], np.bool_), np.array([1, 1, 1, 0, 0], np.bool_)
    assert counts(detected, corrupted) == [2, 3, 1, 2]


@pytest.mark.parametrize("group", sorted(GROUPS))
def test_robust_detectors_are_measured_where_they_are_compared(group: str) -> None:
    treatments = {run.treatment for run in study(group)}
    assert treatments == (set(TREATMENTS) if group in SETTINGS["treated"] else {"clean"})


@pytest.mark.parametrize("group", sorted(GROUPS))
def test_the_second_extractor_is_measured_where_it_is_compared(group: str) -> None:
    networks = {run.network for run in study(group)}
    assert networks == ({0, 1} if group in SETTINGS["twice"] else {0})


def test_a_plan_can_be_limited_to_one_unseen_kind(tmp_path: Path) -> None:
    plan = plan_of(UNSEEN, tmp_path, [BLANK])
    assert [way.name for way in plan] == ["known", "with all", without(BLANK), without(BLANK) + ALONE]
    assert {len(way.cells) for way in plan} == {3}
    for group in GROUPS:
        names = [cell.name for cell in plan_of(group, tmp_path, [BLANK])[0].cells]
        assert names == [cell.name for cell in GROUPS[group] if group != "lengths" or f"/{BLANK}:" in cell.name]
    assert all(plan_of(group, tmp_path)[0].cells == GROUPS[group] for group in GROUPS)


@pytest.mark.parametrize("name", DETECTORS)
def test_batched_detection_equals_single_detection(name: str) -> None:
    from jostle.models.checkpoints import read_note
    from jostle.models.detection.detector import make_detector
    from jostle.models.weights.packaged import trained_weights

    weights = trained_weights(f"{name}_puppets", "clean")
    classes: list[str] = read_note(weights, "classes", [])
    detector = make_detector(f"{name}_puppets", weights=weights, class_names=tuple(classes))
    rows = np.random.default_rng(0).normal(0, 1, (3, 300, detector.config.input_dim)).astype(np.float32)
    facts = {"fps": 24.0, "duration": 51.0}
    together = find_in_states(detector, list(rows), **facts)
    for segments, state in zip(together, rows, strict=True):
        expected = detector.detect(state, **facts)
        assert len(expected.start)
        assert segments.classes == expected.classes
        best = 50  # equal scores may swap, and the lowest ones may differ
        np.testing.assert_allclose(segments.score[:best], expected.score[:best], rtol=1e-3)
        np.testing.assert_allclose(np.sort(segments.start[:best]), np.sort(expected.start[:best]), atol=1e-2)
