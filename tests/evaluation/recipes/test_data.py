"""Recipes applied to another data set."""

from __future__ import annotations

from pathlib import Path

import pytest

from jostle.errors import BadValue, UnknownName
from jostle.evaluation.recipes.recipe import benchmarks
from jostle.evaluation.recipes.selection import apply_recipe_to


def test_a_recipe_on_its_own_data_is_unchanged() -> None:
    for name in ("thumos14-c", "ucf101-p", "puppets-c"):
        recipe = benchmarks[name]
        assert apply_recipe_to(recipe, None, None, None) is recipe
        assert apply_recipe_to(recipe, recipe.dataset, recipe.subset, None) is recipe


def test_a_recipe_on_other_data_has_another_name_and_fingerprint(tmp_path: Path) -> None:
    recipe = benchmarks["thumos14-c"]
    moved = apply_recipe_to(recipe, "folder", None, tmp_path / "kitchen")
    assert (moved.name, moved.title) == ("thumos14-c on folder kitchen", "THUMOS14-C on folder kitchen")
    assert (moved.base, moved.dataset, moved.subset, moved.items) == ("thumos14-c", "folder", "", None)
    assert moved.fingerprint != recipe.fingerprint
    assert [cell.name for cell in moved.cells] == [cell.name for cell in recipe.cells]
    assert apply_recipe_to(recipe, "activitynet", None, tmp_path).name == "thumos14-c on activitynet"
    assert apply_recipe_to(recipe, "activitynet", "training", tmp_path).name == "thumos14-c on activitynet training"
    assert apply_recipe_to(benchmarks["ucf101-p"], None, "test-2", tmp_path).name == "ucf101-p on ucf101 test-2"


def test_data_of_another_task_and_generated_data_are_refused(tmp_path: Path) -> None:
    with pytest.raises(BadValue, match="ucf101 is a data set for recognition, and thumos14-c is a recipe"):
        apply_recipe_to(benchmarks["thumos14-c"], "ucf101", None, tmp_path)
    with pytest.raises(BadValue, match=r"puppets, which jostle generates and does not read from mine.*--dataset"):
        apply_recipe_to(benchmarks["puppets-c"], None, None, Path("mine"))
    with pytest.raises(UnknownName, match="subset of activitynet"):
        apply_recipe_to(benchmarks["thumos14-c"], "activitynet", "test", tmp_path)
    with pytest.raises(UnknownName, match="no data set is called"):
        apply_recipe_to(benchmarks["thumos14-c"], "kitchens", None, tmp_path)
