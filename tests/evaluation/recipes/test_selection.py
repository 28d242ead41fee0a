"""Selection of cells by name, as for the option `--cells`."""

from __future__ import annotations

from dataclasses import replace

import pytest

from jostle.errors import BadValue, UnknownName
from jostle.evaluation.recipes.recipe import Group, Recipe, benchmarks
from jostle.evaluation.recipes.selection import select_cells

THUMOS = benchmarks["thumos14-c"]
BLACK = [f"thumos14-c/black_frame:{severity}" for severity in (1, 2, 3)]


def select(*names: str, recipe: Recipe = THUMOS) -> list[str]:
    selection = [cell.name for cell in select_cells(recipe, names)]
    assert selection[0] == "clean"
    return selection[1:]


def test_counted_cells_are_the_default() -> None:
    selection = select_cells(THUMOS)
    assert [cell.name for cell in selection] == ["clean", *(cell.name for cell in THUMOS.cells if cell.counted)]
    assert len(selection) == 16


@pytest.mark.parametrize(
    "name", ["thumos14-c/black_frame", "black_frame", "thumos14-c/mask", " black_frame "], ids=repr
)
def test_a_corruption_selects_all_its_severities_without_placement(name: str) -> None:
    assert select(name) == BLACK


@pytest.mark.parametrize("name", ["thumos14-c/black_frame:2", "black_frame:2", "thumos14-c/mask:2"])
def test_a_name_with_a_severity_selects_one_cell(name: str) -> None:
    assert select(name) == BLACK[1:2]


def test_cells_with_placements_are_selected_by_full_name_or_group() -> None:
    assert select("thumos14-c/black_frame:1@at:50%x1") == ["thumos14-c/black_frame:1@at:50%x1"]
    assert select("group:position") == [f"thumos14-c/black_frame:1@at:{p}%x5" for p in range(10, 100, 10)]
    assert len(select("group:extra")) == 12
    assert len(select("mix_spatial")) == 3


def test_cells_are_unique_and_in_the_order_of_the_benchmark() -> None:
    assert select("occlusion:1", "clean", "black_frame:3", "black_frame", "occlusion:1") == [
        *BLACK,
        "thumos14-c/occlusion:1",
    ]
    assert select("clean") == []
    assert len(select("all")) == len(THUMOS.cells) - 1


def test_a_corruption_that_has_only_cells_with_placements() -> None:
    groups = (Group("where", cells=("black_frame:1",), placements=("each:1",)), Group("chain", cells=("fog:1+rain:1",)))
    own = Recipe(
        name="own-c", version=1, dataset="puppets", subset="test", task="detection", metric="mean_ap",
        protocol="thumos14", groups=groups,
    )  # fmt: skip
    assert select("black_frame", recipe=own) == ["black_frame:1@each:1"]
    assert select("fog:1+rain:1", recipe=own) == ["fog:1+rain:1"]
    with pytest.raises(UnknownName, match="no cell of own-c is called 'fog'"):
        select("fog", recipe=own)


def test_an_exact_name_takes_precedence_over_a_shortened_one() -> None:
    groups = (Group("all", corruptions=("imagenet-c/fog", "fog", "kinetics-c/rain"), severities=(1, 2)),)
    own = replace(THUMOS, name="own-c", groups=groups)
    assert select("fog", recipe=own) == ["fog:1", "fog:2"]
    assert select("fog:2", recipe=own) == ["fog:2"]
    assert select("imagenet-c/fog", "rain:1", recipe=own) == [
        "imagenet-c/fog:1",
        "imagenet-c/fog:2",
        "kinetics-c/rain:1",
    ]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("black_fram", "no cell of thumos14-c is called 'black_fram': did you mean"),
        ("thumos14-c/black_frame:4", "no cell of thumos14-c is called 'thumos14-c/black_frame:4': did you mean"),
        ("imagenet-c/fog:1", "no cell of thumos14-c is called 'imagenet-c/fog:1'"),
        ("group:positions", "no group of thumos14-c is called 'positions': did you mean position"),
        ("", "no cell of thumos14-c is called ''"),
    ],
)
def test_unknown_cells_are_refused(name: str, message: str) -> None:
    with pytest.raises(UnknownName, match=message):
        select("black_frame", name)


def test_an_empty_list_and_a_plain_string_are_refused() -> None:
    with pytest.raises(BadValue, match="no cells of thumos14-c are selected"):
        select_cells(THUMOS, [])
    with pytest.raises(BadValue, match=r"write \['black_frame'\]"):
        select_cells(THUMOS, "black_frame")
