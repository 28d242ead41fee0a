"""The help of the command line: every verb is in a panel, by what one wants."""

from __future__ import annotations

import ast
from pathlib import Path

from typer.main import get_command

import jostle
from jostle.cli import app
from jostle.cli.app import GROUP, VERBS

PACKAGE = Path(jostle.__file__).parent


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


# Names of two different things each: a word of one verb and a flag or argument of another.
DIFFERENT = {"clean", "kind", "mend", "strict", "video"}


def test_a_flag_is_defined_once() -> None:
    """Other places reword the definition, so that letter, bounds and variable stand in one of them."""
    defined: dict[str, list[str]] = {}
    for path in PACKAGE.rglob("*.py"):
        if path.name == "metadata.py":  # facts of records, not options
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.AnnAssign | ast.Assign | ast.arg):
                continue
            for call in filter(_is_definition, ast.walk(node)):
                assert isinstance(call, ast.Call)
                given = {one.arg: ast.unparse(one.value).strip("'-") for one in call.keywords}
                name = node.arg if isinstance(node, ast.arg) else ast.unparse(node).split(":")[0]
                kind = "object" if "python" in given else "flag"
                defined.setdefault(f"{kind} {given.get('flag', name)}", []).append(f"{path.name}:{call.lineno}")
    assert len(defined) > 100
    assert {flag.split()[1] for flag, places in defined.items() if len(places) > 1} == DIFFERENT


def _is_definition(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and ast.unparse(node.func) == "option"
