"""Data sets of questions and of sentences about videos, in folders with their annotations and videos.

Annotations are found by their file names, in any of the layouts of `jostle.io.formats.questions` and `.moments`; videos
by their ids, anywhere below the folder.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from jostle.core.types.language import MomentSet, QuestionItem, QuestionSet
from jostle.datasets.dataset import Dataset, Request, dataset
from jostle.datasets.layouts import search
from jostle.datasets.layouts.matching import VideoIndex
from jostle.errors import DataError
from jostle.io.files.source import Source
from jostle.io.formats.moments import looks_like_moments, read_moments
from jostle.io.formats.questions import looks_like_questions, read_questions


@dataclass(frozen=True)
class LanguageLayout:
    """Layout of a data set in words on disk."""

    name: str  # registered name
    title: str  # name in messages
    patterns: Mapping[str, tuple[str, ...]]  # names of the annotation files of each subset, in lower case, best first
    several: bool = False  # whether the annotations are several files, one a task
    core: Callable[[str], str] = str  # the part of an id that its spellings share
    keep: Callable[[QuestionItem], bool] = field(default=lambda item: True)  # questions that belong to the set


def load_questions(request: Request, layout: LanguageLayout) -> Dataset:
    """Load the questions of a subset, with the videos that exist."""
    files = _files(request, layout, looks_like_questions)
    sets = [read_questions(file) for file in files]
    items = [item for one in sets for item in one.items if layout.keep(item)]
    if not items:
        raise DataError(
            f"{files[0]}: holds no question of {layout.title} {request.subset}; check the file", fault="F29"
        )
    return _dataset(request, layout, QuestionSet(tuple(items)), files[0])


def load_moments(request: Request, layout: LanguageLayout) -> Dataset:
    """Load the sentences of a subset, with the videos that exist."""
    files = _files(request, layout, looks_like_moments)
    return _dataset(request, layout, read_moments(files[0]), files[0])


def _dataset(request: Request, layout: LanguageLayout, items: QuestionSet | MomentSet, source: Path) -> Dataset:
    videos = VideoIndex(request.root)
    matched = videos.match(items.videos, subset=request.subset, core=layout.core)
    return Dataset(
        layout.name,
        request.subset,
        request.root,
        (items,),
        matched.videos,
        source=source,
        missing=matched.missing,
        unlisted=matched.unlisted,
        notes=videos.notes,
    )


def _files(request: Request, layout: LanguageLayout, fits: Callable[[Source], bool]) -> list[Path]:
    """Return the annotation files of a subset."""
    search.check_root(request.root, layout.title)
    if request.annotations is not None:
        return [request.annotations]
    every, patterns = search.small_files(request.root), layout.patterns[request.subset]
    if layout.several:
        files = [file for file in search.named(every, patterns) if fits(Source(file))]
        if files:
            return sorted(files)
    for pattern in patterns:
        files = [file for file in search.named(every, [pattern]) if "*" not in pattern or fits(Source(file))]
        if file := search.only_one(files, layout.title):
            return [file]
    raise search.no_annotations(request.root, layout.title, patterns)


def _questions(layout: LanguageLayout, about: str, default: str | None = None) -> None:
    """Register a data set of questions."""

    def load(request: Request) -> Dataset:
        return load_questions(request, layout)

    load.__doc__ = about
    subsets = tuple(layout.patterns)
    dataset(layout.name, subsets=subsets, task="questions", on_disk=True, default_subset=default or subsets[0])(load)


def _moments(layout: LanguageLayout, about: str, default: str) -> None:
    """Register a data set of sentences."""

    def load(request: Request) -> Dataset:
        return load_moments(request, layout)

    load.__doc__ = about
    dataset(layout.name, subsets=tuple(layout.patterns), task="moments", on_disk=True, default_subset=default)(load)


_questions(
    LanguageLayout("mvbench", "MVBench", {"test": ("*.json", "*.jsonl")}, several=True),
    "MVBench: 20 types of questions about short videos, 200 each; a list a type.",
)
_questions(
    LanguageLayout(
        "video-mme", "Video-MME", {"test": ("videomme*.json*", "video*mme*.json*", "test*.json*", "*.jsonl")}
    ),
    "Video-MME: 2,700 questions about 900 videos of seconds to an hour.",
)
_questions(
    LanguageLayout(
        "egoschema", "EgoSchema", {"subset": ("questions.json", "*.json*"), "test": ("questions.json", "*.json*")},
        keep=lambda item: item.answer is not None,
    ),
    "EgoSchema: questions about three minutes of daily life; 500 have a public answer, and only those are used.",
)  # fmt: skip
_questions(
    LanguageLayout(
        "next-qa",
        "NExT-QA",
        {"validation": ("val.csv", "*val*.csv", "*val*.json*"), "test": ("test.csv", "*test*.csv", "*test*.json*")},
    ),
    "NExT-QA, several choices: causal, temporal and descriptive questions, five options.",
)
_questions(
    LanguageLayout(
        "perception-test",
        "the Perception Test",
        {"validation": ("mc_question_valid*.json", "all_valid*.json", "*valid*.json*", "*.json"),
         "training": ("mc_question_train*.json", "all_train*.json", "*train*.json*")},
    ),
    "The Perception Test, several choices: memory, abstraction, physics and semantics, three options.",
)  # fmt: skip
_questions(
    LanguageLayout(
        "tempcompass",
        "TempCompass",
        {form: (f"{form}.json", f"*{form}*.json*") for form in ("multi-choice", "yes_no", "caption_matching")},
    ),
    "TempCompass: action, direction, speed, order and change of attributes, 410 videos.",
)
_questions(
    LanguageLayout("mlvu", "MLVU", {"dev": ("[0-9]_*.json", "*.json", "*.jsonl")}, several=True),
    "MLVU: questions about long videos; a list a type.",
)
_moments(
    LanguageLayout(
        "charades-sta",
        "Charades-STA",
        {
            "training": ("charades_sta_train.txt", "*train*.txt"),
            "test": ("charades_sta_test.txt", "*test*.txt", "*.json*"),
        },
    ),
    "Charades-STA: sentences about videos of daily indoors activities, one window each.",
    "test",
)
_moments(
    LanguageLayout(
        "qvhighlights",
        "QVHighlights",
        {
            "training": ("highlight_train_release.jsonl", "*train*.jsonl"),
            "validation": ("highlight_val_release.jsonl", "*val*.jsonl"),
            "test": ("highlight_test_with_gt.jsonl", "highlight_test_release.jsonl", "*test*.jsonl"),
        },
    ),
    "QVHighlights: sentences about 150 seconds of video, with all their windows and ratings of clips.",
    "validation",
)
_moments(
    LanguageLayout(
        "activitynet-captions",
        "ActivityNet-Captions",
        {"training": ("train.json", "*train*.json"), "validation": ("val_1.json", "*val_1*.json", "val_2.json")},
        core=lambda video: video.removeprefix("v_"),
    ),
    "ActivityNet-Captions: sentences about untrimmed videos, one window each; val_1 of the two validation files.",
    "validation",
)
