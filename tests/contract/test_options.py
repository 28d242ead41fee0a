"""Contract of every option of a verb: a flag of the command line, a keyword of Python, and words for both."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import pytest
import typer

import jostle
from helpers.command_line import assert_refused
from jostle import api
from jostle.api.config import BenchmarkRunConfig, DetectConfig, ExtractConfig
from jostle.cli import app
from jostle.core.options import OptionField, options_of
from jostle.errors import BadValue

KINDS = {"run": BenchmarkRunConfig, "extract": ExtractConfig, "detect": DetectConfig}
COMMANDS: Any = typer.main.get_command(app)
OPTIONS = [(verb, one) for verb, kind in KINDS.items() for one in options_of(kind)]
every_option = pytest.mark.parametrize(("verb", "one"), OPTIONS, ids=lambda part: getattr(part, "name", part))


@every_option
def test_an_option_is_a_keyword_of_python(verb: str, one: OptionField) -> None:
    function = getattr(jostle, verb)
    parameter = inspect.signature(function).parameters[one.name]
    assert (parameter.default is inspect.Parameter.empty) == one.required
    assert (parameter.kind is inspect.Parameter.KEYWORD_ONLY) != one.positional
    assert f"{one.name}:" in function.__doc__
    assert one.about.help.endswith(".")


@every_option
def test_an_option_is_a_flag_of_the_command_line(verb: str, one: OptionField) -> None:
    flags = {flag: part for part in COMMANDS.commands[verb].params for flag in (*part.opts, part.human_readable_name)}
    if not one.about.python:  # a flag of the same name may be of another option
        assert one.flag in flags
        assert flags[one.flag].help
        assert flags[one.flag].envvar == (one.about.variable or None)
        assert not one.about.short or one.about.short in flags[one.flag].opts


def written(one: OptionField) -> tuple[list[str], Any]:
    """Return the words that give an option, and the value that they mean."""
    members = [part for part in get_args(one.hint) or (one.hint,) if part is not type(None)]
    kind = get_origin(one.hint)
    if bool in members:
        return [one.flag], True
    text, value = "puppets-c", "puppets-c"
    if kind is Literal:
        text = value = members[-1]
    elif "reproduce_bugs" in one.name:
        text, value = "early-row", ["early-row"]
    elif int in members:
        text, value = "3", 3
    elif float in members:
        text, value = "12.5", 12.5
    elif one.name in ("input", "adapt_settings"):
        text, value = "steps=3", {"steps": 3}
    elif one.name in ("spec", "cells"):
        value = ["puppets-c"]
    return [text] if one.is_argument else [one.flag, text], value


# `jostle detect` takes its options apart.
FLAGS = [(verb, one) for verb, one in OPTIONS if verb != "detect" and not one.about.python]


@pytest.mark.parametrize(("verb", "one"), FLAGS, ids=lambda part: getattr(part, "name", part))
def test_what_a_flag_says_reaches_the_function(verb: str, one: OptionField, monkeypatch: pytest.MonkeyPatch) -> None:
    taken: dict[str, Any] = {}

    def take(**options: Any) -> None:
        taken.update(options)
        raise BadValue("that was all")

    monkeypatch.setattr(api, verb, take)
    monkeypatch.setattr(api, "check_model_name", lambda *_: None)
    needed = [part for part in options_of(KINDS[verb]) if part.required and part.name != one.name]
    words, value = written(one)
    assert_refused(2, "that was all", verb, *(word for part in needed for word in written(part)[0]), *words)
    found = taken[one.name]
    assert (list(found) if isinstance(found, tuple) else str(found) if isinstance(found, Path) else found) == value
