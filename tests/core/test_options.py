"""Options that are declared once: what follows from a field for Python."""

from __future__ import annotations

import inspect
from dataclasses import dataclass, field
from typing import Annotated, get_type_hints

import pytest

from jostle.core.options import Role, described_parameter, option, options_in, options_of, reworded, takes


@dataclass(frozen=True, kw_only=True, eq=False)
class Place:
    """Place"""

    where: str = field(kw_only=False, metadata=option("Name of a place.", Role.SAME))
    depth: int = field(default=1, metadata=option("Metres below it.", Role.CONDITION, more="Never above.", least=0))


@dataclass(frozen=True, kw_only=True, eq=False)
class Dive(Place):
    """Options of a dive."""

    air: float = field(metadata=option("InputSpec-like word first.", Role.SESSION))


@takes(Dive)
def dive(config: Dive) -> str:
    """Go down.

    Raises:
        ValueError: without air.
    """
    return f"{config.where} {config.depth} {config.air}"


def test_a_function_takes_the_fields_as_keywords() -> None:
    assert dive("reef", air=2.0) == "reef 1 2.0"
    assert [*inspect.signature(dive).parameters] == ["where", "depth", "air"]
    assert str(inspect.signature(dive).return_annotation) == "str"


def test_the_docstring_has_the_descriptions_before_the_errors() -> None:
    assert inspect.getdoc(dive) == (
        "Go down.\n\nArgs:\n    where: name of a place.\n    depth: metres below it. Never above.\n"
        "    air: InputSpec-like word first.\n\nRaises:\n    ValueError: without air."
    )


def test_misspelt_and_missing_keywords_are_named() -> None:
    with pytest.raises(TypeError, match=r"dive\(\) got an unexpected keyword argument 'dept'; did you mean depth\?"):
        dive("reef", dept=2, air=1.0)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=r"dive\(\) missing a required argument: 'air'"):
        dive("reef")  # type: ignore[call-arg]


def test_parameters_of_a_verb_are_options_too() -> None:
    def verb(where: str, *, deep: Annotated[int, option("Metres.", least=0)] = 3) -> None: ...

    hints = get_type_hints(verb, include_extras=True)
    where, deep = (described_parameter(one, hints[one.name]) for one in inspect.signature(verb).parameters.values())
    assert where is None
    assert (deep.flag, deep.default, deep.required, deep.about.role) == ("--deep", 3, False, Role.SESSION)


def test_an_option_has_other_words_in_another_place() -> None:
    hint = Annotated[int, reworded(Place, "depth", "Feet below it.", metavar="FT")]
    (parameter,) = inspect.signature(lambda *, depth=3: depth).parameters.values()
    found = described_parameter(parameter, hint)
    assert (found.about.help, found.about.more) == ("Feet below it.", "")
    assert (found.about.least, found.about.role, found.about.metavar, found.default) == (0, Role.CONDITION, "FT", 3)


def test_options_know_their_group_and_whether_they_must_be_given() -> None:
    by_name = {one.name: one for one in options_of(Dive)}
    assert (by_name["depth"].group, by_name["depth"].flag, by_name["where"].flag) == ("Place", "--depth", "WHERE")
    assert [one.name for one in by_name.values() if one.required] == ["where", "air"]
    assert options_in(Place) == {"where", "depth"}
