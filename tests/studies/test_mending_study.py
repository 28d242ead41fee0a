"""What the study of mending strikes films with, and what its inspectors never met."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from studies.feature_states import counts
from studies.mending import TREATED, TREATMENTS, TWICE, study
from studies.mending_cells import (
    ALONE,
    BLANK,
    GROUPS,
    LENGTHS,
    STRENGTHS,
    UNSEEN,
    length_cell,
    plan_of,
    without,
)
from studies.mending_unseen import bank_without

from jostle.corruptions.engine.spec import Spec
from jostle.evaluation.recipes.thumos14_c import CORRUPTIONS
from jostle.mending.descriptor_layout import CELLS, CHANNELS
from jostle.training.descriptor_bank import CorruptedFilm, FilmBank, picture_corruptions

KINDS = ("thumos14-c/black_frame:2", "thumos14-c-i3d/black_frame:1", "thumos14-c/mix_spatial:1", "imagenet-c/fog:3")


def test_no_two_cells_have_the_same_name() -> None:
    names = [cell.name for cells in GROUPS.values() for cell in cells]
    assert len(names) == len(set(names))


def test_every_length_is_a_cell_of_some_group() -> None:
    names = {cell.name for cells in GROUPS.values() for cell in cells}
    assert {length_cell(kind, percent) for kind in CORRUPTIONS for percent in LENGTHS} <= names


def test_strengths_are_in_no_table_that_the_inspector_learned_from() -> None:
    known: dict[str, set[object]] = {}
    for name in picture_corruptions():
        entry = Spec.parse(f"{name}:1").entry
        known.setdefault(entry.corruption, set()).update(entry.values)
    for cell in GROUPS["strengths"]:
        (spec,) = cell.specs
        assert spec.value not in known[spec.entry.corruption]
    assert len(GROUPS["strengths"]) == 3 * len(STRENGTHS) + 3


def test_a_bank_without_a_kind_keeps_the_others() -> None:
    seen = np.zeros((4, CHANNELS, CELLS, CELLS), np.uint8)
    bank = FilmBank.of([CorruptedFilm("film", "drawn", seen, tuple((kind, 0, seen[:2]) for kind in KINDS))])
    (film,) = bank_without(bank, "black_frame").films
    assert [strike.kind for strike in film.spans] == ["imagenet-c/fog:3"]
    (film,) = bank_without(bank, "occlusion").films
    assert [strike.kind for strike in film.spans] == [KINDS[0], KINDS[1], KINDS[3]]


def test_what_is_found_is_counted() -> None:
    found, struck = np.array([1, 1, 0, 0, 1], np.bool_), np.array([1, 1, 1, 0, 0], np.bool_)
    assert counts(found, struck) == [2, 3, 1, 2]


@pytest.mark.parametrize("group", sorted(GROUPS))
def test_robust_detectors_are_measured_where_clean_ones_are_compared_with_them(group: str) -> None:
    treatments = {run.treatment for run in study(group)}
    assert treatments == (set(TREATMENTS) if group in TREATED else {"clean"})


@pytest.mark.parametrize("group", sorted(GROUPS))
def test_the_second_extractor_is_measured_where_the_page_compares_the_two(group: str) -> None:
    networks = {run.network for run in study(group)}
    assert networks == ({0, 1} if group in TWICE else {0})


def test_one_kind_of_those_never_met_can_be_asked_for(tmp_path: Path) -> None:
    plan = plan_of(UNSEEN, tmp_path, [BLANK])
    assert [way.name for way in plan] == ["known", "with all", without(BLANK), without(BLANK) + ALONE]
    assert {len(way.cells) for way in plan} == {3}
    for group in GROUPS:
        asked = [cell.name for cell in plan_of(group, tmp_path, [BLANK])[0].cells]
        assert asked == [cell.name for cell in GROUPS[group] if group != "lengths" or f"/{BLANK}:" in cell.name]
    assert all(plan_of(group, tmp_path)[0].cells == GROUPS[group] for group in GROUPS)
