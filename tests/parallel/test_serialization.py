"""What travels between processes arrives as it was, or the error says why it cannot."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jostle.errors import BadValue, MissingExtra, UnknownName
from jostle.parallel.serialization import TaskHandler, dump_reply, dumps, load_reply, loads


@given(st.recursive(st.none() | st.integers() | st.binary() | st.text(), st.lists))
def test_values_arrive(value: object) -> None:
    assert loads(dumps(value, ""), "") == value
    assert load_reply(dump_reply(lambda: value)) == value


@pytest.mark.parametrize(
    "error", [UnknownName("fruit", "peer", ["pear"]), MissingExtra("fruit", "salad"), BadValue("no", fault="F9")]
)
def test_errors_arrive_with_all_that_they_know(error: Exception) -> None:
    def fail() -> None:
        raise error

    with pytest.raises(type(error)) as caught:
        load_reply(dump_reply(fail))
    assert (str(caught.value), caught.value.fault) == (str(error), error.fault)  # type: ignore[attr-defined]
    assert "in fail" in str(caught.value.__cause__)


def test_what_to_do_instead_is_said() -> None:
    with pytest.raises(BadValue, match=r"cannot be sent to another process .*; walk$"):
        dumps(lambda: 1, "walk")
    with pytest.raises(BadValue, match=r"cannot import its task .* or walk$"):
        loads(b"cnowhere\nnothing\n.", "walk")


def test_a_desk_begins_once() -> None:
    desk = TaskHandler(dumps(list, ""), "")
    desk.begin()
    with pytest.raises(TypeError, match="not callable"):
        load_reply(desk.handle(dumps(1, "")))
