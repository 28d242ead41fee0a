"""What travels between processes arrives as it was, or the error says why it cannot."""

from __future__ import annotations

import sys

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


def test_exception_of_the_script_itself_travels_as_text(monkeypatch: pytest.MonkeyPatch) -> None:
    """Other processes do not import the script, and could not unpickle its classes."""
    own = type("OwnError", (Exception,), {"__module__": "__main__"})
    monkeypatch.setattr(sys.modules["__main__"], "OwnError", own, raising=False)

    def failing() -> None:
        raise own("no such luck")

    with pytest.raises(RuntimeError, match="OwnError: no such luck"):
        load_reply(dump_reply(failing))
