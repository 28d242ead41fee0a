"""The help of the command line: every verb is in a panel, by what one wants."""

from __future__ import annotations

from jostle.cli import app
from jostle.cli.app import GROUP, VERBS


def test_every_verb_is_in_a_help_group() -> None:
    assert sum(map(len, VERBS.values())) == 23
    names = [command.name for command in app.registered_commands]
    assert names == [verb for verbs in VERBS.values() for verb in verbs]
    assert all(command.rich_help_panel == GROUP[command.name or ""] for command in app.registered_commands)
