"""Base of results: each says its tables and notes once, and what it is as JSON follows from its fields."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any, ClassVar

from jostle.core.tables import Table, html_notes
from jostle.errors import BadValue


class Result:
    """Result that a function of the API returns and a verb prints.

    A subclass is a dataclass and overrides what it has: `tables`, `notes`, `written`. JSON is derived from its fields;
    `to_dict` is overridden only where the documented layout is another.

    Attributes:
        json_keys: fields and properties in the order of JSON, where these are not just the fields.
    """

    json_keys: ClassVar[tuple[str, ...]] = ()

    def tables(self) -> tuple[Table, ...]:
        """Return the tables, of which every form of the result is made; the first is the main one."""
        return ()

    def notes(self) -> tuple[str, ...]:
        """Return remarks that are needed to read the tables."""
        return ()

    def written(self) -> tuple[Path, ...]:
        """Return the paths that were written, which a verb prints."""
        return ()

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain values for JSON; shares are fractions."""
        return {"format": 1, **_values(self)}

    def to_frame(self) -> Any:
        """Return the main table as a pandas data frame, values as fractions.

        Raises:
            BadValue: if it has no table.
            MissingExtra: if pandas is not installed.
        """
        tables = self.tables()
        if not tables:
            raise BadValue(f"{type(self).__name__} has no table; to_dict() has its values")
        return tables[0].frame()

    def _repr_html_(self) -> str:
        first, *others = self.tables() or (Table(type(self).__name__, (), ()),)
        html = first.html() + "".join(table.html(folded=True) for table in others)
        notes = (*map(str, self.written()), *self.notes())
        return f'<div class="jostle">{html}{html_notes(notes)}</div>'


@dataclass(frozen=True)
class Written(Result):
    """Files that a function wrote which returns their paths alone.

    Attributes:
        content: values for JSON.
        paths: what a verb prints.
        remarks: notes.
    """

    content: Mapping[str, Any]
    paths: tuple[Path, ...]
    remarks: tuple[str, ...] = ()

    def notes(self) -> tuple[str, ...]:
        return self.remarks

    def written(self) -> tuple[Path, ...]:
        return self.paths

    def to_dict(self) -> dict[str, Any]:
        content: dict[str, Any] = plain(self.content)
        return content if "format" in content else {"format": 1, **content}


def plain(value: Any) -> Any:
    """Return a value as JSON has it: dataclasses as objects, arrays and tuples as lists, paths and keys as text.

    A result within another has no `format` of its own.

    >>> plain({0.5: (1, Path("a"))})
    {'0.5': [1, 'a']}
    """
    if isinstance(value, Result):
        return {key: item for key, item in value.to_dict().items() if key != "format"}
    if is_dataclass(value) and not isinstance(value, type):
        return _values(value)
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, Path):
        return str(value)
    return value.tolist() if hasattr(value, "tolist") else value  # numpy, which is not imported here


def _values(value: Any) -> dict[str, Any]:
    keys = getattr(value, "json_keys", ()) or tuple(one.name for one in fields(value))
    return {key: plain(getattr(value, key)) for key in keys}
