"""What travels between processes arrives as it was, or the error says why it cannot."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jostle.errors import BadValue, MissingExtra, UnknownName
from jostle.parallel.serialization import Desk, opened, packed, reply_of, unpacked


@given(st.recursive(st.none() | st.integers() | st.binary() | st.text(), st.lists))
def test_values_arrive(value: object) -> None:
    assert unpacked(packed(value, ""), "") == value
    assert opened(reply_of(lambda: value)) == value


@pytest.mark.parametrize(
    "error", [UnknownName("fruit", "peer", ["pear"]), MissingExtra("fruit", "salad"), BadValue("no", fault="F9")]
)
def test_errors_arrive_with_all_that_they_know(error: Exception) -> None:
    def fail() -> None:
        raise error

    with pytest.raises(type(error)) as caught:
        opened(reply_of(fail))
    assert (str(caught.value), caught.value.fault) == (str(error), error.fault)  # type: ignore[attr-defined]
    assert "in fail" in str(caught.value.__cause__)


def test_what_to_do_instead_is_said() -> None:
    with pytest.raises(BadValue, match=r"cannot go to another process .*; walk$"):
        packed(lambda: 1, "walk")
    with pytest.raises(BadValue, match=r"does not find its work .* or walk$"):
        unpacked(b"cnowhere\nnothing\n.", "walk")


def test_a_desk_begins_once() -> None:
    desk = Desk(packed(list, ""), "")
    desk.begin()
    with pytest.raises(TypeError, match="not callable"):
        opened(desk.reply_to(packed(1, "")))
