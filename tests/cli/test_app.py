"""The program's help: every verb has its place in the order of work."""

from __future__ import annotations

from jostle.cli import app
from jostle.cli.app import GROUP, VERBS


def test_every_verb_has_a_place_in_the_help() -> None:
    found = [command.name for command in app.registered_commands]
    assert found == [verb for verbs in VERBS.values() for verb in verbs]
    assert all(command.rich_help_panel == GROUP[command.name or ""] for command in app.registered_commands)
