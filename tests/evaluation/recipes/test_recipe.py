"""Recipes: expansion of groups into cells, validation and fingerprints."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jostle.corruptions.engine.placement import Timeline, parse_placement
from jostle.corruptions.engine.spec import Entry, profiles
from jostle.errors import BadValue, UnknownName
from jostle.evaluation.recipes.recipe import CLEAN, Group, Recipe, benchmarks
from jostle.evaluation.recipes.sampling import Sampling
from jostle.evaluation.tasks.validation import check_fields, check_recipe
from jostle.metrics.robustness import robustness


def recipe(*groups: Group, **changes: Any) -> Recipe:
    facts: dict[str, Any] = {
        "name": "small-c",
        "version": 1,
        "dataset": "puppets",
        "subset": "test",
        "task": "detection",
        "metric": "mean_ap",
        "protocol": "thumos14",
        "groups": groups or (Group("light", corruptions=("brightness",)),),
    }
    return Recipe(**facts | changes)


@pytest.mark.parametrize(
    ("group", "cells"),
    [
        (Group("whole", corruptions=("fog",)), [f"fog:{s}" for s in range(1, 6)]),
        (Group("few", corruptions=("thumos14-c/occlusion",)), [f"thumos14-c/occlusion:{s}" for s in (1, 2, 3)]),
        (Group("some", corruptions=("fog",), severities=(5, 1)), ["fog:5", "fog:1"]),
        (Group("alias", corruptions=("thumos14-c/mask",), severities=(1,)), ["thumos14-c/black_frame:1"]),
        (
            Group("places", cells=("black_frame:2",), placements=("each:1", "centre:10%")),
            ["black_frame:2@each:1", "black_frame:2@centre:10%"],
        ),
    ],
    ids=lambda value: value.name if isinstance(value, Group) else "",
)
def test_a_group_expands_to_cells(group: Group, cells: list[str]) -> None:
    assert [cell.name for cell in recipe(group).cells] == [CLEAN, *cells]


def test_several_corruptions_are_applied_in_order() -> None:
    cell = recipe(Group("chain", cells=("gaussian_noise:3 + fog:2",))).cells[1]
    assert cell.name == "gaussian_noise:3+fog:2"
    assert cell.specs == ("gaussian_noise:3", "fog:2")
    assert [str(spec) for spec in cell.parsed] == ["gaussian_noise:3", "fog:2"]


def test_a_cell_has_its_placement_and_may_be_beside() -> None:
    group = Group("where", cells=("black_frame:2",), placements=("each:1", "centre:10%"), beside=True)
    assert [(cell.placement, cell.counted) for cell in recipe(group).cells[1:]] == [
        ("each:1", False),
        ("centre:10%", False),
    ]


def test_rounding_is_part_of_the_placement_but_not_of_the_name() -> None:
    groups = (
        Group("own", corruptions=("thumos14-c/black_frame",)),
        Group("asked", cells=("fog:1",), placements=("centre:5%", "centre:5%@thumos14", "each:1")),
    )
    _, *cells = recipe(*groups, rounding="activitynet").cells
    assert [cell.name for cell in cells[:3]] == [f"thumos14-c/black_frame:{s}" for s in (1, 2, 3)]
    assert [cell.placement for cell in cells] == [
        *(f"centre:{share}%@activitynet" for share in (1, 5, 10)),
        "centre:5%@activitynet",
        "centre:5%@thumos14",
        "each:1",
    ]
    assert [cell.placement for cell in recipe(*groups).cells[1:4]] == [None] * 3


def test_both_roundings_select_the_published_frames() -> None:
    """Frame numbers from the released annotation files; ActivityNet's rule leaves a short action alone."""
    seconds = np.array([[8.2050, 80.1876]]) * 30
    frames = {
        name: [
            np.flatnonzero(parse_placement(placement or cell.parsed[0].placement).mask(Timeline(4000, actions)))
            for cell in benchmarks[name].cells[1:4]
            for placement in (cell.placement,)
        ]
        for name, actions in (("activitynet-c", seconds), ("thumos14-c", np.array([[990.0, 1239.0]])))
    }
    assert [(f[0], f[-1]) for f in frames["activitynet-c"]] == [(1314, 1335), (1271, 1378), (1217, 1432)]
    assert [(f[0], f[-1]) for f in frames["thumos14-c"]] == [(1113, 1116), (1108, 1121), (1102, 1127)]
    placement = benchmarks["activitynet-c"].cells[1].placement
    assert placement is not None
    assert not parse_placement(placement).mask(Timeline(4000, np.array([[61.4204, 64.5601]]) * 30)).any()


