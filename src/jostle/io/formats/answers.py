"""Answers of a model to questions: choices, letters, generated text or probabilities, by the ids of the questions.

Rows (JSON, JSON lines, CSV) have `id` and one of `choice` (a number from 0, or a letter), `prediction`, `response` or
`text` (generated text), and `probabilities`; an object gives the same by id, as EgoSchema's and NExT-QA's submissions
do; TempCompass's predictions are read in its own nesting.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from jostle.core.formatting import describe
from jostle.core.types.language import AnswerSet, QuestionAnswer, QuestionItem, QuestionSet
from jostle.errors import DataError
from jostle.io.files.source import Source
from jostle.io.files.tabular import TableRow, read_rows
from jostle.io.formats.questions import split_options, video_id

_ID = ("id", "question_id", "qid", "q_uid", "question_idx")
_ANSWER = ("choice", "prediction", "pred", "video-llm-prediction", "response", "output", "text", "answer")
_PROBABILITIES = ("probabilities", "probs", "log_probs")
ReadChoice = Callable[[str | None, Sequence[str], Sequence[str]], int | None]


def read_answers(path: str | Path, questions: QuestionSet, read_choice: ReadChoice) -> AnswerSet:
    """Read answers from a file.

    Args:
        read_choice: reads text as one of the options, as `jostle.metrics.answer_text.read_choice` does.

    Raises:
        DataError: if the file is broken or something else (F28), answers a question twice (F157), or a choice is no
            option (F154).
    """
    source = Source(path)
    rows = _rows(source)
    if not rows:
        raise DataError(f"{source.path}: holds no answers; give rows with 'id' and 'choice'", fault="F28")
    numbered = rows[0].from_csv and all(re.fullmatch(r"\d{0,2}", str(_value(row) or "").strip()) for row in rows)
    answers: dict[str, QuestionAnswer] = {}
    for row in rows:
        name = _question_id(row)
        if name in answers:
            raise DataError(f"{row.where}: question {name!r} is answered already; keep one answer", fault="F157")
        item = questions.by_id.get(name)
        answers[name] = QuestionAnswer(None) if item is None else _answer(row, item, numbered, read_choice)
    return AnswerSet(answers)


def _rows(source: Source) -> list[TableRow]:
    rows = read_rows(source)
    if rows is not None:
        return rows
    if source.is_folder or not source.is_json:
        return []
    document = source.plain_document
    first = next(iter(document.values()), None)
    inner = next(iter(first.values()), None) if isinstance(first, dict) else None
    if isinstance(inner, list) and inner and isinstance(inner[0], dict) and "question" in inner[0]:
        return _nested_rows(source, document)
    return [
        TableRow(
            f"{source.path}: {name!r}", {**(value if isinstance(value, dict) else {"prediction": value}), "id": name}
        )
        for name, value in document.items()
    ]


def _nested_rows(source: Source, document: dict[str, Any]) -> list[TableRow]:
    """Return the rows of TempCompass's predictions, with the ids that its questions have."""
    rows: list[TableRow] = []
    for name, dimensions in document.items():
        for dimension, entries in dimensions.items() if isinstance(dimensions, dict) else ():
            counts = {"yes_no": 0, "multi-choice": 0, "caption_matching": 0}
            for entry in entries if isinstance(entries, list) else ():
                where = f"{source.path}: video {name!r}, {dimension!r}"
                _, options, names = split_options(
                    TableRow(where, entry if isinstance(entry, dict) else {}).text("question")
                )
                form = "yes_no" if not options else "multi-choice" if len(names[0]) == 1 else "caption_matching"
                question = f"{form}/{video_id(name)}/{dimension}/{counts[form]}"
                counts[form] += 1
                spoken = {key: value for key, value in entry.items() if key not in ("answer", "gt-answer")}
                rows.append(TableRow(where, {**spoken, "id": question}))
    return rows


def _question_id(row: TableRow) -> str:
    if "video" in row.values and "qid" in row.values and "id" not in row.values:
        return f"{video_id(row.text('video'))}_{row.text('qid')}"  # NExT-QA numbers the questions of each video
    return row.text(*[key for key in _ID if key in row.values][:1] or ["id"])


def _value(row: TableRow) -> Any:
    return row.first(*_ANSWER)


def _answer(row: TableRow, item: QuestionItem, numbered: bool, read_choice: ReadChoice) -> QuestionAnswer:
    probabilities = _probabilities(row, item)
    if not set(_ANSWER) & set(row.values):
        if probabilities is None:
            raise DataError(f"{row.where}: has no answer; give 'choice', 'text' or 'probabilities'", fault="F45")
        return QuestionAnswer(max(range(len(probabilities)), key=probabilities.__getitem__), probabilities)
    value = _value(row)
    if isinstance(value, list):
        probabilities = _normalised(row, item, value, log=False)
        return QuestionAnswer(max(range(len(probabilities)), key=probabilities.__getitem__), probabilities)
    if (numbered or (row.from_csv and "choice" in row.values)) and re.fullmatch(r"\d{1,2}", str(value).strip()):
        value = int(value)
    if isinstance(value, bool) or not (value is None or isinstance(value, int | str)):
        raise DataError(
            f"{row.where}: the answer is {describe(value)}, not a number from 0, a letter or text", fault="F39"
        )
    if isinstance(value, int):
        if not 0 <= value < len(item.options):
            counted = "; options count from 0" if value == len(item.options) else ""
            raise DataError(
                f"{row.where}: the choice {value} is none of the {len(item.options)} options{counted}", fault="F154"
            )
        return QuestionAnswer(value, probabilities)
    return QuestionAnswer(read_choice(value, item.options, item.names), probabilities, value)


def _probabilities(row: TableRow, item: QuestionItem) -> tuple[float, ...] | None:
    columns = [f"p_{i}" for i in range(len(item.options))]
    if row.from_csv and set(columns) <= set(row.values):
        return _normalised(row, item, [row.number(key) for key in columns], log=False)
    key = next((key for key in _PROBABILITIES if row.values.get(key) is not None), None)
    if key is None or row.from_csv:
        return None
    value = row.values[key]
    if not isinstance(value, list):
        raise DataError(f"{row.where}: {key!r} is {describe(value)}, not a list of numbers", fault="F156")
    return _normalised(row, item, value, log=key == "log_probs")


def _normalised(row: TableRow, item: QuestionItem, values: Sequence[Any], *, log: bool) -> tuple[float, ...]:
    """Return probabilities; log-probabilities are normalised over the options."""
    numbers = [value for value in values if isinstance(value, int | float) and not isinstance(value, bool)]
    if len(numbers) != len(values) or len(values) != len(item.options) or not all(map(math.isfinite, numbers)):
        raise DataError(
            f"{row.where}: needs {len(item.options)} finite probabilities, one an option; got {len(values)}",
            fault="F156",
        )
    if log:
        peak = max(numbers)
        numbers = [math.exp(value - peak) for value in numbers]
        total = math.fsum(numbers)
        numbers = [value / total for value in numbers]
    return tuple(map(float, numbers))
