"""The registry: names once, near names suggested, filled on first use."""

from __future__ import annotations

import pytest

from jostle.errors import BadValue, UnknownName
from jostle.registry import Registry


def test_a_name_is_given_once() -> None:
    shelf: Registry[int] = Registry("fruit")
    shelf.add("pear", 1)
    with pytest.raises(BadValue, match="two fruits are called 'pear'"):
        shelf.add("pear", 2)


def test_a_near_miss_gets_a_suggestion() -> None:
    shelf: Registry[int] = Registry("corruption")
    shelf.add("gaussian_noise", 1)
    with pytest.raises(UnknownName) as caught:
        shelf["gausian_noise"]
    assert str(caught.value) == "no corruption is called 'gausian_noise': did you mean gaussian_noise?"


def test_a_far_miss_gets_the_list() -> None:
    shelf: Registry[int] = Registry("fruit")
    for name in ("pear", "plum"):
        shelf.add(name, 0)
    with pytest.raises(UnknownName, match="known: pear, plum"):
        shelf["xyz"]


def test_a_long_list_is_cut() -> None:
    with pytest.raises(UnknownName, match="and 8 more"):
        raise UnknownName("number", "xyz", [f"{i:02}" for i in range(20)])


def test_iteration_is_sorted() -> None:
    shelf: Registry[int] = Registry("fruit")
    shelf.add("plum", 2)
    shelf.add("apple", 1)
    assert list(shelf) == ["apple", "plum"]
    assert shelf.values() == [1, 2]
    assert "plum" in shelf
    assert len(shelf) == 2
