"""The help of the command line: every verb is in a panel, by what one wants."""

from __future__ import annotations

from typer.main import get_command

from jostle.cli import app
from jostle.cli.app import GROUP, VERBS


def test_every_verb_is_in_a_help_group() -> None:
    assert sum(map(len, VERBS.values())) == 23
    names = [command.name for command in app.registered_commands]
    assert names == [verb for verbs in VERBS.values() for verb in verbs]
    assert all(command.rich_help_panel == GROUP[command.name or ""] for command in app.registered_commands)


def test_a_flag_is_written_alike_in_every_verb() -> None:
    """A letter and a variable of the environment go with a flag in every verb."""
    written: dict[str, set[tuple[object, ...]]] = {}
    for verb in get_command(app).commands.values():  # type: ignore[attr-defined]
        for one in verb.params:
            if one.param_type_name == "option":
                written.setdefault(one.opts[0], set()).add((*one.opts[1:], one.envvar))
    assert {flag: ways for flag, ways in written.items() if len(ways) > 1} == {}
