"""Where corrupted copies lie."""

from __future__ import annotations

from jostle.evaluation.recipes.building import cell_folders
from jostle.evaluation.recipes.recipe import Group, Recipe, benchmarks


def own(*groups: Group) -> dict[str, str]:
    recipe = Recipe(
        name="own-c", version=1, dataset="puppets", subset="test", task="detection", metric="mean_ap",
        protocol="thumos14", groups=groups,
    )  # fmt: skip
    return {name: str(folder) for name, folder in cell_folders(recipe).items()}


def test_corruption_then_severity_as_the_published_sets_have_it() -> None:
    found = cell_folders(benchmarks["kinetics-c"])
    assert str(found["kinetics-c/h265_crf:5"]) == "h265_crf/5"
    assert str(found["clean"]) == "clean/0"
    assert all(folder.parts[1].isdigit() and len(folder.parts) == 2 for folder in found.values())


def test_a_placement_stands_with_the_corruption() -> None:
    found = own(Group("where", cells=("black_frame:3",), placements=("each:1", "centre:10%@activitynet")))
    assert found["black_frame:3@each:1"] == "black_frame@each-1/3"
    assert found["black_frame:3@centre:10%@activitynet"] == "black_frame@centre-10pct@activitynet/3"


def test_a_chain_of_corruptions() -> None:
    found = own(Group("chain", cells=("fog:2+rain:2", "fog:2+rain:4")))
    assert found["fog:2+rain:2"] == "fog+rain/2"
    assert found["fog:2+rain:4"] == "fog+rain/2+4"


def test_a_name_that_two_profiles_share_says_whose_it_is() -> None:
    found = own(Group("all", corruptions=("fog", "imagenet-c/fog", "kinetics-c/fog", "kinetics-c/rain")))
    assert found["fog:1"] == "fog/1"
    assert found["imagenet-c/fog:1"] == "imagenet-c-fog/1"
    assert found["kinetics-c/fog:1"] == "kinetics-c-fog/1"
    assert found["kinetics-c/rain:1"] == "rain/1"


def test_folders_differ_also_where_case_does_not_count() -> None:
    for recipe in benchmarks.values():
        folders = [str(folder).casefold() for folder in cell_folders(recipe).values()]
        assert len(set(folders)) == len(recipe.cells)
