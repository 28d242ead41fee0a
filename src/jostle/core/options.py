"""Options of verbs, each declared once: keywords, flags, keys of settings files and records follow from the field."""

from __future__ import annotations

import builtins
import difflib
import inspect
import sys
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import MISSING, Field, dataclass, fields, replace
from enum import Enum
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from jostle.core.option_types import check_option

P = ParamSpec("P")
C = TypeVar("C")
R = TypeVar("R")

_KEY = "jostle"
_WIDTH = 110  # of a line of a docstring


class Role(Enum):
    """What an option means for results: whether two runs with different values can be one, or be compared."""

    SAME = "same"  # of the question: only results with equal values are comparable
    ENTRY = "entry"  # what is compared
    CONDITION = "condition"  # changes results of one entry, so that comparisons have to name it
    BITS = "bits"  # changes last digits only
    SESSION = "session"  # of this call: results do not depend on it, and it is not recorded


@dataclass(frozen=True)
class Option:
    """Description of an option beside its type and default, which are those of its field."""

    help: str  # for the command line and Python
    role: Role = Role.SESSION
    more: str = ""  # for Python alone
    flag: str = ""  # by default the name of the field
    short: str = ""
    metavar: str = ""
    variable: str = ""  # of the environment
    least: float | None = None
    most: float | None = None
    separator: str = ""  # splits the text of the flag, where the option is a list
    python: bool = False  # whether only Python can give it, as it is an object
    words: str = ""  # what a condition is called in comparisons; by default its name
    default_words: str = ""  # the value in words of a run without special options; by default the field's default


def option(
    help: str,
    role: Role = Role.SESSION,
    *,
    more: str = "",
    flag: str = "",
    short: str = "",
    metavar: str = "",
    variable: str = "",
    least: float | None = None,
    most: float | None = None,
    separator: str = "",
    python: bool = False,
    words: str = "",
    default_words: str = "",
) -> dict[str, Any]:
    """Return the metadata of a field or parameter that is an option; see `Option` for the arguments."""
    about = Option(
        help, role, more, flag, short, metavar, variable, least, most, separator, python, words, default_words
    )
    return {_KEY: about}


def reworded(group: type[Any], name: str, help: str = "", **changes: Any) -> dict[str, Any]:
    """Return the metadata of an option of a group for another place; what is not given is as it is there.

    Args:
        help: words for that place; `more` is then of that place too.
        changes: other fields of `Option`.
    """
    about = described(group.__dataclass_fields__[name])
    words = {"help": help, "more": ""} if help else {}
    return {_KEY: replace(about, **words | changes)}


def described(field: Field[Any]) -> Option:
    """Return the description of a field that is an option, or a fact that follows from some."""
    about: Option = field.metadata[_KEY]
    return about


def described_parameter(parameter: inspect.Parameter, hint: Any) -> OptionField | None:
    """Return the option that a parameter is; None if its annotation does not describe one.

    One that can be given by position is positional on the command line too.
    """
    for about in getattr(hint, "__metadata__", ()):
        if isinstance(about, dict) and _KEY in about:
            default = MISSING if parameter.default is parameter.empty else parameter.default
            positional = parameter.kind is not parameter.KEYWORD_ONLY
            return OptionField(parameter.name, hint.__origin__, default, positional, "", about[_KEY])
    return None


@dataclass(frozen=True)
class OptionField:
    """An option as a field of a dataclass or a parameter: name, type, default and description."""

    name: str
    hint: Any
    default: Any  # `dataclasses.MISSING` if it must be given
    positional: bool
    group: str  # heading of the class that declares it
    about: Option

    @property
    def required(self) -> bool:
        """Whether it must be given."""
        return self.default is MISSING

    @property
    def is_argument(self) -> bool:
        """Whether the command line takes it by position; one that Python takes so may have a flag there."""
        return self.positional and not self.about.flag

    @property
    def flag(self) -> str:
        """The flag on the command line; of an argument its name there."""
        if self.is_argument:
            return self.about.metavar or self.name.upper()
        return self.about.flag or f"--{self.name.replace('_', '-')}"


