"""Contract that every registered benchmark fulfils."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import jostle
from jostle.corruptions.engine.placement import parse_placement
from jostle.datasets.dataset import datasets
from jostle.evaluation.recipes.recipe import CLEAN, Recipe, benchmarks
from jostle.evaluation.recipes.selection import select_cells
from jostle.evaluation.tasks.validation import check_recipe

CONTRACT = {  # name: number of counted cells
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


def test_all_benchmarks_are_listed() -> None:
    assert jostle.names("benchmarks") == sorted(CONTRACT)


@ALL
def test_all_used_names_exist(recipe: Recipe) -> None:
    check_recipe(recipe)
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
def test_clean_is_first_and_counted_cells_match_the_publication(recipe: Recipe) -> None:
    assert recipe.cells[0].name == CLEAN
    assert [cell for cell in recipe.cells if not cell.specs] == [recipe.cells[0]]
    assert len(select_cells(recipe)) == 1 + CONTRACT[recipe.name]


@ALL
def test_texts_are_complete(recipe: Recipe) -> None:
    assert recipe.summary.endswith(".")
    assert recipe.notes
    assert all(note.endswith(".") for note in recipe.notes)
    assert recipe.measure
    assert recipe.title.lower().replace(" ", "-").endswith(recipe.name[-2:])


def test_data_set_sizes_match_the_papers() -> None:
    """Videos times counted cells equals the published number of corrupted videos."""
    printed = {"hmdb51-p": 137_610, "ucf101-p": 340_380, "kinetics400-p": 1_616_670, "ssv2-p": 2_229_930}
    for name, videos in printed.items():
        assert (benchmarks[name].items or 0) * CONTRACT[name] == videos


def test_additional_groups() -> None:
    sizes = {"main": 15, "one-frame": 1, "position": 9, "mixes": 6, "extra": 12}
    for name in ("thumos14-c", "activitynet-c", "multithumos-c", "puppets-c"):
        benchmark = benchmarks[name]
        for group, size in sizes.items():
            assert sum(cell.group == group for cell in benchmark.cells) == size
        assert {cell.group for cell in benchmark.cells if cell.counted} == {"main"}
