"""Questions with options in their published layouts, in the Hub's renamed copies, and in tables of one's own.

| data set | layout |
|---|---|
| MVBench | a list a task, `video question candidates answer` (text), `start end` |
| Video-MME | rows with `videoID question_id task_type question options answer` (letter) |
| EgoSchema | rows with `q_uid question`, `option 0` to `option 4`; right options in `subset_answers.json` beside it |
| NExT-QA | CSV, `video question answer qid type a0 .. a4`; TP is counted as TN |
| Perception Test | an object by video, `mc_question` with `id question options answer_id area` |
| TempCompass | an object by video and dimension, options inside the question; or yes and no |
| MLVU | rows with `video question candidates answer question_type` |
| one's own | rows with `video question options answer`, and `id type start end needs_order` |
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from jostle.core.formatting import describe
from jostle.core.types.language import QuestionItem, QuestionSet
from jostle.errors import BadValue, DataError
from jostle.io.files.source import Source
from jostle.io.files.tabular import TableRow, read_rows
from jostle.io.files.text import read_json
from jostle.io.files.video_ids import normalize_id
from jostle.io.video.video_source import video_suffixes

_LETTERED = re.compile(r"\s*\(?([A-Z])[.):]\s*(.*?)\s*", re.DOTALL)
_NAMED = re.compile(r"\s*((?:Option|Sentence|Caption|Description|Statement)\s+\w+)\s*:\s*(.*?)\s*", re.IGNORECASE)
YES_NO = ("yes", "no")
_SUBSET_ANSWERS = "subset_answers.json"


def read_questions(path: str | Path) -> QuestionSet:
    """Read questions with options from a file, or from a folder with a file a task, whose layout is recognised.

    Raises:
        DataError: if the file is broken, is none of the known layouts (F28), or has a right option that is none (F154).
    """
    source = Source(path)
    if source.is_folder:
        return _read_folder(source)
    try:
        items = _read_file(source)
    except BadValue as error:
        raise DataError(f"{source.path}: {error}; correct the file", fault="F154") from None
    if not items:
        raise DataError(f"{source.path}: holds no question; check the file", fault="F27")
    try:
        return QuestionSet(tuple(items))
    except BadValue as error:
        raise DataError(f"{source.path}: {error}; keep one of them", fault="F157") from None


def looks_like_questions(source: Source) -> bool:
    """Return whether a file holds questions with options."""
    try:
        rows = read_rows(source)
        if rows:
            return _layout_of(rows[0]) is not None
        return rows is None and source.is_json and _nested_layout(source.plain_document) is not None
    except DataError:
        return False


def _read_folder(source: Source) -> QuestionSet:
    files = sorted(file for file in source.path.iterdir() if file.suffix.lower() in (".json", ".jsonl", ".csv"))
    files = [file for file in files if looks_like_questions(Source(file))]
    if not files:
        raise DataError(f"{source.path}: holds no file of questions; give a file, or a folder of them", fault="F28")
    items = [item for file in files for item in read_questions(file).items]
    ids = Counter(item.id for item in items)
    if max(ids.values()) > 1:  # numbered within each file
        items = [replace(item, id=f"{file.stem}/{item.id}") for file in files for item in read_questions(file).items]
    return QuestionSet(tuple(items))


def _read_file(source: Source) -> list[QuestionItem]:
    rows = read_rows(source)
    if rows is not None:
        layout = _layout_of(rows[0]) if rows else None
        if layout is None:
            raise _unknown(source, rows[0].values if rows else {})
        return layout(source, rows)
    document = source.plain_document
    nested = _nested_layout(document)
    if nested is None:
        raise _unknown(source, document)
    return nested(source, document)


def _unknown(source: Source, content: object) -> DataError:
    return DataError(
        f"{source.path}: no questions with options in any known layout: it holds {describe(content)}; rows of your own "
        "have 'video', 'question', 'options' and 'answer'",
        fault="F28",
    )


Layout = Callable[[Source, Sequence[TableRow]], list[QuestionItem]]
Nested = Callable[[Source, dict[str, Any]], list[QuestionItem]]


def _layout_of(row: TableRow) -> Layout | None:
    """Return the function that reads rows with these keys."""
    keys = set(row.values)
    has_question = "question" in keys
    if {"a0", "a1", "qid"} <= keys and has_question:
        return _next_qa
    if "q_uid" in keys and {"option 0", "option 1"} <= keys:
        return _egoschema
    if "video_idx" in keys and "option" in keys:
        return _egoschema_hub
    if {"answer_id", "options"} <= keys and has_question:
        return _perception_test_hub
    if {"videoID", "options"} <= keys or {"video_id", "options", "question_id"} <= keys:
        return _video_mme
    if "candidates" in keys and has_question:
        return _candidates
    if "dim" in keys and has_question:
        return _tempcompass_hub
    if {"video_name", "task_type", "answer"} <= keys and has_question and "options" not in keys:
        return _mlvu_hub
    if "video" in keys and has_question and ("options" in keys or {"option_0", "option_1"} <= keys):
        return _own
    return None


def _nested_layout(document: dict[str, Any]) -> Nested | None:
    """Return the function that reads an object of videos."""
    first = next(iter(document.values()), None)
    if not isinstance(first, dict):
        return None
    if "mc_question" in first:
        return _perception_test
    inner = next(iter(first.values()), None)
    if isinstance(inner, list) and inner and isinstance(inner[0], dict) and {"question", "answer"} <= set(inner[0]):
        return _tempcompass
    return None


def _next_qa(source: Source, rows: Sequence[TableRow]) -> list[QuestionItem]:
    items = []
    for row in rows:
        options = tuple(
            row.text(f"a{i}") for i in range(sum(key in row.values for key in ("a0", "a1", "a2", "a3", "a4")))
        )
        video = video_id(row.text("video"))
        answer = _index(row, row.first("answer"), options)
        kind = str(row.first("type") or "")
        items.append(
            QuestionItem(
                f"{video}_{row.text('qid')}",
                video,
                row.text("question"),
                options,
                answer,
                "TN" if kind == "TP" else kind,
            )
        )
    return items


def _egoschema(source: Source, rows: Sequence[TableRow]) -> list[QuestionItem]:
    beside = source.path.with_name(_SUBSET_ANSWERS)
    answers = read_json(beside) if beside.is_file() else {}
    items = []
    for row in rows:
        name = row.text("q_uid")
        options = tuple(row.text(f"option {i}") for i in range(sum(f"option {i}" in row.values for i in range(5))))
        answer = row.first("answer", "truth") if "answer" in row.values or "truth" in row.values else answers.get(name)
        text = row.text("question") if "question" in row.values else ""
        items.append(QuestionItem(name, name, text, options, _index(row, answer, options)))
    return items


def _egoschema_hub(source: Source, rows: Sequence[TableRow]) -> list[QuestionItem]:
    items = []
    for number, row in enumerate(rows):
        labelled = [_LETTERED.fullmatch(option) for option in row.texts("option")]
        options = tuple(
            match[2] if match and all(labelled) else option
            for match, option in zip(labelled, row.texts("option"), strict=True)
        )
        video = video_id(row.text("video_idx"))
        name = str(row.first("question_idx", "q_uid", "id") or number)
        items.append(
            QuestionItem(name, video, row.text("question"), options, _index(row, row.first("answer"), options))
        )
    return items


def _perception_test(source: Source, document: dict[str, Any]) -> list[QuestionItem]:
    items = []
    for name, entry in document.items():
        questions = entry.get("mc_question") if isinstance(entry, dict) else None
        if not isinstance(questions, list) or not all(isinstance(one, dict) for one in questions):
            raise DataError(f"{source.path}: video {name!r} has {describe(questions)} as 'mc_question'", fault="F39")
        video = video_id(name)
        for question in questions:
            row = TableRow(f"{source.path}: video {name!r}", question)
            options = row.texts("options")
            answer = _index(row, row.first("answer_id"), options)
            number = row.first("id")
            kind = str(row.first("area") or "")
            items.append(QuestionItem(f"{video}_{number}", video, row.text("question"), options, answer, kind))
    return items


def _perception_test_hub(source: Source, rows: Sequence[TableRow]) -> list[QuestionItem]:
    items = []
    for row in rows:
        options = row.texts("options")
        video = video_id(row.text("video_name", "video", "video_id"))
        number = row.first("question_id", "id")
        answer = _index(row, row.first("answer_id"), options)
        items.append(
            QuestionItem(
                f"{video}_{number}", video, row.text("question"), options, answer, str(row.first("area") or "")
            )
        )
    return items


def _video_mme(source: Source, rows: Sequence[TableRow]) -> list[QuestionItem]:
    items = []
    for row in rows:
        options = tuple(match[2] if (match := _LETTERED.fullmatch(one)) else one for one in row.texts("options"))
        items.append(
            QuestionItem(
                row.text("question_id"),
                video_id(row.text("videoID", "video_id")),
                row.text("question"),
                options,
                _letter(row, row.first("answer"), options),
                str(row.first("task_type") or ""),
            )
        )
    return items


def _candidates(source: Source, rows: Sequence[TableRow]) -> list[QuestionItem]:
    """Read MVBench, a file a task, and MLVU: the answer is the text of an option."""
    task = source.path.name.partition(".")[0]
    items = []
    for number, row in enumerate(rows):
        options = row.texts("candidates")
        kind = str(row.first("question_type", "task_type") or task)
        start, end = row.number("start"), row.number("end")
        items.append(
            QuestionItem(
                str(row.first("id", "question_id") or f"{kind}_{number}"),
                video_id(row.text("video", "video_name")),
                row.text("question"),
                options,
                _text(row, row.first("answer"), options),
                kind,
                start,
                end,
            )
        )
    return items


def _mlvu_hub(source: Source, rows: Sequence[TableRow]) -> list[QuestionItem]:
    items = []
    for number, row in enumerate(rows):
        text, options, _ = split_options(row.text("question"))
        if not options:
            raise DataError(f"{row.where}: the question lists no options such as '(A) ...'", fault="F39")
        kind = row.text("task_type")
        name = str(row.first("question_id", "id") or f"{kind}_{number}")
        answer = _letter(row, row.first("answer"), options)
        items.append(QuestionItem(name, video_id(row.text("video_name")), text, options, answer, kind))
    return items


def _tempcompass(source: Source, document: dict[str, Any]) -> list[QuestionItem]:
    rows = []
    for video, dimensions in document.items():
        for dimension, questions in dimensions.items() if isinstance(dimensions, dict) else ():
            if not isinstance(questions, list) or not all(isinstance(one, dict) for one in questions):
                raise DataError(f"{source.path}: {video!r}, {dimension!r} is {describe(questions)}", fault="F39")
            for question in questions:
                where = f"{source.path}: video {video!r}, {dimension!r}"
                rows.append(TableRow(where, {**question, "video_id": video, "dim": dimension}))
    return _tempcompass_hub(source, rows)


def _tempcompass_hub(source: Source, rows: Sequence[TableRow]) -> list[QuestionItem]:
    """Read rows of TempCompass: the options are lines of the question, and the answer is a whole line; or yes or no."""
    counts: Counter[str] = Counter()
    items = []
    for row in rows:
        video, dimension = video_id(row.text("video_id", "video")), row.text("dim")
        text, options, names = split_options(row.text("question"))
        answer = row.text("answer", "gt-answer")
        form = "caption_matching" if any(len(name) > 1 for name in names) else "multi-choice"
        if not options:
            if answer.strip().lower().strip(".") not in YES_NO:
                raise DataError(
                    f"{row.where}: the question lists no options, and its answer is neither yes nor no", fault="F39"
                )
            form, options, answer = "yes_no", YES_NO, answer.strip().lower().strip(".")
        key = f"{form}/{video}/{dimension}"
        right = _labelled(row, answer, options, names)
        labels = names if form == "caption_matching" else ()
        items.append(QuestionItem(f"{key}/{counts[key]}", video, text, options, right, dimension, names=labels))
        counts[key] += 1
    return items


def _own(source: Source, rows: Sequence[TableRow]) -> list[QuestionItem]:
    items = []
    for number, row in enumerate(rows):
        if "options" in row.values:
            options = row.texts("options")
        else:
            columns = sorted(
                (key for key in row.values if re.fullmatch(r"option_\d{1,2}", key)), key=lambda key: int(key[7:])
            )
            options = tuple(str(row.values[key]) for key in columns if str(row.values[key]).strip())
        items.append(
            QuestionItem(
                str(row.first("id", "question_id") or number),
                video_id(row.text("video")),
                row.text("question"),
                options,
                _any(row, row.first("answer"), options),
                str(row.first("type", "kind") or ""),
                row.number("start"),
                row.number("end"),
                _flag(row, row.first("needs_order")),
            )
        )
    return items


def video_id(name: str) -> str:
    """Return the id of a video that a file names by its id or by a path.

    >>> video_id("a.mp4"), video_id("star/b.webm"), video_id("v_1.5")
    ('a', 'star/b', 'v_1.5')
    """
    suffix = Path(name).suffix.lower()
    return normalize_id(name[: -len(suffix)] if suffix in video_suffixes() else name)


def split_options(question: str) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
    """Split a question whose last lines are its options into text, options and their labels.

    >>> split_options("How fast?\\nA. fast\\nB. slow")
    ('How fast?', ('fast', 'slow'), ('A', 'B'))
    """
    lines = [line for line in question.split("\n") if line.strip()]
    for pattern in (_LETTERED, _NAMED):
        matches = [pattern.fullmatch(line) for line in lines]
        first = next((i for i in range(1, len(matches)) if all(matches[i:])), None)
        if first is not None and len(lines) - first >= 2:
            options = [match for match in matches[first:] if match]
            return "\n".join(lines[:first]), tuple(one[2] for one in options), tuple(one[1] for one in options)
    return question, (), ()


def _wrong(row: TableRow, value: object, options: Sequence[str]) -> DataError:
    return DataError(
        f"{row.where}: the right option is {describe(value)}, which is none of its {len(options)} options; correct it",
        fault="F154",
    )


def _index(row: TableRow, value: object, options: Sequence[str]) -> int | None:
    """Return the right option that is given by its number from 0; None if it is not given."""
    if value is None or value == "":
        return None
    if isinstance(value, str) and re.fullmatch(r"\d{1,2}", value.strip()):
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < len(options):
        raise _wrong(row, value, options)
    return value


def _letter(row: TableRow, value: object, options: Sequence[str]) -> int | None:
    """Return the right option that is given by its letter."""
    if value is None or value == "":
        return None
    match = re.fullmatch(r"\s*\(?([A-Za-z])\)?\.?\s*", value) if isinstance(value, str) else None
    index = ord(match[1].upper()) - ord("A") if match else len(options)
    if index >= len(options):
        raise _wrong(row, value, options)
    return index


def _text(row: TableRow, value: object, options: Sequence[str]) -> int | None:
    """Return the right option that is given by its text."""
    if value is None:
        return None
    same = [i for i, option in enumerate(options) if option.strip() == str(value).strip()]
    if not same:
        raise _wrong(row, value, options)
    return same[0]


def _labelled(row: TableRow, value: str, options: Sequence[str], names: Sequence[str]) -> int:
    """Return the right option that is given by its text, its label, or the whole line."""
    for pattern in (_LETTERED, _NAMED):
        match = pattern.fullmatch(value)
        if match and match[1] in names:
            return names.index(match[1])
    index = next((i for i, name in enumerate(names) if name == value.strip().rstrip(".")), None)
    right = index if index is not None else _text(row, value, options)
    assert right is not None
    return right


def _any(row: TableRow, value: object, options: Sequence[str]) -> int | None:
    """Return the right option that is given by its number from 0, its letter or its text; refuse what is ambiguous."""
    if value is None or value == "":
        return None
    if isinstance(value, int):
        return _index(row, value, options)
    same = [i for i, option in enumerate(options) if option.strip() == str(value).strip()]
    number = int(value) if isinstance(value, str) and re.fullmatch(r"\d{1,2}", value.strip()) else None
    if same and number is not None and number < len(options) and number != same[0]:
        raise DataError(
            f"{row.where}: the answer {value!r} is the text of option {same[0]} and the number of another; write the "
            "letter",
            fault="F154",
        )
    if same:
        return same[0]
    return _index(row, number, options) if number is not None else _letter(row, value, options)


def _flag(row: TableRow, value: object) -> bool | None:
    if value is None or value == "":
        return None
    if isinstance(value, bool):
        return value
    words = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
    if str(value).strip().lower() not in words:
        raise DataError(f"{row.where}: 'needs_order' is {describe(value)}, not true or false", fault="F39")
    return words[str(value).strip().lower()]
