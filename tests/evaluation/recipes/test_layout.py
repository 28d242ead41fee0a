"""Folder layout of corrupted copies."""

from __future__ import annotations

from jostle.evaluation.recipes.building import cell_folders
from jostle.evaluation.recipes.recipe import Group, Recipe, benchmarks


def folders_of(*groups: Group) -> dict[str, str]:
    recipe = Recipe(
        name="own-c", version=1, dataset="puppets", subset="test", task="detection", metric="mean_ap",
        protocol="thumos14", groups=groups,
    )  # fmt: skip
    return {name: str(folder) for name, folder in cell_folders(recipe).items()}


def test_folders_are_corruption_then_severity_as_published() -> None:
    folders = cell_folders(benchmarks["kinetics-c"])
    assert str(folders["kinetics-c/h265_crf:5"]) == "h265_crf/5"
    assert str(folders["clean"]) == "clean/0"
    assert all(folder.parts[1].isdigit() and len(folder.parts) == 2 for folder in folders.values())


def test_the_placement_is_part_of_the_corruption_folder() -> None:
    folders = folders_of(Group("where", cells=("black_frame:3",), placements=("each:1", "centre:10%@activitynet")))
    assert folders["black_frame:3@each:1"] == "black_frame@each-1/3"
    assert folders["black_frame:3@centre:10%@activitynet"] == "black_frame@centre-10pct@activitynet/3"


def test_folders_of_a_chain_of_corruptions() -> None:
    folders = folders_of(Group("chain", cells=("fog:2+rain:2", "fog:2+rain:4")))
    assert folders["fog:2+rain:2"] == "fog+rain/2"
    assert folders["fog:2+rain:4"] == "fog+rain/2+4"


def test_a_name_shared_by_two_profiles_includes_the_profile() -> None:
    folders = folders_of(Group("all", corruptions=("fog", "imagenet-c/fog", "kinetics-c/fog", "kinetics-c/rain")))
    assert folders["fog:1"] == "fog/1"
    assert folders["imagenet-c/fog:1"] == "imagenet-c-fog/1"
    assert folders["kinetics-c/fog:1"] == "kinetics-c-fog/1"
    assert folders["kinetics-c/rain:1"] == "rain/1"


def test_folders_differ_on_case_insensitive_file_systems() -> None:
    for recipe in benchmarks.values():
        folders = [str(folder).casefold() for folder in cell_folders(recipe).values()]
        assert len(set(folders)) == len(recipe.cells)
