"""Moments that sentences describe, and predicted windows, in their published layouts and in tables of one's own.

| data set | layout |
|---|---|
| Charades-STA | lines `video start end##sentence`; copies with a fourth column before `##` are read too |
| QVHighlights | JSON lines, `qid query duration vid relevant_windows relevant_clip_ids saliency_scores` |
| ActivityNet-Captions | an object by video, `duration timestamps sentences` |
| one's own | rows with `video sentence`, `windows` or `start end`, and `id duration` |

Predicted windows are JSON lines as QVHighlights' (`qid pred_relevant_windows pred_saliency_scores`), rows with `id` and
`windows`, an object of windows by id, or CSV with `id start end score`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from jostle.core.formatting import describe
from jostle.core.types.language import (
    MomentItem,
    MomentPrediction,
    MomentPredictions,
    MomentSet,
    ScoredWindow,
    Window,
)
from jostle.errors import BadValue, DataError
from jostle.io.files.source import Source
from jostle.io.files.tabular import TableRow, read_rows, require_float
from jostle.io.formats.questions import video_id

_SENTENCE = ("sentence", "query", "caption", "text", "description")


def read_moments(path: str | Path, *, fix: bool = False) -> MomentSet:
    """Read sentences and their windows from a file whose layout is recognised.

    Args:
        fix: leave out windows that have no length instead of refusing the file.

    Raises:
        DataError: if the file is broken, is none of the known layouts (F28), or has a window without length (F30).
    """
    source = Source(path)
    try:
        items = _read(source, fix)
    except BadValue as error:
        raise DataError(f"{source.path}: {error}", fault="F30") from None
    if not items:
        raise DataError(f"{source.path}: holds no sentence with a window; check the file", fault="F27")
    try:
        return MomentSet(tuple(items))
    except BadValue as error:
        raise DataError(f"{source.path}: {error}; keep one of them", fault="F157") from None


def looks_like_moments(source: Source) -> bool:
    """Return whether a file holds sentences with windows."""
    try:
        if _is_charades(source):
            return True
        rows = read_rows(source)
        if rows:
            return _is_moment(rows[0])
        return rows is None and source.is_json and _is_captions(source.plain_document)
    except DataError:
        return False


def _is_charades(source: Source) -> bool:
    if not source.is_text:
        return False
    first = source.head.decode("utf-8", "replace").lstrip("\ufeff").split("\n", 1)[0]
    return "##" in first and len(first.partition("##")[0].split()) in (3, 4)


def _is_moment(row: TableRow) -> bool:
    keys = set(row.values)
    windows = {"windows", "relevant_windows", "timestamp"} & keys or {"start", "end"} <= keys
    return bool({"video", "vid"} & keys and set(_SENTENCE) & keys and (windows or {"qid", "query"} <= keys))


def _is_captions(document: dict[str, Any]) -> bool:
    first = next(iter(document.values()), None)
    return isinstance(first, dict) and {"timestamps", "sentences"} <= set(first)


def _read(source: Source, fix: bool) -> list[MomentItem]:
    if source.is_folder:
        raise DataError(f"{source.path}: is a folder; give the file of sentences", fault="F28")
    if _is_charades(source):
        return _charades(source, fix)
    rows = read_rows(source)
    if rows is not None:
        if rows and _is_moment(rows[0]):
            return [item for number, row in enumerate(rows) if (item := _row_item(number, row, fix))]
        raise _unknown(source, rows[0].values if rows else {})
    document = source.plain_document
    if not _is_captions(document):
        raise _unknown(source, document)
    return _captions(source, document, fix)


def _unknown(source: Source, content: object) -> DataError:
    return DataError(
        f"{source.path}: no sentences with windows in any known layout: it holds {describe(content)}; rows of your own "
        "have 'video', 'sentence', and 'windows' or 'start' and 'end'",
        fault="F28",
    )


def _charades(source: Source, fix: bool) -> list[MomentItem]:
    items, counts = [], Counter[str]()
    if source.is_cut and "##" not in source.text.rpartition("\n")[2]:
        raise source.cut_line()
    for number, line in enumerate(source.lines, 1):
        if not line.strip():
            continue
        where = f"{source.path}: line {number}"
        head, hashes, sentence = line.partition("##")
        words = head.split()
        if not hashes or len(words) not in (3, 4) or not sentence.strip():
            raise DataError(f"{where} is {line[:60]!r}, not 'video start end##sentence'; correct it", fault="F39")
        video = video_id(words[0])
        window = _window(words[1:3], where, fix)
        name = f"{video}/{counts[video]}"
        counts[video] += 1
        if window is not None:
            items.append(MomentItem(name, video, sentence.strip(), (window,)))
    return items


def _captions(source: Source, document: dict[str, Any], fix: bool) -> list[MomentItem]:
    items = []
    for name, entry in document.items():
        where = f"{source.path}: video {name!r}"
        stamps, sentences = (entry.get(key) if isinstance(entry, dict) else None for key in ("timestamps", "sentences"))
        if not isinstance(stamps, list) or not isinstance(sentences, list) or len(stamps) != len(sentences):
            raise DataError(
                f"{where} has {describe(stamps)} and {describe(sentences)}; give one window a sentence", fault="F39"
            )
        duration = TableRow(where, entry).number("duration")
        for number, (stamp, sentence) in enumerate(zip(stamps, sentences, strict=True)):
            window = _window(stamp, f"{where}, sentence {number}", fix)
            text = TableRow(where, {"sentence": sentence}).text("sentence").strip()
            if window is not None:
                items.append(MomentItem(f"{name}/{number}", video_id(name), text, (window,), duration))
    return items


def _row_item(number: int, row: TableRow, fix: bool) -> MomentItem | None:
    stamps = row.first("windows", "relevant_windows")
    if stamps is None and "timestamp" in row.values:
        stamps = [row.first("timestamp")]
    if stamps is None and "start" in row.values:
        stamps = [[row.first("start"), row.first("end")]]
    if stamps is None:
        stamps = []  # test sets do not publish their windows
    if not isinstance(stamps, list):
        raise DataError(f"{row.where}: the windows are {describe(stamps)}, not a list of [start, end]", fault="F39")
    windows = [_window(stamp, row.where, fix) for stamp in stamps]
    kept = tuple(window for window in windows if window is not None)
    if stamps and not kept:
        return None
    clips, ratings = _ratings(row)
    name = row.first("qid", "id", "desc_id")
    return MomentItem(
        str(number if name is None else name),
        video_id(row.text("vid", "video")),
        row.text(*[key for key in _SENTENCE if key in row.values][:1]).strip(),
        kept,
        row.number("duration"),
        clips,
        ratings,
    )


def _ratings(row: TableRow) -> tuple[tuple[int, ...], tuple[tuple[int, ...], ...]]:
    clips, ratings = row.first("relevant_clip_ids"), row.first("saliency_scores")
    if clips is None or ratings is None:
        return (), ()
    whole = isinstance(clips, list) and isinstance(ratings, list) and len(clips) == len(ratings)
    whole = whole and all(type(clip) is int and 0 <= clip < 1_000_000 for clip in clips)
    if not whole or not all(isinstance(one, list) and all(type(n) is int for n in one) for one in ratings):
        raise DataError(
            f"{row.where}: 'saliency_scores' must rate each of 'relevant_clip_ids'; correct it", fault="F39"
        )
    return tuple(clips), tuple(tuple(one) for one in ratings)


def _window(pair: object, where: str, fix: bool) -> Window | None:
    """Return a true window; None for one without length that `fix` leaves out."""
    if not isinstance(pair, list | tuple) or len(pair) != 2:
        raise DataError(f"{where}: a window is {describe(pair)}, not a start and an end", fault="F39")
    start, end = (require_float(value, f"{where}: a time") for value in pair)
    if 0 <= start < end:
        return start, end
    if fix:
        return None
    raise DataError(f"{where}: the window {start:g} to {end:g} s has no length; correct it, or pass --fix", fault="F30")


def read_windows(path: str | Path, moments: MomentSet | None = None) -> MomentPredictions:
    """Read predicted windows from a file whose layout is recognised.

    Args:
        moments: the sentences, for rows that give video and sentence instead of an id.

    Raises:
        DataError: if the file is broken or something else (F28), or gives a sentence twice (F157).
    """
    source = Source(path)
    rows = read_rows(source)
    if rows is None and not source.is_folder and source.is_json:
        document = source.plain_document
        rows = [
            TableRow(f"{source.path}: {name!r}", {"id": name, **_as_row(value)}) for name, value in document.items()
        ]
    if not rows:
        raise DataError(f"{source.path}: holds no predicted windows; give rows with 'id' and 'windows'", fault="F28")
    if rows[0].from_csv and {"start", "end"} <= set(rows[0].values):
        return MomentPredictions(_from_table(rows, moments))
    predictions: dict[str, MomentPrediction] = {}
    for row in rows:
        windows = row.first("pred_relevant_windows", "windows", "prediction", "pred")
        if not isinstance(windows, list):
            raise DataError(
                f"{row.where}: has no windows; it holds {describe(dict(row.values))}; give 'windows', a list of "
                "[start, end, score]",
                fault="F28",
            )
        name = _sentence_id(row, moments)
        if name in predictions:
            raise DataError(f"{row.where}: sentence {name!r} has windows already; keep one of them", fault="F157")
        saliency = row.first("pred_saliency_scores") or []
        if not isinstance(saliency, list):
            raise DataError(f"{row.where}: 'pred_saliency_scores' is {describe(saliency)}, not a list", fault="F39")
        scores = tuple(require_float(value, f"{row.where}: a saliency") for value in saliency)
        windows = [windows] if len(windows) == 2 and not isinstance(windows[0], list) else windows
        predictions[name] = MomentPrediction(tuple(_scored(row, i, one) for i, one in enumerate(windows)), scores)
    return MomentPredictions(predictions)


def _as_row(value: object) -> dict[str, object]:
    return value if isinstance(value, dict) else {"windows": value}


def _from_table(rows: Sequence[TableRow], moments: MomentSet | None) -> dict[str, MomentPrediction]:
    """Collect rows of CSV, one a window; without scores the order of the file ranks them."""
    windows: dict[str, list[ScoredWindow]] = {}
    for row in rows:
        own = windows.setdefault(_sentence_id(row, moments), [])
        pair = [row.first("start"), row.first("end")]
        own.append(_scored(row, len(own), pair if row.number("score") is None else [*pair, row.first("score")]))
    return {name: MomentPrediction(tuple(sorted(own, key=lambda one: -one[2]))) for name, own in windows.items()}


def _scored(row: TableRow, rank: int, window: object) -> ScoredWindow:
    if not isinstance(window, list) or len(window) not in (2, 3):
        raise DataError(
            f"{row.where}: a window is {describe(window)}, not [start, end] or [start, end, score]", fault="F39"
        )
    values = [require_float(value, f"{row.where}: a number of a window") for value in window]
    return values[0], values[1], values[2] if len(values) == 3 else -float(rank)


def _sentence_id(row: TableRow, moments: MomentSet | None) -> str:
    name = row.first("qid", "id")
    if name is not None and name != "":
        return str(name)
    if moments is None or not {"video", "vid"} & set(row.values):
        raise DataError(f"{row.where}: has no 'id'; give that of the sentence", fault="F45")
    video, text = video_id(row.text("vid", "video")), row.text(*_SENTENCE).strip()
    same = [item.id for item in moments.by_video.get(video, ()) if item.text == text]
    if len(same) > 1:
        raise DataError(f"{row.where}: {video!r} has this sentence {len(same)} times; give the id", fault="F157")
    return same[0] if same else f"{video}: {text}"