@pytest.mark.parametrize(
    ("group", "message"),
    [
        (Group("g"), "group g: it has no cells; give corruptions, or cells, or both"),
        (Group("g", corruptions=("fog:3",)), "group g: fog:3 has a severity; write fog, or put it into cells"),
        (Group("g", cells=("fog:0",)), "severity 0 is the clean cell, which is always there"),
        (Group("g", cells=("fog:1@each:1",)), "a cell takes its placement from the group; move it to placements"),
        (Group("g", corruptions=("fog",), severities=(6,)), "severity must be a whole number from 0 .clean. to 5"),
        (Group("g", corruptions=("fgo",)), "no corruption is called 'fgo': did you mean fog"),
        (Group("g", cells=("fog:1",), placements=("centr:5%",)), "no placement is called 'centr': did you mean centre"),
        (Group("g", cells=("fog:1", "fog:1")), "small-c: fog:1 is in g and in g; remove one"),
        (Group("my group", cells=("fog:1",)), "groups have different names in a-z, 0-9 and '-', got 'my group'"),
    ],
)
def test_invalid_groups_are_refused(group: Group, message: str) -> None:
    with pytest.raises((BadValue, UnknownName), match=message):
        _ = recipe(group).cells


def test_different_placements_cannot_be_rounded_for_one_cell() -> None:
    chain = Group("g", cells=("thumos14-c/black_frame:1+fog:1",))
    with pytest.raises(BadValue, match="the specs have different placements; give one placement"):
        _ = recipe(chain, rounding="activitynet").cells
    assert recipe(chain).cells[1].placement is None


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"name": "Small C"}, "a benchmark is named in a-z"),
        ({"name": "../up"}, "a benchmark is named in a-z"),
        ({"version": 0}, "version must be at least 1, got 0"),
        ({"protocol": "thumos"}, "no protocol is called 'thumos': did you mean thumos14"),
        ({"tious": (1.5,)}, "thresholds of tIoU lie above 0 and at most at 1"),
        ({"k": 0}, "k must be at least 1, got 0"),
        ({"sampling": Sampling()}, "sampling is for recognition; the task is detection"),
        ({"task": "detect"}, "no task is called 'detect': did you mean detection"),
        (
            {"task": "recognition", "protocol": None, "k": 1, "tious": (0.5,)},
            "tious is for detection; the task is recognition",
        ),
    ],
)
def test_contradictory_settings_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises((BadValue, UnknownName), match=message):
        check_fields(recipe(**changes))


def test_a_metric_must_fit_the_task() -> None:
    with pytest.raises(BadValue, match="pm_k is a metric for frames, and the task is detection"):
        check_recipe(recipe(metric="pm_k"))
    with pytest.raises(BadValue, match="it has only the clean cell; give a group of cells"):
        check_recipe(replace(recipe(), groups=()))


def test_thresholds_default_to_those_of_the_protocol() -> None:
    assert len(recipe().tious) == 5
    assert recipe().measure == "mAP@0.3:0.7"
    assert recipe(tious=(0.5,)).measure == "mAP@0.5"


@pytest.mark.parametrize(
    "change",
    [
        {"name": "other-c"},
        {"version": 2},
        {"subset": "validation"},
        {"tious": (0.5,)},
        {"protocol": "opentad"},
        {"groups": (Group("light", corruptions=("brightness",), beside=True),)},
        {"groups": (Group("dark", corruptions=("brightness",)),)},
        {"groups": (Group("light", corruptions=("brightness",), severities=(5, 4, 3, 2, 1)),)},
        {"groups": (Group("light", corruptions=("brightness",), placements=("everywhere",)),)},
    ],
    ids=str,
)
def test_the_fingerprint_depends_on_what_decides_results(change: dict[str, Any]) -> None:
    assert recipe(**change).fingerprint != recipe().fingerprint