def options_of(kind: type[Any]) -> tuple[OptionField, ...]:
    """Return the options of a dataclass: positional ones, those of its bases in their order, then its own."""
    hints = dict(_hints(kind))
    groups = _groups(kind)
    group_of = {name: group for group in reversed(groups) for name in group.__annotations__}
    found = [_option_field(field, hints[field.name], group_of[field.name]) for field in fields(kind)]
    last = len(groups)
    order = {group: last if group is kind else number for number, group in enumerate(groups)}
    return tuple(sorted(found, key=lambda one: (not one.positional, order[group_of[one.name]])))


def options_in(*groups: type[Any]) -> frozenset[str]:
    """Return the names of the options of groups."""
    return frozenset(one.name for group in groups for one in options_of(group))


def part_of(group: type[C], settings: Any) -> C:
    """Return the options of one group of settings."""
    return group(**{one.name: getattr(settings, one.name) for one in options_of(group)})


def _groups(kind: type[Any]) -> tuple[type[Any], ...]:
    return tuple(one for one in kind.__mro__ if "__annotations__" in vars(one))


def _option_field(field: Field[Any], hint: Any, group: type[Any]) -> OptionField:
    heading = inspect.getdoc(group) or ""
    return OptionField(field.name, hint, field.default, not field.kw_only, heading, described(field))


class _Names(dict[str, Any]):
    """Names of a module; one that is imported for type checkers alone stands for any type."""

    def __missing__(self, name: str) -> Any:
        return getattr(builtins, name, Any)


def _hints(kind: type[Any]) -> Iterator[tuple[str, Any]]:
    """Yield name and type of each field; `typing.get_type_hints` needs all modules that type checkers see."""
    for group in _groups(kind):
        names = _Names(vars(sys.modules[group.__module__]))
        for name, text in group.__annotations__.items():
            yield name, eval(text, {}, names) if isinstance(text, str) else text


def takes(kind: Callable[P, C]) -> Callable[[Callable[[C], R]], Callable[P, R]]:
    """Give a function of settings the fields of their dataclass as keywords, for callers and for type checkers.

    The docstring gets the arguments from the descriptions of the options.
    """

    def decorate(function: Callable[[C], R]) -> Callable[P, R]:
        by_name = inspect.signature(kind).parameters
        parameters = [by_name[one.name] for one in options_of(kind)]  # type: ignore[arg-type]
        result = inspect.signature(function).return_annotation
        signature = inspect.Signature(parameters, return_annotation=result)
        hints = {one.name: one.hint for one in options_of(kind)}  # type: ignore[arg-type]

        @wraps(function)
        def call(*arguments: P.args, **keywords: P.kwargs) -> R:
            try:
                signature.bind(*arguments, **keywords)
            except TypeError as error:
                unknown = [name for name in keywords if name not in by_name]
                near = difflib.get_close_matches(unknown[0], by_name, n=1) if unknown else []
                hint = f"; did you mean {near[0]}?" if near else ""
                raise TypeError(f"{function.__name__}() {error}{hint}") from None
            for name, value in signature.bind(*arguments, **keywords).arguments.items():
                check_option(name, hints[name], value)
            return function(kind(*arguments, **keywords))

        vars(call)["__signature__"] = signature
        call.__doc__ = _with_arguments(inspect.getdoc(function) or "", kind)
        return call

    return decorate


def _with_arguments(text: str, kind: Any) -> str:
    """Insert the section of arguments behind the description of a docstring."""
    lines = ["Args:"]
    for one in options_of(kind):
        help_text = one.about.help
        if help_text.split()[0].istitle():
            help_text = help_text[:1].lower() + help_text[1:]
        words = f"{one.name}: {help_text} {one.about.more}".rstrip()
        lines += textwrap.wrap(words, _WIDTH, initial_indent="    ", subsequent_indent="        ")
    about, mark, rest = text.partition("\n\nRaises:")
    return "\n".join([about, "", *lines]) + mark + rest
