"""Columns in CSV: `video_id,t_start,t_end,label,score`, or ground truth without the last.

Ground truth may have further columns: `subset`, `duration`, `fps`, `label_id` and DETAD's characteristics. Names
differ between projects, so many are known, TSP's among them. A file has no types: labels that are all whole
numbers are class numbers.

The CSV of one video that BSN and BMN in mmaction2 write: `action,start,end,tmin,tmax` for each snippet.
Every row becomes a detection of the one class `action` from `tmin` to `tmax`, scored by `action`; times are in the
file's own unit, which is often a share of the video. The scores of starts and ends are left out.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from jostle.core.types.predictions import Predictions
from jostle.core.types.truth import CHARACTERISTICS, Truth
from jostle.errors import BadValue, DataError
from jostle.io.files.atomic import write_text
from jostle.io.files.format import Format, FormatMatch, Kind, formats
from jostle.io.files.prediction_table import NameIndex, build_predictions, class_number, numbers_or_names
from jostle.io.files.source import Source
from jostle.io.files.tabular import format_csv, parse_number, read_csv_rows, require_number
from jostle.io.files.truth_table import TruthOptions, TruthTable
from jostle.io.files.video_ids import id_of

# The first alias in a header is used: TSP names both the video and its file.
ALIASES = {
    "video": ("video_id", "video", "video_name", "filename"),
    "start": ("t_start", "start", "begin"),
    "end": ("t_end", "end", "stop"),
    "label": ("label", "class", "category", "action_label"),
    "score": ("score", "confidence", "conf"),
    "subset": ("subset", "split"),
    "duration": ("duration", "video_duration"),
    "fps": ("fps",),
    "label_id": ("label_id",),
    "region": ("temporal_region_label",),
    **{name: (name.replace("-", "_"),) for name in CHARACTERISTICS},
}
_REQUIRED = ("video", "start", "end", "label")


def _columns(header: tuple[str, ...]) -> dict[str, int]:
    """Return the index of each known column by its canonical name."""
    names = [name.replace("-", "_").replace(" ", "_") for name in header]
    indices = {}
    for meaning, aliases in ALIASES.items():
        known = [names.index(alias) for alias in aliases if alias in names]
        if known:
            indices[meaning] = known[0]
    return indices


def recognise(source: Source, kind: Kind | None) -> FormatMatch | None:
    if not source.is_text:
        return None
    columns = _columns(source.header)
    if {"video", "start", "end"} <= set(columns):
        if "score" in columns:
            return FormatMatch("predictions", "it has a column of scores")
        return FormatMatch("truth", "it has no column of scores")
    for separator in (";", "\t"):
        if len(source.header) == 1 and {"video", "start"} <= set(_columns(tuple(source.header[0].split(separator)))):
            raise DataError(
                f"{source.path}: its columns are separated by {separator!r}; save it with commas", fault="F25"
            )
    return None


def _check_columns(source: Source, required: tuple[str, ...]) -> dict[str, int]:
    if len(set(source.header)) < len(source.header):
        twice = next(name for name in source.header if source.header.count(name) > 1)
        raise DataError(f"{source.path}: line 1: the column {twice!r} appears twice; remove one", fault="F33")
    columns = _columns(source.header)
    for name in required:
        if name not in columns:
            known = ", ".join(ALIASES[name])
            raise DataError(
                f"{source.path}: line 1: no column of {name}s; name one of {known}, found {', '.join(source.header)}",
                fault="F28",
            )
    return columns


def read(source: Source, fix: bool) -> Predictions:
    """Read the detections of a table, in the order of its lines."""
    columns = _check_columns(source, (*_REQUIRED, "score"))
    video, start, end, label, score = (columns[name] for name in (*_REQUIRED, "score"))
    index, labels = NameIndex(ids=True), NameIndex()
    videos, codes, lines = array("i"), array("i"), array("q")
    starts, ends, scores = array("d"), array("d"), array("d")
    left_out = {}
    last = source.text.count("\n") + 1 if source.is_cut else 0
    for line, fields in read_csv_rows(source):
        if line == last:
            if not fix:
                raise source.cut_line()
            left_out["last line without an end, dropped"] = 1
            break
        if not fields[video] or not fields[label].strip():
            missing = "video" if not fields[video] else "label"
            raise DataError(f"{source.path}: line {line} names no {missing}; fill it in", fault="F45")
        videos.append(index[fields[video]])
        starts.append(require_number(source, line, "the start", fields[start]))
        ends.append(require_number(source, line, "the end", fields[end]))
        codes.append(labels[fields[label]])
        scores.append(require_number(source, line, "the score", fields[score]))
        lines.append(line)
    return build_predictions(
        source.path,
        videos=list(index.names),
        labels=numbers_or_names(list(labels.names)),
        columns={"video": videos, "start": starts, "end": ends, "label": codes, "score": scores},
        where=lambda row: f"line {lines[row]}",
        fix=fix,
        left_out=left_out,
    )


def read_truth(source: Source, options: TruthOptions) -> Truth:
    """Read the instances of a table, in the order of its lines."""
    columns = _check_columns(source, _REQUIRED)
    rows = list(read_csv_rows(source))
    names = numbers_or_names(sorted({fields[columns["label"]] for _, fields in rows}))
    numbered = bool(names) and isinstance(names[0], int)

    def field(fields: list[str], name: str) -> str | None:
        return fields[columns[name]].strip() or None if name in columns else None

    known = [name for name in CHARACTERISTICS if name in columns]
    table = TruthTable(source.path, options)
    for line, fields in rows:
        spelled = fields[columns["video"]]
        if not spelled:
            raise DataError(f"{source.path}: line {line} names no video; fill it in", fault="F30")
        video = table.row_video(
            spelled,
            subset=field(fields, "subset"),
            duration=_value(field(fields, "duration")),
            fps=_value(field(fields, "fps")),
        )
        if (field(fields, "region") or "action").lower() != "action":
            continue  # TSP lists the background too
        label, number = fields[columns["label"]], field(fields, "label_id")
        if number is None and numbered:
            number = label
        table.add(
            video,
            label,
            [parse_number(fields[columns["start"]]), parse_number(fields[columns["end"]])],
            where=f"line {line}",
            label_id=number if number is None or class_number(number) is None else class_number(number),
            facts={name: _value(field(fields, name)) for name in known},
        )
    return table.finish()


def _value(field: str | None) -> float | str | None:
    return None if field is None else parse_number(field)


def write(predictions: Predictions, path: Path) -> None:
    """Write predictions, one detection per line."""
    videos, classes = predictions.videos, predictions.classes
    _refuse_unwritable((*videos, *classes))
    columns = (predictions.video, predictions.start, predictions.end, predictions.label, predictions.score)
    rows = (
        (videos[video], start, end, classes[label], score)
        for video, start, end, label, score in zip(*(column.tolist() for column in columns), strict=True)
    )
    write_text(path, format_csv(("video_id", "t_start", "t_end", "label", "score"), rows))


def write_truth(truth: Truth, path: Path) -> None:
    """Write ground truth, one instance per line, with columns for all further attributes."""
    _refuse_unwritable((*truth.videos, *truth.classes))
    extras: dict[str, Callable[[int, int], object]] = {}
    if any(truth.subsets):
        extras["subset"] = lambda row, video: truth.subsets[video]
    for name, values in (("duration", truth.duration), ("fps", truth.fps)):
        if (values == values).any():
            extras[name] = lambda row, video, values=values: _blank_nan(float(values[video]))  # type: ignore[misc]
    ids = truth.label_ids
    if ids is not None:
        extras["label_id"] = lambda row, video: ids[truth.label[row]]
    for name, values in truth.characteristics.items():
        extras[name] = lambda row, video, values=values: _blank_nan(float(values[row]))  # type: ignore[misc]

    def rows() -> Iterator[list[object]]:
        for row, (video, start, end, label) in enumerate(
            zip(truth.video.tolist(), truth.start.tolist(), truth.end.tolist(), truth.label.tolist(), strict=True)
        ):
            more = [value(row, video) for value in extras.values()]
            yield [truth.videos[video], start, end, truth.classes[label], *more]

    write_text(path, format_csv(("video_id", "t_start", "t_end", "label", *extras), rows()))


def _refuse_unwritable(names: Iterable[str]) -> None:
    wrong = next((name for name in names if not name or set(name) & set("\r\0")), None)
    if wrong is not None:
        raise BadValue(f"{wrong!r} cannot be a field of a table; write JSON instead")


def _blank_nan(value: float) -> float | str:
    return value if value == value else ""


formats.add(
    "csv",
    Format(
        about="a table with the columns video_id,t_start,t_end,label and, for predictions, score",
        recognise=recognise,
        read_truth=read_truth,
        read_predictions=read,
        write_truth=write_truth,
        write_predictions=write,
        writes={"truth": (".csv",), "predictions": (".csv",)},
        holds=frozenset(("subset", "duration", "fps", "label_ids", "characteristics", "row_order", "names", "numbers")),
    ),
)


_PROPOSAL_COLUMNS = {"start": "tmin", "end": "tmax", "score": "action"}


def recognise_proposals(source: Source, kind: Kind | None) -> FormatMatch | None:
    if {"action", "tmin", "tmax"} <= set(source.header):
        return FormatMatch("predictions", "it has the columns 'action', 'tmin' and 'tmax'")
    return None


def read_proposals(source: Source, fix: bool) -> Predictions:
    """Read the snippets of the video that the file is named after."""
    indices = {name: source.header.index(column) for name, column in _PROPOSAL_COLUMNS.items()}
    columns: dict[str, list[float]] = {name: [] for name in ("video", "label", *indices)}
    lines = []
    for line, fields in read_csv_rows(source):
        for name, index in indices.items():
            columns[name].append(require_number(source, line, f"'{_PROPOSAL_COLUMNS[name]}'", fields[index]))
        columns["video"].append(0)
        columns["label"].append(0)
        lines.append(line)
    return build_predictions(
        source.path,
        videos=[id_of(source.path.with_suffix("") if source.path.suffix == ".gz" else source.path)],
        labels=["action"],
        columns=columns,
        where=lambda row: f"line {lines[row]}",
        fix=fix,
    )


formats.add(
    "proposal-csv",
    Format(
        about="mmaction2's CSV of the snippets of one video",
        recognise=recognise_proposals,
        read_predictions=read_proposals,
    ),
)
