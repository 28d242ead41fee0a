"""Options of verbs from the dataclasses that declare them: flags, their help and their values."""

from __future__ import annotations

import dataclasses
import difflib
import inspect
import re
import types
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, Union, get_args, get_origin, get_type_hints

import typer

from jostle.core.options import OptionField, described_parameter, options_of
from jostle.core.settings import convert_value, parse_pairs, read_toml
from jostle.errors import BadValue

Verb = Callable[..., Any]


class ExitCode(Exception):
    """End of a verb that has printed its results, with an exit code other than 0."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


@dataclasses.dataclass(frozen=True)
class Given:
    """Options that a command line gives, before those that it leaves out have their defaults."""

    kind: type[Any]
    values: Mapping[str, Any]

    def read(self, path: Path) -> Given:
        """Return these options together with those of a settings file, which they come before."""
        hints = {one.name: one.hint for one in _fields(self.kind)}
        content = {}
        for key, value in read_toml(path).items():
            if key not in hints:
                near = difflib.get_close_matches(key, hints, n=1)
                hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(hints)}"
                raise BadValue(f"{path}: no option {key}: {hint}", fault="F59")
            content[key] = convert_value(hints[key], value, f"{path}: {key}")
        return Given(self.kind, content | dict(self.values))

    def keywords(self, **more: Any) -> dict[str, Any]:
        """Return the options as keywords of the function that takes them.

        Raises:
            BadValue: if an option that has no default is missing.
        """
        values = {**self.values, **more}
        missing = [one.flag for one in options_of(self.kind) if one.required and one.name not in values]
        if missing:
            raise BadValue(f"{' and '.join(missing)} must be given; see --help")
        return values

    def filled(self, **more: Any) -> dict[str, Any]:
        """Return all options that a command line can give, with their defaults, as keywords."""
        defaults = {one.name: one.default for one in _fields(self.kind) if not one.required}
        return {**defaults, **self.keywords(**more)}

    def refuse(self, why: str, *names: str) -> None:
        """Raise if an option of these names is given.

        Raises:
            BadValue: that names the flag, and says why.
        """
        for one in options_of(self.kind):
            if one.name in names and one.name in self.values:
                raise BadValue(f"{one.flag} {why}")


def with_options(
    kind: type[Any], *, without: Collection[str] = (), optional: bool = False
) -> Callable[[Verb], Callable[..., Any]]:
    """Give a verb the flags of a dataclass; its first parameter is what is `Given` of them.

    Args:
        without: names of options that the verb has no flag for, or one of its own.
        optional: whether options that must be given may come from elsewhere than the command line.
    """
    chosen = [one for one in _fields(kind) if one.name not in without]

    def decorate(verb: Verb) -> Callable[..., Any]:
        hints = get_type_hints(verb, include_extras=True)
        own = [one.replace(annotation=hints[one.name]) for one in inspect.signature(verb).parameters.values()][1:]
        derived = [_parameter(one, optional=optional) for one in chosen]

        @wraps(verb)
        def run_verb(context: typer.Context, **values: Any) -> Any:
            written = {one: values.pop(one.name) for one in chosen}
            given = {one.name: _value(one, value) for one, value in written.items() if _is_given(context, one.name)}
            return verb(Given(kind, given), **values)

        place = [one.is_argument for one in chosen].count(True)
        context = inspect.Parameter("context", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context)
        return with_parameters(run_verb, [context, *derived[:place], *own, *derived[place:]])

    return decorate


def with_flags(verb: Verb) -> Callable[..., Any]:
    """Make those parameters of a verb flags that are annotated with an `option`."""
    hints = get_type_hints(verb, include_extras=True)
    own: list[OptionField] = []
    parameters = []
    for one in inspect.signature(verb).parameters.values():
        described = described_parameter(one, hints[one.name])
        if described is None:
            parameters.append(one.replace(annotation=hints[one.name]))
        else:
            own.append(described)
            parameters.append(_parameter(described, optional=False))

    @wraps(verb)
    def run_verb(**values: Any) -> Any:
        return verb(**values | {one.name: _own_value(one, values[one.name]) for one in own})

    return with_parameters(run_verb, parameters)


def with_parameters(verb: Verb, parameters: Iterable[inspect.Parameter]) -> Verb:
    """Give a verb the parameters, all by keyword, that typer reads from its signature."""
    signature = inspect.Signature([one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in parameters])
    vars(verb)["__signature__"] = signature
    verb.__annotations__ = {one.name: one.annotation for one in signature.parameters.values()}
    return verb


def _is_given(context: typer.Context, name: str) -> bool:
    """Return whether an option is on the command line or in the environment."""
    source = context.get_parameter_source(name)
    return source is not None and source.name in ("COMMANDLINE", "ENVIRONMENT")


def _fields(kind: type[Any]) -> list[OptionField]:
    """Return the options that a command line can give."""
    return [one for one in options_of(kind) if not one.about.python]


def _parameter(one: OptionField, *, optional: bool) -> inspect.Parameter:
    """Return the parameter from which typer makes a flag."""
    about, shape = one.about, _shape(one)
    metavar = about.metavar or ("KEY=VALUE" if shape.pairs else None)
    help_text = re.sub(r"\[(?=[a-z[])", r"\[", about.help)  # which would be a style
    facts: dict[str, Any] = {"help": help_text, "metavar": one.flag if one.is_argument else metavar}
    if about.variable:
        facts["envvar"] = about.variable
    if one.is_argument:
        declared = typer.Argument(**facts)
    else:
        names = [one.flag, *([about.short] if about.short else [])]
        declared = typer.Option(*names, min=about.least, max=about.most, rich_help_panel=one.group or None, **facts)
    default = inspect.Parameter.empty if one.required and not optional else None
    if not one.required and not shape.many:
        default = one.default
    hint = shape.hint if default is not None else shape.hint | None
    keyword = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(one.name, keyword, annotation=Annotated[hint, declared], default=default)


class _Shape(NamedTuple):
    """How the values of an option are written on a command line."""

    hint: Any  # what typer is told
    many: bool = False  # the flag may be repeated
    pairs: bool = False  # each is KEY=VALUE


def _shape(one: OptionField) -> _Shape:
    members = _members(one.hint)
    if any(get_origin(member) in (Sequence, Iterable) for member in members) and not one.about.separator:
        return _Shape(list[str], many=True)
    for simple in (bool, str, int, float, Path):
        if simple in members:
            return _Shape(simple)
    if Any in members or one.about.separator:
        return _Shape(str)
    origin = get_origin(members[0])
    if origin is Literal:
        return _Shape(members[0])
    return _Shape(list[str], many=True, pairs=True)


def _members(hint: Any) -> tuple[Any, ...]:
    """Return the types of a union but None, or the type itself."""
    if get_origin(hint) in (Union, types.UnionType):
        return tuple(one for one in get_args(hint) if one is not type(None))
    return (hint,)


def _value(one: OptionField, value: Any) -> Any:
    """Return what was written on the command line as a value of the option."""
    if "-" in (value if isinstance(value, list) else [value]) and _names_files(one.hint):
        raise BadValue("'-' is no file: jostle reads and writes files and folders; name one", fault="F139")
    if _shape(one).pairs:
        return parse_pairs(value)
    if one.about.separator:
        value = _split(one, value)
    return convert_value(one.hint, value, one.flag)


def _own_value(one: OptionField, value: Any) -> Any:
    """Return the value of an option that its verb declares, which may be left out."""
    return one.default if value is None else _value(one, value)


def _names_files(hint: Any) -> bool:
    """Return whether a value, or one of several, may be the path of a file."""
    return hint is Path or any(map(_names_files, get_args(hint)))


def _split(one: OptionField, text: str) -> list[Any]:
    """Return the parts of a text that holds several values, as numbers where the option asks for numbers."""
    parts = text.split(one.about.separator)
    if get_args(_members(one.hint)[0]) != (float,):
        return list(parts)
    try:
        return [float(part) for part in parts]
    except ValueError:
        raise BadValue(f"{one.flag} takes numbers with commas between them, as in 0.3,0.5; got {text!r}") from None
