"""The verbs that score and explain predictions: `eval`, `diagnose`, `convert`."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from jostle import api
from jostle.cli import console
from jostle.cli.app import Json, app
from jostle.cli.options import Given, with_options
from jostle.core.formatting import escape, percent
from jostle.core.options import option, options_in, reworded
from jostle.core.tables import TableOptions
from jostle.corruptions.options import SeedOptions, SpecOptions
from jostle.errors import BadValue
from jostle.features.options import FeatureOptions
from jostle.gate.options import StopOptions
from jostle.io.files.atomic import refuse_existing
from jostle.io.options import AnnotationOptions, ConvertOptions, OutOptions, OverwriteOptions
from jostle.metrics.options import ScoreOptions, StabilityOptions
from jostle.reporting.options import ReportOptions

if TYPE_CHECKING:
    from jostle.core.results import Result
    from jostle.metrics.score import Score


@dataclass(frozen=True, kw_only=True, eq=False)
class PredictionFiles(AnnotationOptions, TableOptions):
    """Files"""

    predictions: Path = field(kw_only=False, metadata=option("Predictions in any supported format.", metavar="PRED"))
    against: Path | None = field(
        default=None,
        metadata=reworded(StopOptions, "against", "Second predictions, compared with the first.", metavar="PRED2"),
    )
    names: str | None = field(
        default=None, metadata=option("Labels of the files; default: their names.", metavar="A,B")
    )

    @property
    def paths(self) -> list[Path]:
        """Return the files of predictions: one, or two that are compared."""
        return [self.predictions, *([] if self.against is None else [self.against])]


@dataclass(frozen=True, kw_only=True, eq=False)
class ScoringOptions:
    """Scoring"""

    predictions: Path = field(
        kw_only=False,
        metadata=reworded(
            PredictionFiles,
            "predictions",
            "Predictions in any supported format; with --sets scores of frames, as JSON or npz, or boxes, as COCO "
            "JSON, VID text or npz.",
        ),
    )
    truth: Path | None = field(
        default=None,
        metadata=reworded(SpecOptions, "truth", "Ground truth in any supported format; required without --sets."),
    )
    task: Literal["detection", "proposals", "classification", "questions", "moments"] | None = field(
        default=None,
        metadata=option(
            "Task to score; proposals: class-agnostic AR-AN; classification: classes of whole videos; questions: "
            "answers; moments: windows of sentences. Default: detection, or the task of GT."
        ),
    )
    per_class: bool = field(default=False, metadata=option("Print a line per class too."))
    figures: Path | None = field(
        default=None, metadata=reworded(ReportOptions, "figures", "Write figures to this folder.")
    )
    blocked: Path | None = field(default=None, metadata=option("File with ids of videos to ignore.", metavar="FILE"))
    reproduce_bugs: Sequence[str] = field(
        default=(),
        metadata=reworded(
            FeatureOptions,
            "reproduce_bugs",
            "Reproduce a bug, for moments: empty-query of QVHighlights' program.",
            metavar="BUG",
        ),
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class EvalConfig(ScoringOptions, PredictionFiles, ScoreOptions, SeedOptions, StabilityOptions):
    """Options of scoring files, as requested."""


@app.command(
    "eval",
    help=(
        "Score detections, proposals, classes of videos, answers or moments by the rules of a public evaluator; with "
        "--sets pm-k, the stability of a frame classifier or object detector over similar frames."
    ),
)
@with_options(EvalConfig)
def evaluate(given: Given, as_json: Json = False) -> None:
    config = EvalConfig(**given.keywords())
    if config.sets is not None:
        given.refuse("is for files with a ground truth; leave it out beside --sets", *NOT_OF_FRAMES)
        _give_stability(config, as_json)
        return
    given.refuse("is about similar frames; say which by --sets", *options_in(StabilityOptions))
    if config.truth is None:
        raise BadValue("say what PRED is scored by: --truth GT, or --sets SETS and --labels LABELS for frames")
    scored = config.task or _task_of(config.truth)
    if scored != "moments":
        given.refuse("goes with --task moments; leave it out", "reproduce_bugs")
    if scored in ("questions", "moments"):
        tables = ("csv", "latex", "names", "subset", "figures", "tious", "blocked", "bootstrap")
        given.refuse(f"goes with detections; {scored} have their own thresholds and intervals", *tables)
        result = _score_answers(config) if scored == "questions" else _score_moments(config)
        console.give(result, as_json)
    elif scored == "detection":
        _give_scores(config, config.truth, as_json)
    else:
        given.refuse(f"goes with detections; {scored} have --json", "csv", "latex", "names")
        console.give(_score_other(scored, config), as_json)


# Options of `eval` that mean nothing to frames.
NOT_OF_FRAMES = options_in(EvalConfig) - options_in(StabilityOptions) - {"predictions", "seed"}


def _give_scores(config: EvalConfig, truth: Path, as_json: bool) -> None:
    from jostle.io.files.truth_table import variant_of
    from jostle.metrics.side_by_side import ScoredFiles, file_names

    real = api.load_scored_truth(truth, subset=config.subset, fix=config.fix)
    barred = _ids(config.blocked)
    called = file_names(config.paths, config.names)
    with console.progress("drawing videos") as advance:
        scores = [
            api.score(
                api.load_predictions(path, fix=config.fix),
                real,
                protocol=config.protocol,
                tious=config.tious,
                bootstrap=config.bootstrap,
                seed=config.seed,
                blocked=barred,
                strict=config.strict,
                progress=advance,
            )
            for path in config.paths
        ]
        both = None
        if config.against is not None:
            both = api.compare(scores[0], scores[1], bootstrap=config.bootstrap, seed=config.seed)
    if config.figures is not None:
        _draw_scores(called, scores, config.figures)
    result = ScoredFiles(called, scores, both, variant_of(real), config.per_class)
    console.give(result, as_json, csv=config.csv, latex=config.latex)


@dataclass(frozen=True, kw_only=True, eq=False)
class DiagnoseConfig(PredictionFiles):
    """Diagnosis"""

    truth: Path = field(metadata=reworded(SpecOptions, "truth", "Ground truth in any supported format."))
    style: str = field(default="thumos14", metadata=option("Style: activitynet or thumos14.", metavar="S"))
    out: Path | None = field(
        default=None,
        metadata=reworded(OutOptions, "out", "Write figures and diagnosis.json to this folder.", metavar="DIR"),
    )
    annotators: int = field(
        default=1,
        metadata=option("Number of annotations of each instance, where the file has several.", least=1),
    )


@app.command(help="Diagnose a detector with DETAD: false positives, sensitivity, false negatives.")
@with_options(DiagnoseConfig)
def diagnose(given: Given, as_json: Json = False) -> None:
    from jostle.metrics.diagnosis.comparison import compare_diagnoses
    from jostle.metrics.side_by_side import DiagnosedFiles, file_names

    config = DiagnoseConfig(**given.keywords())
    real = api.load_scored_truth(config.truth, subset=config.subset, fix=config.fix)
    called = file_names(config.paths, config.names)
    diagnoses = [
        api.diagnose(api.load_predictions(path, fix=config.fix), real, style=config.style, annotators=config.annotators)
        for path in config.paths
    ]
    change = compare_diagnoses(*diagnoses[:2]) if len(diagnoses) > 1 else None
    result = DiagnosedFiles(called, diagnoses, change)
    if config.out is not None:
        _draw_diagnoses(called, result.to_dict(), config.out)
    console.give(result, as_json, csv=config.csv, latex=config.latex)


@dataclass(frozen=True, kw_only=True, eq=False)
class ConvertConfig(ConvertOptions, OverwriteOptions):
    """Options of converting a file, as requested."""


@app.command(help="Convert annotations or predictions from one format to another.")
@with_options(ConvertConfig)
def convert(given: Given, as_json: Json = False) -> None:
    options = given.keywords()
    refuse_existing(Path(options["target"]), options.pop("overwrite", False))
    console.give(api.convert(**options), as_json)


def _give_stability(config: EvalConfig, as_json: bool) -> None:
    """Print pm-k of a frame classifier or an object detector."""
    assert config.sets is not None
    if (config.labels is None) == (config.boxes is None):
        raise BadValue("--sets takes --labels for a frame classifier, or --boxes for a detector; give one of them")
    result: Result
    if config.boxes is not None:
        if config.project is not None or config.labels_of != "own":
            raise BadValue("--project and --labels-of are for frame classifiers; leave them out beside --boxes")
        result = api.pm_k_boxes(config.predictions, config.sets, config.boxes, config.k, frames=config.frames)
    else:
        assert config.labels is not None
        if config.frames is not None:
            raise BadValue("--frames goes with --boxes; scores of a classifier have the names of their frames")
        how: dict[str, Any] = {"labels_of": config.labels_of, "project": config.project}
        result = api.pm_k(config.predictions, config.sets, config.labels, config.k, **how)
    console.give(result, as_json)


def _task_of(truth: Path) -> str:
    """Return `questions` or `moments` if the ground truth is of these, else `detection`."""
    from jostle.errors import DataError
    from jostle.io.files.format import recognise_format
    from jostle.io.files.source import Source

    try:
        recognise_format(Source(truth), "truth")
    except DataError:
        with contextlib.suppress(DataError):
            return api.find_language_task(truth)
    return "detection"


def _score_answers(config: EvalConfig) -> Result:
    from jostle.metrics.side_by_side import AnsweredFiles, file_names

    assert config.truth is not None
    first, second, change = api.score_answer_files(config.predictions, config.truth, config.against)
    return first if second is None else AnsweredFiles(file_names(config.paths), (first, second), change)


def _score_moments(config: EvalConfig) -> Result:
    from jostle.metrics.side_by_side import MomentFiles, file_names

    assert config.truth is not None
    bugs: Any = config.reproduce_bugs  # checked where they are defined
    scores: list[Any] = [
        api.evaluate(path, config.truth, task="moments", reproduce_bugs=bugs, fix=config.fix) for path in config.paths
    ]
    return scores[0] if len(scores) == 1 else MomentFiles(file_names(config.paths), scores)


def _score_other(task: str, config: EvalConfig) -> Result:
    assert config.truth is not None
    if task == "proposals":
        from jostle.metrics.proposals import average_recall

        real = api.load_scored_truth(config.truth, subset=config.subset, fix=config.fix)
        predictions = api.load_predictions(config.predictions, fix=config.fix)
        return average_recall(predictions, real, average_proposals=100, tious=config.tious)
    from jostle.io.files.annotations import read_video_labels
    from jostle.metrics.video_classification import video_classification

    real_labels = read_video_labels(config.truth, subset=config.subset)
    return video_classification(read_video_labels(config.predictions), real_labels)


def _ids(path: Path | None) -> frozenset[str]:
    if path is None:
        return frozenset()
    from jostle.io.files.label_list import read_ids

    return read_ids(path)


def _draw_scores(names: list[str], scores: list[Score], folder: Path) -> None:
    from jostle.evaluation.results.run_analysis import drops_between
    from jostle.metrics.mean_ap import mean_curve, precision_recall
    from jostle.reporting.charts.precision_recall import draw_precision_recall
    from jostle.reporting.charts.rows import draw_classes
    from jostle.reporting.charts.save import save_drawing

    first = scores[0]
    present = [i for i, count in enumerate(first.truth.counts) if count]
    curves = {
        f"tIoU {tiou:g} (mAP {percent(first.map[t], 1)})": mean_curve(
            [precision_recall(first.matches, t, label) for label in present]
        )
        for t, tiou in enumerate(first.tious)
    }
    chosen = dict(list(curves.items())[:: max(1, len(curves) // 5)])  # more lines than five cannot be told apart
    written = save_drawing(draw_precision_recall(chosen), folder, "precision_recall")
    if len(scores) > 1:
        means: list[dict[str, float]] = [{n: float(v.mean()) for n, v in one.per_class.items()} for one in scores]
        drops = drops_between(means[0], means[1])
        drawing = draw_classes(drops, "average precision", wide=520, names=(names[0], names[1]))
        written += save_drawing(drawing, folder, "class_drops")
    for path in written:
        console.remark(escape(str(path)))


def _draw_diagnoses(names: list[str], content: dict[str, Any], folder: Path) -> None:
    import json

    from jostle.reporting.charts.diagnosis import draw_clean_against_corrupted, draw_diagnosis

    written = draw_diagnosis(content, folder)
    if len(names) > 1:
        written += draw_clean_against_corrupted(content, content["against"], folder, names=(names[0], names[1]))
    target = folder / "diagnosis.json"
    target.write_text(json.dumps(content, indent=2, allow_nan=False) + "\n", encoding="utf-8")
    for path in [*written, target]:
        console.remark(escape(str(path)))
