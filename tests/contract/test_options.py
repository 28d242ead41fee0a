"""Contract of every option of a verb: a flag of the command line, a keyword of Python, and words for both."""

from __future__ import annotations

import inspect
from typing import Any

import pytest
import typer

import jostle
from jostle.api.config import DetectConfig, ExtractConfig, RunConfig
from jostle.cli import app
from jostle.core.options import OptionField, options_of

KINDS = {"run": RunConfig, "extract": ExtractConfig, "detect": DetectConfig}
COMMANDS: Any = typer.main.get_command(app)
every_option = pytest.mark.parametrize(
    ("verb", "one"), [(verb, one) for verb, kind in KINDS.items() for one in options_of(kind)], ids=lambda part: (
        part if isinstance(part, str) else part.name
    ),
)  # fmt: skip


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
