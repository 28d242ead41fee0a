"""Random keys: stable across versions and different for different parts."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from jostle.core.random import key_for, rng_for

PARTS = st.lists(st.one_of(st.integers(), st.text(), st.binary()), max_size=4)


def test_keys_are_pinned() -> None:
    """Changing these values would change every video corrupted with jostle."""
    assert key_for(0) == 5473219518343534130
    assert key_for(7, "video", "fog", 12) == 3031229420426461542


def test_parts_are_delimited() -> None:
    assert key_for(0, "ab", "c") != key_for(0, "a", "bc")
    assert key_for(0, "1") != key_for(0, 1)
    assert key_for(0, 1, 2) != key_for(0, 2, 1)


@given(st.integers(), PARTS)
def test_a_key_is_a_reproducible_64_bit_number(seed: int, parts: list[str | int | bytes]) -> None:
    assert 0 <= key_for(seed, *parts) < 1 << 64
    assert key_for(seed, *parts) == key_for(seed, *parts)


def test_generators_repeat() -> None:
    assert rng_for(1, "a").random() == rng_for(1, "a").random()
    assert rng_for(1, "a").random() != rng_for(2, "a").random()
