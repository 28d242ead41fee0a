"""Ego4D Moments Queries: `moments_val.json`, clips of long videos, each annotated by several people.

`{"videos": [{"video_uid", "split", "clips": [{"clip_uid", "video_start_sec", "video_end_sec", "annotations":
[{"labels": [{"primary", "label", "start_time", "end_time"}]}]}]}]}`; times count from the start of the clip. Only
labels that are `primary` count, as the challenge has it.
"""

from __future__ import annotations

from typing import Any

from jostle.core.types.truth import Truth
from jostle.errors import DataError
from jostle.io.files.format import Format, FormatMatch, Kind, formats
from jostle.io.files.source import Source
from jostle.io.files.text import describe
from jostle.io.files.truth_table import TruthOptions, TruthTable


def recognise(source: Source, kind: Kind | None) -> FormatMatch | None:
    if not source.is_json:
        return None
    videos = source.document.get("videos")
    first = videos[0] if isinstance(videos, list) and videos else None
    if isinstance(first, dict) and {"video_uid", "clips"} <= set(first):
        return FormatMatch("truth", "its 'videos' have 'clips'")
    return None


def read(source: Source, options: TruthOptions) -> Truth:
    """Read the primary moments of every clip, whose id is its `clip_uid`."""
    table = TruthTable(source.path, options)
    for index, video in enumerate(_list(source, source.plain_document, "videos", "the file")):
        if not isinstance(video, dict):
            raise DataError(f"{source.path}: video {index} is {describe(video)}, not an object", fault="F28")
        for clip in _list(source, video, "clips", f"video {index}"):
            uid = clip.get("clip_uid") if isinstance(clip, dict) else None
            if not isinstance(uid, str) or not uid:
                raise DataError(f"{source.path}: a clip of video {index} has no 'clip_uid'", fault="F28")
            own = table.open_video(uid, subset=video.get("split"), duration=_length(clip))
            for annotation in _list(source, clip, "annotations", f"clip {uid}"):
                labels = _list(source, annotation, "labels", f"clip {uid}") if isinstance(annotation, dict) else []
                for number, label in enumerate(labels):
                    if isinstance(label, dict) and label.get("primary"):
                        times = [label.get("start_time"), label.get("end_time")]
                        table.add(own, label.get("label"), times, where=f"label {number}")
    return table.finish()


def _length(clip: dict[str, Any]) -> float | None:
    times = [clip.get(name) for name in ("video_start_sec", "video_end_sec")]
    if not all(isinstance(time, int | float) and not isinstance(time, bool) for time in times):
        return None
    return float(times[1]) - float(times[0])  # type: ignore[arg-type]


def _list(source: Source, entry: dict[str, Any], name: str, where: str) -> list[Any]:
    values = entry.get(name)
    if values is None:  # withheld, as in the test set
        return []
    if not isinstance(values, list):
        raise DataError(f"{source.path}: '{name}' of {where} is {describe(values)}, not a list", fault="F28")
    return values


formats.add(
    "ego4d-moments",
    Format(about="Ego4D's JSON of moments in clips, the primary ones", recognise=recognise, read_truth=read),
)
