"""Keys: the same everywhere, different for every part."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from jostle.core.random import key_for, rng_for

PARTS = st.lists(st.one_of(st.integers(), st.text(), st.binary()), max_size=4)


def test_keys_are_pinned() -> None:
    """A change here changes every corrupted video ever made with jostle."""
    assert key_for(0) == 5473219518343534130
    assert key_for(7, "video", "fog", 12) == 3031229420426461542


def test_parts_do_not_run_together() -> None:
    assert key_for(0, "ab", "c") != key_for(0, "a", "bc")
    assert key_for(0, "1") != key_for(0, 1)
    assert key_for(0, 1, 2) != key_for(0, 2, 1)


@given(st.integers(), PARTS)
def test_a_key_is_a_word_and_repeats(seed: int, parts: list[str | int | bytes]) -> None:
    assert 0 <= key_for(seed, *parts) < 1 << 64
    assert key_for(seed, *parts) == key_for(seed, *parts)


def test_generators_repeat() -> None:
    assert rng_for(1, "a").random() == rng_for(1, "a").random()
    assert rng_for(1, "a").random() != rng_for(2, "a").random()