def test_the_fingerprint_depends_on_the_sampling() -> None:
    facts = {"task": "recognition", "metric": "top_k_accuracy", "protocol": None}
    fingerprints = {
        recipe(**facts, k=k, sampling=sampling).fingerprint
        for k in (1, 5)
        for sampling in (None, Sampling(clips=2), Sampling(size=112))
    }
    assert len(fingerprints) == 6


def test_the_fingerprint_ignores_descriptions() -> None:
    described = recipe(title="Small-C", items=3, cites=("yi2021",), notes=("None.",), summary="Small.")
    assert described.fingerprint == recipe().fingerprint
    assert described.fingerprint.startswith("sha256:")


def test_the_fingerprint_depends_on_the_profile(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same specs with other values are another benchmark."""
    before = benchmarks["thumos14-c"].fingerprint
    entries = dict(profiles["thumos14-c"].entries)
    old = entries["overexposure"]
    entries["overexposure"] = Entry(old.corruption, (180,) * 3, old.options, old.placements)
    monkeypatch.setitem(profiles._entries, "thumos14-c", replace(profiles["thumos14-c"], entries=entries))
    monkeypatch.setattr(profiles, "revision", profiles.revision + 1)  # as if an entry were added
    assert replace(benchmarks["thumos14-c"]).fingerprint != before


def test_robustness_understands_every_cell() -> None:
    """Means by corruption and by group are computed from the names of the cells."""
    groups = (
        Group("one", corruptions=("fog",)),
        Group("two", cells=("fog:1+brightness:2", "brightness:1")),
        Group("three", cells=("black_frame:1",), placements=("each:1", "each:2")),
        Group("four", cells=("brightness:2",)),
    )
    grouped = recipe(*groups)
    result = robustness(0.5, {cell.name: 0.25 for cell in grouped.cells[1:]}, families=grouped.corruption_groups)
    assert set(result.by_corruption) == {
        "fog",
        "brightness",
        "fog:1+brightness:2",
        "black_frame@each:1",
        "black_frame@each:2",
    }
    assert {name: means.cells for name, means in result.by_family.items()} == {"one": 5, "two": 1, "three": 2}
    assert result.by_severity[1].cells == 4


SPECS = st.sampled_from(["fog", "rain", "imagenet-c/fog", "thumos14-c/black_frame", "freeze", "h264_crf"])
PLACEMENTS = st.lists(st.sampled_from(["each:1", "centre:5%", "at:10%x5", "random:3"]), unique=True, max_size=3)
GROUPS = st.builds(
    lambda specs, placements: Group("g", corruptions=tuple(specs), severities=(1, 3), placements=tuple(placements)),
    st.lists(SPECS, min_size=1, unique=True),
    PLACEMENTS,
)


@given(group=GROUPS, rounding=st.sampled_from(["thumos14", "activitynet"]))
def test_cells_have_names_and_file_names_of_their_own(group: Group, rounding: Any) -> None:
    built = recipe(group, rounding=rounding)
    assert len(built.cells) == 1 + len(group.corruptions) * 2 * max(len(group.placements), 1)
    assert built.cells[0].name == CLEAN
    assert len({cell.slug.casefold() for cell in built.cells}) == len(built.cells)
    assert not any(set(cell.slug) & set('/\\:*?"<>|%') for cell in built.cells)
    for cell in built.cells:
        assert built[cell.name] is cell
    again = recipe(group, rounding=rounding)
    assert again.fingerprint == built.fingerprint


def test_an_unknown_cell_error_suggests_known_names() -> None:
    with pytest.raises(UnknownName, match="no cell of small-c is called 'brightnes:2': did you mean brightness:2"):
        recipe()["brightnes:2"]


def test_benchmark_names_are_unique(monkeypatch: pytest.MonkeyPatch) -> None:
    from jostle.evaluation.recipes.recipe import benchmark

    monkeypatch.setattr(benchmarks, "_entries", dict(benchmarks._entries))
    facts = {"version": 1, "dataset": "puppets", "subset": "test", "task": "detection", "metric": "mean_ap"}

    def groups() -> tuple[Group, ...]:
        """One light.

        More is not said.
        """
        return (Group("light", corruptions=("brightness",)),)

    register: Callable[..., None] = benchmark("lamp-c", protocol="thumos14", **facts)
    register(groups)
    assert benchmarks["lamp-c"].summary == "One light."
    with pytest.raises(BadValue, match="two benchmarks are called 'lamp-c'"):
        register(groups)
