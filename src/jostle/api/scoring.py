"""Scoring and diagnosing anybody's predictions."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from jostle.core.options import takes
from jostle.core.progress import Progress
from jostle.core.types.predictions import Predictions
from jostle.core.types.truth import Truth
from jostle.errors import DataError
from jostle.io.options import ConvertOptions

if TYPE_CHECKING:
    from jostle.io.files.annotations import Conversion
    from jostle.metrics.answers import AnswerChange, AnswerScore
    from jostle.metrics.box_stability import BoxStability
    from jostle.metrics.diagnosis.diagnosis import Diagnosis
    from jostle.metrics.moments import MomentScore, ScorerBug
    from jostle.metrics.pm_k import Labels, PmK, Scores
    from jostle.metrics.robustness import Robustness
    from jostle.metrics.score import Comparison, Score

LanguageTask = Literal["questions", "moments"]
PredictionsLike = Predictions | str | Path
TruthLike = Truth | str | Path


def load_truth(
    path: str | Path, *, subset: str | None = None, protocol: str = "activitynet", fix: bool = False
) -> Truth:
    """The ground truth in a file of any known format, as a protocol counts it.

    Args:
        subset: only videos of this subset, whatever the case of its letters.
        protocol: `thumos14` and `opentad` leave out repeated and empty instances; `activitynet` keeps everything.
        fix: drop what is no segment instead of refusing the file, and count it.
    """
    from jostle.io.files.annotations import read_truth
    from jostle.metrics.protocol import protocols

    return protocols[protocol].prepare(read_truth(path, subset=subset, fix=fix))


def load_predictions(path: str | Path, *, fix: bool = False) -> Predictions:
    """The detections in a file of any known format.

    Args:
        fix: drop rows that are not finite or not whole instead of refusing the file, and count them.
    """
    from jostle.io.files.annotations import read_predictions

    return read_predictions(path, fix=fix)


def score(
    predictions: PredictionsLike,
    truth: TruthLike,
    *,
    protocol: str = "activitynet",
    tious: Sequence[float] | None = None,
    bootstrap: int = 0,
    level: float = 0.95,
    seed: int = 0,
    blocked: Collection[str] = (),
    strict: bool = False,
    progress: Progress | None = None,
) -> Score:
    """Mean average precision of detections by the rules of one public evaluator.

    Args:
        predictions: as `load_predictions` gives them, or a path.
        truth: as `load_truth` gives it, or a path.
        protocol: `activitynet`, `thumos14`, `thumos14-official` or `opentad`.
        tious: thresholds; by default the protocol's own.
        bootstrap: resamples of videos for the interval; 0 for none.
        level: of the interval.
        blocked: ids of videos that count on neither side.
        strict: refuse predictions of a class the truth lacks instead of ignoring them.

    >>> truth = Truth(("a",), ("Jump",), [0], [1.0], [3.0], [0])
    >>> found = Predictions(("a",), ("Jump",), [0, 0], [1.0, 7.0], [2.8, 8.0], [0, 0], [0.9, 0.8])
    >>> score(found, truth, tious=[0.5]).average_map
    1.0
    """
    from jostle.metrics.score import score as score_detections

    return score_detections(
        _predictions(predictions),
        _truth(truth),
        protocol=protocol,
        tious=tious,
        bootstrap=bootstrap,
        level=level,
        seed=seed,
        blocked=blocked,
        strict=strict,
        progress=progress,
    )


def evaluate(
    predictions: str | Path,
    truth: str | Path,
    *,
    task: LanguageTask | None = None,
    reproduce_bugs: Sequence[ScorerBug] = (),
    fix: bool = False,
) -> AnswerScore | MomentScore:
    """Score answers to questions, or windows for sentences, in any of the published layouts.

    Args:
        predictions: a file of answers (choices, letters, generated text or probabilities) or of windows.
        truth: a file of questions with options, or of sentences with windows; a folder of MVBench's tasks.
        task: `questions` or `moments`; by default what the truth holds.
        reproduce_bugs: `empty-query` repeats what QVHighlights' program does with sentences without windows.
        fix: leave out true windows that have no length instead of refusing the file.
    """
    from jostle.io.formats.moments import read_moments, read_windows
    from jostle.metrics.moments import score_moments

    if (task or find_language_task(truth)) == "questions":
        return score_answer_files(predictions, truth)[0]
    moments = read_moments(truth, fix=fix)
    return score_moments(read_windows(predictions, moments), moments, reproduce_bugs=reproduce_bugs)


def score_answer_files(
    predictions: str | Path, truth: str | Path, against: str | Path | None = None
) -> tuple[AnswerScore, AnswerScore | None, AnswerChange | None]:
    """Score answers and, if there are others to hold against them, those and what changed."""
    from jostle.io.formats.answers import read_answers
    from jostle.io.formats.questions import read_questions
    from jostle.metrics.answer_text import read_choice
    from jostle.metrics.answers import compare_answers, score_answers

    questions = read_questions(truth)
    first = read_answers(predictions, questions, read_choice)
    if against is None:
        return score_answers(first, questions), None, None
    second = read_answers(against, questions, read_choice)
    return (
        score_answers(first, questions),
        score_answers(second, questions),
        compare_answers(first, second, questions),
    )


def find_language_task(truth: str | Path) -> LanguageTask:
    """Return the task of a file of questions or of sentences; raise F28 if it is neither."""
    from jostle.io.files.source import Source
    from jostle.io.formats.moments import looks_like_moments
    from jostle.io.formats.questions import looks_like_questions, read_questions

    source = Source(truth)
    if looks_like_moments(source):
        return "moments"
    if not source.is_folder and not looks_like_questions(source):
        read_questions(truth)  # says what is wrong
    return "questions"


def compare(one: Score, other: Score, *, bootstrap: int = 1000, level: float = 0.95, seed: int = 0) -> Comparison:
    """Return the difference of two scores, with an interval from resampling the same videos for both."""
    from jostle.metrics.score import compare as compare_scores

    return compare_scores(one, other, bootstrap=bootstrap, level=level, seed=seed)


def diagnose(
    predictions: PredictionsLike, truth: TruthLike, *, style: str = "thumos14", annotators: int = 1
) -> Diagnosis:
    """DETAD: why a detector fails.

    Args:
        style: `thumos14` or `activitynet`: thresholds and buckets.
        annotators: use the first so many annotations of each instance, where the truth has several.
    """
    from jostle.metrics.diagnosis.diagnosis import diagnose as diagnose_detections

    return diagnose_detections(_predictions(predictions), _truth(truth), style=style, annotators=annotators)


def pm_k(
    scores: Scores | str | Path,
    sets: Mapping[str, Sequence[str]] | str | Path,
    labels: Labels | str | Path,
    k: int = 10,
    *,
    labels_of: Literal["own", "anchor"] = "own",
    project: Literal["imagenet-vid", "ytbb"] | None = None,
) -> PmK:
    """Accuracy of a frame classifier on frames, and on frames together with all similar ones within `k` frames.

    Args:
        scores: by frame, the scores of all classes or the class chosen; or a path to JSON or npz.
        sets: by anchor, its similar neighbours; or a path to JSON.
        labels: by frame, the classes that are right; or a path to JSON.
        labels_of: hold a neighbour to its `own` labels (ImageNet-Vid-Robust) or its `anchor`'s (YTBB-Robust).
        project: merge the scores of the 1000 ImageNet classes into the 30 of ImageNet-Vid or the 24 of YTBB.
    """
    from jostle.io.formats.frame_scores import read_frame_labels, read_frame_scores, read_frame_sets
    from jostle.metrics.pm_k import pm_k as measure

    frame_scores = read_frame_scores(scores) if isinstance(scores, str | Path) else scores
    if project is not None:
        from jostle.metrics.class_projection import project_classes

        frame_scores = {frame: project_classes(row, project) for frame, row in frame_scores.items()}
    return measure(
        frame_scores,
        read_frame_sets(sets) if isinstance(sets, str | Path) else sets,
        read_frame_labels(labels) if isinstance(labels, str | Path) else labels,
        k,
        labels_of=labels_of,
    )


def pm_k_boxes(
    found: str | Path,
    sets: Mapping[str, Sequence[str]] | str | Path,
    boxes: str | Path,
    k: int = 10,
    *,
    frames: str | Path | None = None,
) -> BoxStability:
    """mAP of an object detector on anchors, and on the frame within `k` of each on which it does worst.

    Args:
        found: detections: an npz of `jostle run`, COCO's results (JSON), or the text of ILSVRC's video challenge.
        sets: by anchor, its similar neighbours; or a path to JSON.
        boxes: path of the true boxes, `{"classes": [...], "boxes": {frame: [[class, x1, y1, x2, y2]]}}`.
        frames: COCO's annotation file with the images and categories of the results; or the list of frames that the
            text counts in.

    Raises:
        DataError: if a file holds something else, or a frame of the sets is in no file.
    """
    from jostle.core.types.frame_sets import BoxSets
    from jostle.datasets.class_matching import match_objects
    from jostle.io.formats.boxes import match_frame_names, read_detections, read_true_boxes
    from jostle.io.formats.frame_scores import read_frame_sets
    from jostle.metrics.box_stability import box_stability

    classes, truth = read_true_boxes(boxes)
    whole = BoxSets(classes, read_frame_sets(sets) if isinstance(sets, str | Path) else sets, truth)
    detections = read_detections(found, frames)
    most = max((int(one.label.max()) for one in detections.boxes.values() if len(one)), default=-1)
    if detections.classes is None and most >= len(classes):
        raise DataError(f"{found}: has boxes of class {most + 1}, and {boxes} {len(classes)} classes", fault="F36")
    match = match_objects(str(found), detections.classes or (), classes)
    known = match.known if detections.known is None else detections.known
    boxes_of_frame = {
        frame: match.apply(one) for frame, one in match_frame_names(detections.boxes, whole.frames).items()
    }
    subset = whole.only(known)
    return box_stability(boxes_of_frame, subset.boxes, subset.sets, k, classes=len(known), of_classes=len(classes))


def robustness(clean: float | None, cells: Mapping[str, float | None]) -> Robustness:
    """Summarise scores under corruption: means, relative and absolute robustness, mPC and rPC.

    Args:
        clean: the score on clean data, a fraction or a percentage.
        cells: the score of each corrupted cell by its spec; None where it is missing.

    >>> left = robustness(0.60, {"thumos14-c/black_frame:1": 0.48, "thumos14-c/occlusion:1": 0.54})
    >>> round(left.mean_corrupted, 2), round(left.relative, 2), sorted(left.by_family)
    (0.51, 0.85, ['light', 'occlusion'])
    """
    from jostle.metrics.robustness import robustness as measure

    return measure(clean, cells, families=_families(cells))


@takes(ConvertOptions)
def convert(config: ConvertOptions) -> Conversion:
    """Write a file of annotations or predictions in another format; what the target cannot hold is named."""
    from jostle.io.files.annotations import convert as convert_file

    how: dict[str, Any] = {name: getattr(config, name) for name in ("to", "truth", "subset", "fix")}
    return convert_file(config.source, config.target, **how)


def load_scored_truth(path: str | Path, *, subset: str | None = None, fix: bool = False) -> Truth:
    """Everything a file annotates in one subset, for a protocol or a diagnosis to count as it will.

    Raises:
        DataError: if the file has several subsets and none is named: which one is meant cannot be guessed.
    """
    from jostle.io.files.annotations import read_truth

    truth = read_truth(path, subset=subset, fix=fix)
    present = {name: truth.subsets.count(name) for name in dict.fromkeys(truth.subsets)}
    if len(present) > 1:
        counts = ", ".join(f"{name or '(none)'} ({count} videos)" for name, count in present.items())
        raise DataError(f"{path}: holds several subsets: {counts}; name one with --subset", fault="F29")
    return truth


def _predictions(predictions: PredictionsLike) -> Predictions:
    return predictions if isinstance(predictions, Predictions) else load_predictions(predictions)


def _truth(truth: TruthLike) -> Truth:
    return truth if isinstance(truth, Truth) else load_scored_truth(truth)


def _families(cells: Mapping[str, float | None]) -> dict[str, str]:
    """The family of each corruption that jostle knows, by the name its cells are written with."""
    from jostle.corruptions.engine.corruption import corruptions
    from jostle.corruptions.engine.spec import profiles
    from jostle.metrics.robustness import split_cell

    families = {}
    for name in {split_cell(cell)[0] for cell in cells}:
        profile, _, bare = name.rpartition("/")
        entry = profiles[profile].entries.get(bare) if profile in profiles else None
        corruption = entry.corruption if entry else bare
        if corruption in corruptions:
            families[name] = corruptions[corruption].family
    return families
