"""What `--cells` may be given."""

from __future__ import annotations

from dataclasses import replace

import pytest

from jostle.errors import BadValue, UnknownName
from jostle.evaluation.recipes.recipe import Group, Recipe, benchmarks
from jostle.evaluation.recipes.selection import select_cells

THUMOS = benchmarks["thumos14-c"]
BLACK = [f"thumos14-c/black_frame:{severity}" for severity in (1, 2, 3)]


def chosen(*wanted: str, recipe: Recipe = THUMOS) -> list[str]:
    found = [cell.name for cell in select_cells(recipe, wanted)]
    assert found[0] == "clean"
    return found[1:]


def test_by_default_all_that_count() -> None:
    found = select_cells(THUMOS)
    assert [cell.name for cell in found] == ["clean", *(cell.name for cell in THUMOS.cells if cell.counted)]
    assert len(found) == 16


@pytest.mark.parametrize(
    "wanted", ["thumos14-c/black_frame", "black_frame", "thumos14-c/mask", " black_frame "], ids=repr
)
def test_a_corruption_is_all_its_severities_where_it_strikes_by_itself(wanted: str) -> None:
    assert chosen(wanted) == BLACK


@pytest.mark.parametrize("wanted", ["thumos14-c/black_frame:2", "black_frame:2", "thumos14-c/mask:2"])
def test_one_cell(wanted: str) -> None:
    assert chosen(wanted) == BLACK[1:2]


def test_a_cell_with_a_placement_by_its_whole_name_or_its_group() -> None:
    assert chosen("thumos14-c/black_frame:1@at:50%x1") == ["thumos14-c/black_frame:1@at:50%x1"]
    assert chosen("group:position") == [f"thumos14-c/black_frame:1@at:{p}%x5" for p in range(10, 100, 10)]
    assert len(chosen("group:extra")) == 12
    assert len(chosen("mix_spatial")) == 3


def test_the_order_is_the_benchmark_s_and_each_comes_once() -> None:
    assert chosen("occlusion:1", "clean", "black_frame:3", "black_frame", "occlusion:1") == [
        *BLACK,
        "thumos14-c/occlusion:1",
    ]
    assert chosen("clean") == []
    assert len(chosen("all")) == len(THUMOS.cells) - 1


def test_a_corruption_that_only_strikes_where_the_recipe_says() -> None:
    groups = (Group("where", cells=("black_frame:1",), placements=("each:1",)), Group("chain", cells=("fog:1+rain:1",)))
    own = Recipe(
        name="own-c", version=1, dataset="puppets", subset="test", task="detection", metric="mean_ap",
        protocol="thumos14", groups=groups,
    )  # fmt: skip
    assert chosen("black_frame", recipe=own) == ["black_frame:1@each:1"]
    assert chosen("fog:1+rain:1", recipe=own) == ["fog:1+rain:1"]
    with pytest.raises(UnknownName, match="no cell of own-c is called 'fog'"):
        chosen("fog", recipe=own)


def test_a_name_as_it_is_written_goes_before_one_without_its_profile() -> None:
    groups = (Group("all", corruptions=("imagenet-c/fog", "fog", "kinetics-c/rain"), severities=(1, 2)),)
    own = replace(THUMOS, name="own-c", groups=groups)
    assert chosen("fog", recipe=own) == ["fog:1", "fog:2"]
    assert chosen("fog:2", recipe=own) == ["fog:2"]
    assert chosen("imagenet-c/fog", "rain:1", recipe=own) == [
        "imagenet-c/fog:1",
        "imagenet-c/fog:2",
        "kinetics-c/rain:1",
    ]


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        ("black_fram", "no cell of thumos14-c is called 'black_fram': did you mean"),
        ("thumos14-c/black_frame:4", "no cell of thumos14-c is called 'thumos14-c/black_frame:4': did you mean"),
        ("imagenet-c/fog:1", "no cell of thumos14-c is called 'imagenet-c/fog:1'"),
        ("group:positions", "no group of thumos14-c is called 'positions': did you mean position"),
        ("", "no cell of thumos14-c is called ''"),
    ],
)
def test_what_is_not_there_is_refused(wanted: str, said: str) -> None:
    with pytest.raises(UnknownName, match=said):
        chosen("black_frame", wanted)


def test_nothing_and_plain_text_are_refused() -> None:
    with pytest.raises(BadValue, match="no cells of thumos14-c are selected"):
        select_cells(THUMOS, [])
    with pytest.raises(BadValue, match=r"write \['black_frame'\]"):
        select_cells(THUMOS, "black_frame")
