"""The program that the verbs are put into."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Annotated, Any, get_type_hints

import typer

from jostle import __version__
from jostle.cli import console
from jostle.core import compilation, plugins

# The verbs in the order of work, as the help lists them.
VERBS = {
    "Begin": ("demo", "doctor", "names"),
    "Videos": ("corrupt", "sheet", "generate", "build", "inspect", "mend"),
    "Models": ("extract", "detect", "run", "train"),
    "Scores": ("eval", "pmk", "diagnose", "convert"),
    "Runs": ("report", "diff", "scatter", "board", "view", "verify", "card", "track"),
}
GROUP = {verb: group for group, verbs in VERBS.items() for verb in verbs}
ORDER = {verb: number for number, verb in enumerate(GROUP)}

Verb = Callable[..., Any]
Import = Annotated[
    list[str] | None,
    typer.Option(
        "--import", metavar="MODULE", help=f"Import a module of yours first, for its parts; also {plugins.VARIABLE}."
    ),
]


class Program(typer.Typer):
    """Typer application whose verbs are grouped and take `--import`."""

    def command(self, name: str | None = None, **facts: Any) -> Callable[[Verb], Verb]:  # type: ignore[override]
        """Register a verb, as Typer does; files may register theirs in any order."""

        def put(verb: Verb) -> Verb:
            known = name or verb.__name__
            super(Program, self).command(known, rich_help_panel=GROUP.get(known, "More"), **facts)(_importing(verb))
            self.registered_commands.sort(key=lambda one: ORDER.get(one.name or "", len(ORDER)))
            return verb

        return put


def _importing(verb: Verb) -> Verb:
    """Wrap a verb so that it takes `--import MODULE`."""
    signature, hints = inspect.signature(verb), get_type_hints(verb, include_extras=True)
    own = [one.replace(annotation=hints[one.name]) for one in signature.parameters.values()]
    option = inspect.Parameter("imports", inspect.Parameter.KEYWORD_ONLY, default=None, annotation=Import)

    @wraps(verb)
    def importing(*arguments: Any, imports: list[str] | None = None, **named: Any) -> Any:
        if imports:
            plugins.import_modules(*imports)
        compilation.set_compile_callback(None if named.get("quiet") or named.get("as_json") else console.say)
        return verb(*arguments, **named)

    vars(importing)["__signature__"] = signature.replace(parameters=[*own, option])
    importing.__annotations__ = hints | {"imports": Import}
    return importing


app = Program(
    name="jostle",
    help="Measures how badly a video model takes damaged input, explains why, and helps to make a robust one.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(requested: bool) -> None:
    if requested:
        console.show(f"jostle {__version__}")
        raise typer.Exit


@app.callback()
def _top(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass
