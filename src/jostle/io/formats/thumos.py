"""THUMOS14 and MultiTHUMOS.

THUMOS14's official text: a file of detections, and ground truth as a folder of one file per class.

A line of detections is `video start end class score`, with the class numbers of `detclasslist.txt`. The folder
holds `<Class>_<subset>.txt` with lines `video start end`, `Ambiguous_<subset>.txt` for stretches in which nothing
is wrong, and may hold `detclasslist.txt`.

`thumos14.json` as ActionFormer, TriDet and TemporalMaxer use it: ActivityNet's JSON with rates and class numbers.

MultiTHUMOS in JSON: `{id: {"subset", "duration", "actions": [[class, start, end]]}}`. Classes are
numbers there; their names are in another file.
"""

from __future__ import annotations

import re
from pathlib import Path

from jostle.core.formatting import describe
from jostle.core.types.predictions import Predictions
from jostle.core.types.truth import Truth
from jostle.errors import BadValue, DataError
from jostle.io.files.atomic import write_folder, write_text
from jostle.io.files.class_numbers import THUMOS14_IDS, class_numbers, name_official_classes
from jostle.io.files.format import Format, FormatMatch, Kind, formats
from jostle.io.files.prediction_table import NameIndex, build_predictions, class_number
from jostle.io.files.source import Source
from jostle.io.files.tabular import parse_number, require_number
from jostle.io.files.truth_table import TruthOptions, TruthTable
from jostle.io.files.video_ids import file_name_for, quote_name, refuse_collisions
from jostle.io.formats import activitynet

_CLASS_FILE = re.compile(r"(.+)_([A-Za-z]+)\.txt(\.gz)?")
_AMBIGUOUS = "Ambiguous"
_CLASS_LIST = "detclasslist.txt"
_WIDTH = 5


def recognise(source: Source, kind: Kind | None) -> FormatMatch | None:
    if source.is_folder:
        return FormatMatch("truth", "it is a folder of one file per class") if _class_files(source.path) else None
    words = source.words
    if len(words) == _WIDTH and all(isinstance(parse_number(word), float) for word in words[1:]) and words[3].isdigit():
        return FormatMatch("predictions", "its lines have five fields")
    return None


def _class_files(folder: Path) -> dict[Path, tuple[str, str]]:
    """Return class and subset by file, sorted by name."""
    matches = {path: _CLASS_FILE.fullmatch(path.name) for path in sorted(folder.iterdir())}
    return {path: (match[1], match[2]) for path, match in matches.items() if match and path.is_file()}


def read(source: Source, fix: bool) -> Predictions:
    """Read the detections of a file, in the order of its lines; `.mpeg` is removed from video names."""
    index, labels = NameIndex(ids=True), NameIndex()
    columns: dict[str, list[float]] = {name: [] for name in ("video", "start", "end", "label", "score")}
    lines, left_out = [], {}
    texts = source.lines
    if source.is_cut:
        if not fix:
            raise source.cut_line()
        texts = texts[:-1]
        left_out["last line without an end, dropped"] = 1
    for line, text in enumerate(texts, 1):
        words = text.split()
        if not words:
            continue
        if len(words) != _WIDTH:
            raise DataError(
                f"{source.path}: line {line} has {len(words)} field(s), not the five of 'video start end class score'",
                fault="F39",
            )
        number = class_number(words[3])
        if number is None:
            raise DataError(
                f"{source.path}: line {line}: the class is {words[3][:40]!r}, not a number of {_CLASS_LIST}",
                fault="F45",
            )
        columns["video"].append(index[re.sub(r"\.mpeg$", "", words[0], flags=re.IGNORECASE)])
        columns["start"].append(require_number(source, line, "the start", words[1]))
        columns["end"].append(require_number(source, line, "the end", words[2]))
        columns["label"].append(labels[str(number)])
        columns["score"].append(require_number(source, line, "the score", words[4]))
        lines.append(line)
    predictions = build_predictions(
        source.path,
        videos=list(index.names),
        labels=[int(number) for number in labels.names],
        columns=columns,
        where=lambda row: f"line {lines[row]}",
        fix=fix,
        left_out=left_out,
    )
    return name_official_classes(predictions)


def read_truth(source: Source, options: TruthOptions) -> Truth:
    """Read ground truth from a folder; classes are sorted by number if it lists them, or by name."""
    table = TruthTable(source.path, options)
    files = _class_files(source.path)
    numbers = _class_list(source.path / _CLASS_LIST)
    order = {name: number for number, name in enumerate(numbers)}
    for path, (name, subset) in sorted(files.items(), key=lambda entry: order.get(entry[1][0], len(order))):
        for line, text in enumerate(Source(path).lines, 1):
            words = text.split()
            if not words:
                continue
            video = table.row_video(words[0], subset=subset)
            where = f"line {line} of {path.name}"
            times = [parse_number(word) for word in words[1:]]
            if name == _AMBIGUOUS:
                table.add_ambiguous(video, times, where=where)
            else:
                table.add(video, name, times, where=where)
    if numbers:
        table.set_label_ids(numbers)
    return table.finish()


def _class_list(path: Path) -> dict[str, int]:
    if not path.exists():
        return {}
    numbers: dict[str, int] = {}
    for line, text in enumerate(Source(path).lines, 1):
        words = text.split(maxsplit=1)
        if not words:
            continue
        number = class_number(words[0])
        if len(words) != 2 or number is None or words[1].strip() in numbers:
            raise DataError(f"{path}: line {line} is {text[:60]!r}, not a number and a class of its own", fault="F36")
        numbers[words[1].strip()] = number
    return numbers


def write(predictions: Predictions, path: Path) -> None:
    """Write predictions, one detection per line, with THUMOS14's class numbers."""
    _refuse_spaces(predictions.videos)
    numbers = class_numbers(predictions, THUMOS14_IDS).tolist()
    columns = (predictions.video, predictions.start, predictions.end, predictions.label, predictions.score)
    write_text(
        path,
        (
            f"{predictions.videos[video]} {start!r} {end!r} {numbers[label]} {score!r}\n"
            for video, start, end, label, score in zip(*(column.tolist() for column in columns), strict=True)
        ),
    )


def write_truth(truth: Truth, path: Path) -> None:
    """Write ground truth as a folder with one file per class and subset."""
    _refuse_spaces(truth.videos)
    files: dict[str, str] = {}

    def put(name: str, video: int, start: float, end: float) -> None:
        file = f"{name}_{truth.subsets[video] or 'all'}.txt"
        if file_name_for(file, "") != file or not _CLASS_FILE.fullmatch(file):
            raise BadValue(f"class {name!r} cannot be part of the name of a file; write JSON or CSV instead")
        files[file] = files.get(file, "") + f"{truth.videos[video]} {start!r} {end!r}\n"

    for video, start, end, label in zip(
        truth.video.tolist(), truth.start.tolist(), truth.end.tolist(), truth.label.tolist(), strict=True
    ):
        if truth.classes[label] == _AMBIGUOUS:
            raise BadValue(f"a class may not be called {_AMBIGUOUS!r} here; write JSON or CSV instead")
        put(truth.classes[label], video, start, end)
    spans = truth.ambiguous
    for video, start, end in zip(spans.video.tolist(), spans.start.tolist(), spans.end.tolist(), strict=True):
        put(_AMBIGUOUS, video, start, end)
    if truth.label_ids is not None:
        files[_CLASS_LIST] = "".join(f"{i} {name}\n" for i, name in zip(truth.label_ids, truth.classes, strict=True))
    refuse_collisions(files, str(path))
    write_folder(path, files)


def _refuse_spaces(videos: tuple[str, ...]) -> None:
    wrong = next((name for name in videos if not _is_word(name) or name.lower().endswith(".mpeg")), None)
    if wrong is not None:
        raise BadValue(f"video {quote_name(wrong)} cannot be the first word of a line; write JSON or CSV instead")


def _is_word(name: str) -> bool:
    """Return whether a name is a single word that does not make the file look like JSON or a pickle."""
    return name.split() == [name] and name.isprintable() and name[0] not in "{[(}]"


formats.add(
    "thumos14-text",
    Format(
        about="THUMOS14's text: lines of 'video start end class score', or a folder of one file per class",
        recognise=recognise,
        read_truth=read_truth,
        read_predictions=read,
        write_truth=write_truth,
        write_predictions=write,
        writes={"truth": ("",), "predictions": (".txt",)},
        holds=frozenset(("subset", "label_ids", "ambiguous", "numbers")),
    ),
)


def recognise_json(source: Source, kind: Kind | None) -> FormatMatch | None:
    entries = activitynet.entries_of(source)
    if not activitynet.is_thumos14(entries) or activitynet.is_recognition(entries):
        return None
    return FormatMatch("truth", "it has 'database'")


formats.add(
    "thumos14",
    Format(
        about="ActivityNet's JSON with 'fps', 'label_id' and segments in frames, as ActionFormer reads it",
        recognise=recognise_json,
        read_truth=activitynet.read,
        read_labels=activitynet.read_labels,
        write_truth=activitynet.write_thumos14,
        holds=activitynet.HOLDS,
    ),
)


def recognise_multithumos(source: Source, kind: Kind | None) -> FormatMatch | None:
    if not source.is_json or not source.document:
        return None
    first = next(iter(source.document.values()))
    return (
        FormatMatch("truth", "its entries have 'actions'") if isinstance(first, dict) and "actions" in first else None
    )


def read_multithumos(source: Source, options: TruthOptions) -> Truth:
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


formats.add(
    "multithumos",
    Format(about="MultiTHUMOS' JSON of numbered actions", recognise=recognise_multithumos, read_truth=read_multithumos),
)
