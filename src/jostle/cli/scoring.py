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
from jostle.cli.tables import (
    answer_lines,
    class_lines,
    classification_lines,
    comparison_lines,
    diagnosis_lines,
    moment_lines,
    pm_k_lines,
    proposal_lines,
    score_lines,
    stability_lines,
    truth_line,
    variant,
)
from jostle.core.formatting import percent
from jostle.core.options import option, options_in
from jostle.corruptions.options import SeedOptions
from jostle.errors import BadValue
from jostle.io.options import OverwriteOptions
from jostle.metrics.options import ScoreOptions, StabilityOptions

if TYPE_CHECKING:
    from jostle.core.tables import Table
    from jostle.metrics.box_stability import BoxStability
    from jostle.metrics.pm_k import PmK
    from jostle.metrics.score import Score


@dataclass(frozen=True, kw_only=True, eq=False)
class SubsetOptions:
    """Files"""

    subset: str | None = field(default=None, metadata=option("Subset of the ground truth.", metavar="S"))
    fix: bool = field(default=False, metadata=option("Drop bad entries and count them instead of refusing the file."))


@dataclass(frozen=True, kw_only=True, eq=False)
class PredictionFiles(SubsetOptions):
    """Files"""

    against: Path | None = field(
        default=None, metadata=option("Second predictions, compared with the first.", metavar="PRED2")
    )
    names: str | None = field(
        default=None, metadata=option("Labels of the files; default: their names.", metavar="A,B")
    )
    csv: Path | None = field(default=None, metadata=option("Write the numbers as a CSV table.", metavar="FILE"))
    latex: Path | None = field(default=None, metadata=option("Write a LaTeX table (booktabs).", metavar="FILE"))


