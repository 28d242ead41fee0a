"""MultiTHUMOS in JSON: `{id: {"subset", "duration", "actions": [[class, start, end]]}}`.

Classes are numbers there; their names are in another file.
"""

from __future__ import annotations

from jostle.core.types.truth import Truth
from jostle.errors import DataError
from jostle.io.files.format import Format, FormatMatch, Kind, formats
from jostle.io.files.source import Source
from jostle.io.files.text import describe
from jostle.io.files.truth_table import TruthOptions, TruthTable
from jostle.io.files.video_ids import quote_name


def recognise(source: Source, kind: Kind | None) -> FormatMatch | None:
    if not source.is_json or not source.document:
        return None
    first = next(iter(source.document.values()))
    return (
        FormatMatch("truth", "its entries have 'actions'") if isinstance(first, dict) and "actions" in first else None
    )


def read(source: Source, options: TruthOptions) -> Truth:
    table = TruthTable(source.path, options)
    for key, entry in source.plain_document.items():
        actions = entry.get("actions") if isinstance(entry, dict) else None
        if not isinstance(entry, dict) or not isinstance(actions, list):
            raise DataError(
                f"{source.path}: video {quote_name(key)} is {describe(entry)}, not an object with 'actions'",
                fault="F28",
            )
        video = table.open_video(key, subset=entry.get("subset"), duration=entry.get("duration"))
        for i, action in enumerate(actions):
            where = f"action {i}"
            if not isinstance(action, list) or not action or isinstance(action[0], bool):
                table.refuse(video, f"{where} is {describe(action)}, not [class, start, end]")
                continue
            label = action[0]
            number = label if isinstance(label, int) else None
            table.add(video, str(label) if number is not None else label, action[1:], where=where, label_id=number)
    return table.finish()


formats.add("multithumos", Format(about="MultiTHUMOS' JSON of numbered actions", recognise=recognise, read_truth=read))
