"""Serialization between processes: round trips, and errors that explain what cannot be sent."""

from __future__ import annotations

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jostle.errors import BadValue, MissingExtra, UnknownName
from jostle.parallel.serialization import TaskHandler, dump_reply, dumps, load_reply, loads


@given(st.recursive(st.none() | st.integers() | st.binary() | st.text(), st.lists))
def test_values_round_trip(value: object) -> None:
    assert loads(dumps(value, ""), "") == value
    assert load_reply(dump_reply(lambda: value)) == value


@pytest.mark.parametrize(
    "error", [UnknownName("fruit", "peer", ["pear"]), MissingExtra("fruit", "salad"), BadValue("no", fault="F9")]
)
def test_errors_keep_their_attributes(error: Exception) -> None:
    def fail() -> None:
        raise error

    with pytest.raises(type(error)) as caught:
        load_reply(dump_reply(fail))
    assert (str(caught.value), caught.value.fault) == (str(error), error.fault)  # type: ignore[attr-defined]
    assert "in fail" in str(caught.value.__cause__)


def test_errors_suggest_an_alternative() -> None:
    with pytest.raises(BadValue, match=r"cannot be sent to another process .*; walk$"):
        dumps(lambda: 1, "walk")
    with pytest.raises(BadValue, match=r"cannot import its task .* or walk$"):
        loads(b"cnowhere\nnothing\n.", "walk")


def test_a_task_handler_starts_once() -> None:
    handler = TaskHandler(dumps(list, ""), "")
    handler.begin()
    with pytest.raises(TypeError, match="not callable"):
        load_reply(handler.handle(dumps(1, "")))


def test_exceptions_defined_in_the_script_are_sent_as_text(monkeypatch: pytest.MonkeyPatch) -> None:
    """Other processes do not import the script, and could not unpickle its classes."""
    own = type("OwnError", (Exception,), {"__module__": "__main__"})
    monkeypatch.setattr(sys.modules["__main__"], "OwnError", own, raising=False)

    def failing() -> None:
        raise own("no such luck")

    with pytest.raises(RuntimeError, match="OwnError: no such luck"):
        load_reply(dump_reply(failing))