@dataclass(frozen=True, kw_only=True, eq=False)
class ScoringOptions:
    """Scoring"""

    predictions: Path = field(
        kw_only=False,
        metadata=option(
            "Predictions in any supported format; with --sets scores of frames, as JSON or npz, or boxes, as COCO "
            "JSON, VID text or npz.",
            metavar="PRED",
        ),
    )
    truth: Path | None = field(
        default=None, metadata=option("Ground truth in any supported format; required without --sets.", metavar="GT")
    )
    task: Literal["detection", "proposals", "classification", "questions", "moments"] | None = field(
        default=None,
        metadata=option(
            "Task to score; proposals: class-agnostic AR-AN; classification: classes of whole videos; questions: "
            "answers; moments: windows of sentences. Default: detection, or the task of GT."
        ),
    )
    per_class: bool = field(default=False, metadata=option("Print a line per class too."))
    figures: Path | None = field(default=None, metadata=option("Write figures to this folder.", metavar="DIR"))
    blocked: Path | None = field(default=None, metadata=option("File with ids of videos to ignore.", metavar="FILE"))
    reproduce_bugs: Sequence[str] = field(
        default=(),
        metadata=option(
            "Reproduce a bug, for moments: empty-query of QVHighlights' program.", flag="--reproduce-bug", metavar="BUG"
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
        _show_stability(config, as_json)
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
        _show_answers(config, config.truth, as_json) if scored == "questions" else _show_moments(
            config, config.truth, as_json
        )
    elif scored == "detection":
        _show_scores(config, config.truth, as_json)
    else:
        given.refuse(f"goes with detections; {scored} have --json", "csv", "latex", "names")
        _show_other(scored, config, config.truth, as_json)


# Options of `eval` that mean nothing to frames.
NOT_OF_FRAMES = options_in(EvalConfig) - options_in(StabilityOptions) - {"predictions", "seed"}


def _show_scores(config: EvalConfig, truth: Path, as_json: bool) -> None:
    real = api.load_scored_truth(truth, subset=config.subset, fix=config.fix)
    barred = _ids(config.blocked)
    paths = [path for path in (config.predictions, config.against) if path is not None]
    called = _called(paths, config.names)
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
            for path in paths
        ]
        both = (
            api.compare(scores[0], scores[1], bootstrap=config.bootstrap, seed=config.seed)
            if config.against is not None
            else None
        )
    _remark_on(paths, [one.remarks for one in scores])
    if config.figures is not None:
        _draw_scores(called, scores, config.figures)
    if config.csv is not None or config.latex is not None:
        from jostle.reporting.analysis.file_tables import scores_table

        _write_table(scores_table(called, scores, both, per_class=config.per_class), config.csv, config.latex)
    if as_json:
        content = scores[0].to_dict()
        content["truth"]["variant"] = variant(real)
        console.show_json(
            content if both is None else content | {"against": scores[1].to_dict(), "difference": both.to_dict()}
        )
        return
    console.show(truth_line(scores[0].truth, real))
    console.show_lines(score_lines(scores[0]) if both is None else comparison_lines(called, scores, both))
    if config.per_class:
        console.show("")
        console.show_lines(class_lines(called, scores))


@dataclass(frozen=True, kw_only=True, eq=False)
class DiagnoseConfig(PredictionFiles):
    """Diagnosis"""

    predictions: Path = field(kw_only=False, metadata=option("Predictions in any supported format.", metavar="PRED"))
    truth: Path = field(metadata=option("Ground truth in any supported format.", metavar="GT"))
    style: str = field(default="thumos14", metadata=option("Style: activitynet or thumos14.", metavar="S"))
    out: Path | None = field(
        default=None,
        metadata=option("Write figures and diagnosis.json to this folder.", short="-o", metavar="DIR"),
    )
    annotators: int = field(
        default=1,
        metadata=option("Number of annotations of each instance, where the file has several.", least=1),
    )


@app.command(help="Diagnose a detector with DETAD: false positives, sensitivity, false negatives.")
@with_options(DiagnoseConfig)
def diagnose(given: Given, as_json: Json = False) -> None:
    config = DiagnoseConfig(**given.keywords())
    real = api.load_scored_truth(config.truth, subset=config.subset, fix=config.fix)
    paths = [path for path in (config.predictions, config.against) if path is not None]
    called = _called(paths, config.names)
    diagnoses = [
        api.diagnose(api.load_predictions(path, fix=config.fix), real, style=config.style, annotators=config.annotators)
        for path in paths
    ]
    _remark_on(paths, [one.remarks for one in diagnoses])
    content = diagnoses[0].to_dict()
    if len(diagnoses) > 1:
        from jostle.metrics.diagnosis.comparison import compare_diagnoses

        content |= {"against": diagnoses[1].to_dict(), "change": compare_diagnoses(*diagnoses[:2]).to_dict()}
    if config.out is not None:
        _draw_diagnoses(called, content, config.out)
    if config.csv is not None or config.latex is not None:
        from jostle.reporting.analysis.file_tables import diagnosis_table

        _write_table(diagnosis_table(called, [one.to_dict() for one in diagnoses]), config.csv, config.latex)
    if as_json:
        console.show_json(content)
        return
    console.show_lines(diagnosis_lines(called, diagnoses))


@dataclass(frozen=True, kw_only=True, eq=False)
class ConvertConfig(SubsetOptions, OverwriteOptions):
    """Conversion"""

    source: Path = field(kw_only=False, metadata=option("File in any supported format.", metavar="IN"))
    target: Path = field(kw_only=False, metadata=option("File to write; its ending selects the format.", metavar="OUT"))
    to: str | None = field(default=None, metadata=option("Format, if the ending is ambiguous.", metavar="FORMAT"))
    truth: Path | None = field(
        default=None,
        metadata=option("Ground truth, for names or numbers of the classes of predictions.", metavar="GT"),
    )


@app.command(help="Convert annotations or predictions from one format to another.")
@with_options(ConvertConfig)
def convert(given: Given, as_json: Json = False) -> None:
    target = Path(given.values["target"])
    if target.exists() and "overwrite" not in given.values:
        raise BadValue(f"{target} exists; pass --overwrite to replace it")
    options = given.keywords()
    options.pop("overwrite", None)
    done = api.convert(**options)
    if as_json:
        console.show_json({"format": 1, "out": str(target)} | vars(done) | {"lost": list(done.lost)})
    else:
        console.show(console.escape(str(target)))
        console.remark(str(done))


def _show_stability(config: EvalConfig, as_json: bool) -> None:
    """Print pm-k of a frame classifier or an object detector."""
    assert config.sets is not None
    if (config.labels is None) == (config.boxes is None):
        raise BadValue("--sets takes --labels for a frame classifier, or --boxes for a detector; give one of them")
    result: PmK | BoxStability
    if config.boxes is not None:
        if config.project is not None or config.labels_of != "own":
            raise BadValue("--project and --labels-of are for frame classifiers; leave them out beside --boxes")
        result = api.pm_k_boxes(config.predictions, config.sets, config.boxes, config.k, frames=config.frames)
        content, lines = {"format": 1} | result.to_dict(), stability_lines(result)
    else:
        assert config.labels is not None
        if config.frames is not None:
            raise BadValue("--frames goes with --boxes; scores of a classifier have the names of their frames")
        how: dict[str, Any] = {"labels_of": config.labels_of, "project": config.project}
        result = api.pm_k(config.predictions, config.sets, config.labels, config.k, **how)
        content, lines = result.to_dict(), pm_k_lines(result)
    console.show_json(content) if as_json else console.show_lines(lines)


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


def _warn_of_few(items: int, videos: int) -> None:
    """Print a remark where intervals are from draws of few videos; with one item a video they are exact."""
    from jostle.metrics.bootstrap import warn_of_few

    if items > videos and (few := warn_of_few(videos)):
        console.remark(few)


def _show_answers(config: EvalConfig, truth: Path, as_json: bool) -> None:
    first, second, change = api.score_answer_files(config.predictions, truth, config.against)
    _warn_of_few(first.overall.count, first.videos)
    if as_json:
        content = first.to_dict()
        if second is not None and change is not None:
            content |= {"against": second.to_dict(), "change": change.to_dict()}
        console.show_json(content)
        return
    console.show_lines(answer_lines(first, second, change))
    if first.unknown:
        console.remark(f"{first.unknown} answers are to questions that {console.escape(truth.name)} does not have")


def _show_moments(config: EvalConfig, truth: Path, as_json: bool) -> None:
    bugs: Any = config.reproduce_bugs  # checked where they are defined
    scores: list[Any] = [
        api.evaluate(path, truth, task="moments", reproduce_bugs=bugs, fix=config.fix)
        for path in (config.predictions, config.against)
        if path is not None
    ]
    _warn_of_few(scores[0].count, scores[0].videos)
    if as_json:
        content = scores[0].to_dict()
        console.show_json(content | ({"against": scores[1].to_dict()} if len(scores) > 1 else {}))
        return
    console.show_lines(moment_lines(scores))


def _show_other(task: str, config: EvalConfig, truth: Path, as_json: bool) -> None:
    if task == "proposals":
        from jostle.metrics.proposals import average_recall

        real = api.load_scored_truth(truth, subset=config.subset, fix=config.fix)
        curve = average_recall(
            api.load_predictions(config.predictions, fix=config.fix), real, average_proposals=100, tious=config.tious
        )
        content, lines = curve.to_dict(), proposal_lines(curve)
    else:
        from jostle.io.files.annotations import read_video_labels
        from jostle.metrics.video_classification import video_classification

        result = video_classification(
            read_video_labels(config.predictions), read_video_labels(truth, subset=config.subset)
        )
        content, lines = result.to_dict(), classification_lines(result)
        if result.one_score:
            console.remark("all predictions have one score, so their ranking is arbitrary")
    if as_json:
        console.show_json(content)
        return
    console.show_lines(lines)


def _remark_on(paths: list[Path], remarks: list[tuple[str, ...]]) -> None:
    """Print remarks on the numbers; a remark that holds for both files is printed once."""
    shared = set(remarks[0]).intersection(*remarks[1:]) if len(remarks) > 1 else set()
    for path, own in zip(paths, remarks, strict=True):
        for remark in own:
            if remark not in shared:
                console.remark(f"{console.escape(path.name)}: {remark}")
    for remark in remarks[0]:
        if remark in shared:
            console.remark(remark)


def _ids(path: Path | None) -> frozenset[str]:
    if path is None:
        return frozenset()
    from jostle.io.files.label_list import read_ids

    return read_ids(path)


def _called(paths: list[Path], names: str | None) -> list[str]:
    from jostle.reporting.analysis.file_tables import file_names

    return file_names(paths, names)


def _write_table(table: Table, csv: Path | None, latex: Path | None) -> None:
    from jostle.io.files.atomic import write_text

    for path, text in ((csv, table.csv()), (latex, table.latex() + "\n")):
        if path is not None:
            write_text(path, [text])
            console.remark(console.escape(str(path)))


def _draw_scores(names: list[str], scores: list[Score], folder: Path) -> None:
    from jostle.metrics.mean_ap import precision_recall
    from jostle.reporting.figures.detection import draw_class_drops, draw_precision_recall, mean_curve

    first = scores[0]
    present = [i for i, count in enumerate(first.truth.counts) if count]
    curves = {
        f"tIoU {tiou:g} (mAP {percent(first.map[t], 1)})": mean_curve(
            [precision_recall(first.matches, t, label) for label in present]
        )
        for t, tiou in enumerate(first.tious)
    }
    chosen = dict(list(curves.items())[:: max(1, len(curves) // 5)])  # more lines than five cannot be told apart
    written = draw_precision_recall(chosen, folder)
    if len(scores) > 1:
        means: list[dict[str, float]] = [{n: float(v.mean()) for n, v in one.per_class.items()} for one in scores]
        written += draw_class_drops(means[0], means[1], folder, names=(names[0], names[1]))
    for path in written:
        console.remark(console.escape(str(path)))


def _draw_diagnoses(names: list[str], content: dict[str, Any], folder: Path) -> None:
    import json

    from jostle.reporting.figures.detection import draw_clean_against_corrupted, draw_diagnosis

    written = draw_diagnosis(content, folder)
    if len(names) > 1:
        written += draw_clean_against_corrupted(content, content["against"], folder, names=(names[0], names[1]))
    target = folder / "diagnosis.json"
    target.write_text(json.dumps(content, indent=2, allow_nan=False) + "\n", encoding="utf-8")
    for path in [*written, target]:
        console.remark(console.escape(str(path)))
