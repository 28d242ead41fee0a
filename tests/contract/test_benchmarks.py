"""What every registered benchmark promises."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import jostle
from jostle.corruptions.engine.placement import parse_placement
from jostle.datasets.dataset import datasets
from jostle.evaluation.recipes.recipe import CLEAN, Recipe, benchmarks
from jostle.evaluation.recipes.selection import select_cells

CONTRACT = {  # name: cells that count
    "puppets-c": 15,
    "puppets-p": 48,
    "puppets-frames": 0,
    "puppets-boxes": 0,
    "thumos14-c": 15,
    "activitynet-c": 15,
    "multithumos-c": 15,
    "kinetics-c": 60,
    "ssv2-c": 60,
    "ucf101-p": 90,
    "hmdb51-p": 90,
    "kinetics400-p": 90,
    "ssv2-p": 90,
    "imagenet-vid-robust": 0,
    "imagenet-vid-robust-boxes": 0,
    "ytbb-robust": 0,
    "mvbench-c": 63,
    "video-mme-c": 63,
    "next-qa-c": 63,
    "tempcompass-c": 63,
    "puppets-questions-c": 15,
    "charades-sta-c": 15,
    "qvhighlights-c": 15,
    "puppets-moments-c": 15,
}
BIBLIOGRAPHY = Path(__file__).resolve().parents[2] / "docs" / "references.bib"
ALL = pytest.mark.parametrize("recipe", benchmarks.values(), ids=lambda recipe: recipe.name)


def test_all_promised_ones_are_there() -> None:
    assert jostle.names("benchmarks") == sorted(CONTRACT)


@ALL
def test_every_name_it_uses_exists(recipe: Recipe) -> None:
    recipe.check()
    assert recipe.dataset in datasets
    datasets[recipe.dataset].check_subset(recipe.subset)
    assert datasets[recipe.dataset].task == recipe.task
    for cell in recipe.cells:
        for spec in cell.parsed:
            assert str(spec) in cell.name
            parse_placement(cell.placement or spec.placement)
    works = set(re.findall(r"@\w+\{(\w+),", BIBLIOGRAPHY.read_text()))
    assert recipe.cites
    assert set(recipe.cites) <= works


@ALL
def test_clean_is_first_and_the_cells_that_count_are_as_many_as_published(recipe: Recipe) -> None:
    assert recipe.cells[0].name == CLEAN
    assert [cell for cell in recipe.cells if not cell.specs] == [recipe.cells[0]]
    assert len(select_cells(recipe)) == 1 + CONTRACT[recipe.name]


@ALL
def test_it_says_what_it_is(recipe: Recipe) -> None:
    assert recipe.summary.endswith(".")
    assert recipe.notes
    assert all(note.endswith(".") for note in recipe.notes)
    assert recipe.measure
    assert recipe.title.lower().replace(" ", "-").endswith(recipe.name[-2:])


def test_the_sets_of_the_two_papers_are_as_large_as_printed() -> None:
    """Corrupted videos in all: published counts over cells that count."""
    printed = {"hmdb51-p": 137_610, "ucf101-p": 340_380, "kinetics400-p": 1_616_670, "ssv2-p": 2_229_930}
    for name, videos in printed.items():
        assert (benchmarks[name].items or 0) * CONTRACT[name] == videos


def test_groups_beside_the_benchmark() -> None:
    sizes = {"main": 15, "one-frame": 1, "position": 9, "mixes": 6, "extra": 12}
    for name in ("thumos14-c", "activitynet-c", "multithumos-c", "puppets-c"):
        found = benchmarks[name]
        for group, size in sizes.items():
            assert sum(cell.group == group for cell in found.cells) == size
        assert {cell.group for cell in found.cells if cell.counted} == {"main"}
