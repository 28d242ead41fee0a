"""Scores of real answers and windows equal those of the original programs.

The annotations, answers and figures are their owners' (moment_detr, NExT-QA, TempCompass, PLPNet), and lie beside the
repository where somebody has put them.
"""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from jostle.core.types.language import AnswerSet
from jostle.io.formats.answers import read_answers
from jostle.io.formats.moments import read_moments, read_windows
from jostle.io.formats.questions import read_questions
from jostle.metrics.answer_text import read_choice
from jostle.metrics.answers import correct_answers, score_answers
from jostle.metrics.moments import MAP_TIOUS, score_moments

GOLDEN = Path(__file__).resolve().parents[3] / "shared" / "golden" / "language"
pytestmark = pytest.mark.skipif(not GOLDEN.is_dir(), reason="real answers are their owners': none at ../shared/golden")


def rounded_as_printed(value: float) -> float:
    return float(f"{100 * value:.2f}")


def test_qvhighlights_equals_the_program_to_the_printed_digits() -> None:
    folder = GOLDEN / "qvhighlights"
    expected = json.loads((folder / "sample_val_preds_metrics_raw.json").read_text())
    truth = read_moments(folder / "highlight_val_release.jsonl.gz")
    score = score_moments(read_windows(folder / "sample_val_preds.jsonl.gz"), truth)
    for name, part in {"full": score.windows, **score.by_length}.items():
        average_precisions = dict(zip(map(str, MAP_TIOUS), map(rounded_as_printed, part.map), strict=True))
        assert average_precisions | {"average": rounded_as_printed(part.average_map)} == expected[name]["MR-mAP"]
        assert (
            dict(zip(map(str, MAP_TIOUS), map(rounded_as_printed, part.recall), strict=True)) == expected[name]["MR-R1"]
        )
    for level, name in (("fair", "Fair"), ("good", "Good"), ("very_good", "VeryGood")):
        highlights = score.highlights[level]
        assert {
            "HL-mAP": rounded_as_printed(highlights.mean_ap),
            "HL-Hit1": rounded_as_printed(highlights.hit_at_1),
        } == expected[f"HL-min-{name}"]


def test_nextqa_equals_the_published_accuracy_by_type() -> None:
    questions = read_questions(GOLDEN / "nextqa" / "val.csv.gz")
    answers = read_answers(GOLDEN / "nextqa" / "HGA-bert-ft-h256-val.json.gz", questions, read_choice)
    score = score_answers(answers, questions)
    assert {kind: (rounded_as_printed(share.accuracy), share.count) for kind, share in score.by_type.items()} == {
        "CH": (44.22, 683), "CW": (46.99, 1924), "DC": (44.07, 177), "DL": (72.54, 295), "DO": (55.41, 305),
        "TC": (52.49, 663), "TN": (49.53, 949),
    }  # fmt: skip
    assert rounded_as_printed(score.overall.accuracy) == 49.74


@pytest.mark.parametrize(
    ("form", "count", "by_rule"),
    [("multi-choice", 1580, 1580), ("yes_no", 2453, 2453), ("caption_matching", 1503, 1496)],
)
def test_tempcompass_rule_ratings_are_equal_for_every_item(form: str, count: int, by_rule: int) -> None:
    folder = GOLDEN / "tempcompass"
    questions = read_questions(folder / f"questions-{form}.json.gz")
    answers = read_answers(folder / f"video-llava-predictions-{form}.json.gz", questions, read_choice)
    with gzip.open(folder / f"video-llava-judged-{form}.json.gz", "rt", encoding="utf-8") as file:
        judged: dict[str, Any] = json.load(file)
    ratings = {
        f"{form}/{video}/{dimension}/{number}": entry["rating"]
        for video, dimensions in judged.items()
        for dimension, entries in dimensions.items()
        for number, entry in enumerate(entries)
        if entry["match_success"]
    }
    items = [item for item in questions.items if item.id in ratings]
    assert (len(questions), len(items)) == (count, by_rule)
    assert correct_answers(AnswerSet(answers.answers), items).tolist() == [bool(ratings[item.id]) for item in items]


def test_tempcompass_equals_the_published_accuracy() -> None:
    folder = GOLDEN / "tempcompass"
    questions = read_questions(folder / "questions-multi-choice.json.gz")
    answers = read_answers(folder / "video-llava-predictions-multi-choice.json.gz", questions, read_choice)
    score = score_answers(answers, questions)
    assert rounded_as_printed(score.overall.accuracy) == 45.57
    assert {kind: rounded_as_printed(share.accuracy) for kind, share in score.by_type.items()} == {
        "action": 76.04, "direction": 35.22, "speed": 35.65, "order": 37.75, "attribute_change": 40.97,
    }  # fmt: skip


def test_charades_sta_and_activitynet_captions_are_read_completely() -> None:
    assert len(read_moments(GOLDEN / "charades-sta" / "charades_sta_test.txt.gz")) == 3720
    captions = read_moments(GOLDEN / "activitynet-captions" / "val_1.json.gz")
    assert (len(captions), len(captions.videos)) == (17505, 4917)
