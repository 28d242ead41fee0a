"""The verbs that score and explain predictions: `eval`, `diagnose`, `pmk`, `convert`."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from jostle import api
from jostle.cli import console
from jostle.cli.app import Json, Seed, app
from jostle.core.formatting import escape, percent
from jostle.errors import BadValue

if TYPE_CHECKING:
    from jostle.core.results import Result
    from jostle.metrics.score import Score

PredArgument = Annotated[Path, typer.Argument(metavar="PRED", help="Predictions in any supported format.")]
TruthRequired = Annotated[Path, typer.Option("--truth", metavar="GT", help="Ground truth in any supported format.")]
Subset = Annotated[str | None, typer.Option("--subset", metavar="S", help="Subset of the ground truth.")]
Names = Annotated[str | None, typer.Option("--names", metavar="A,B", help="Labels of the files; default: their names.")]
Csv = Annotated[Path | None, typer.Option("--csv", metavar="FILE", help="Write the numbers as a CSV table.")]
Latex = Annotated[Path | None, typer.Option("--latex", metavar="FILE", help="Write a LaTeX table (booktabs).")]
Fix = Annotated[bool, typer.Option("--fix", help="Drop bad entries and count them instead of refusing the file.")]


@app.command(
    "eval",
    help="Score detections, proposals, classes of videos, answers or moments by the rules of a public evaluator.",
)
def evaluate(
    predictions: PredArgument,
    truth: TruthRequired,
    subset: Subset = None,
    task: Annotated[
        Literal["detection", "proposals", "classification", "questions", "moments"] | None,
        typer.Option(
            "--task",
            help=(
                "Task to score; proposals: class-agnostic AR-AN; classification: classes of whole videos;"
                " questions: answers; moments: windows of sentences. Default: detection, or the task of "
                "GT."
            ),
        ),
    ] = None,
    protocol: Annotated[
        str,
        typer.Option("--protocol", metavar="P", help="Protocol: activitynet, thumos14, thumos14-official or opentad."),
    ] = "activitynet",
    tiou: Annotated[str | None, typer.Option("--tiou", metavar="0.5,...", help="Thresholds of tIoU.")] = None,
    bootstrap: Annotated[
        int,
        typer.Option("--bootstrap", metavar="N", min=0, help="Number of bootstrap draws over videos; 0: no interval."),
    ] = 0,
    against: Annotated[
        Path | None, typer.Option("--against", metavar="PRED2", help="Second predictions, compared with the first.")
    ] = None,
    per_class: Annotated[bool, typer.Option("--per-class", help="Print a line per class too.")] = False,
    figures: Annotated[
        Path | None, typer.Option("--figures", metavar="DIR", help="Write figures to this folder.")
    ] = None,
    names: Names = None,
    csv: Csv = None,
    latex: Latex = None,
    blocked: Annotated[
        Path | None, typer.Option("--blocked", metavar="FILE", help="File with ids of videos to ignore.")
    ] = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Refuse predictions of classes that the ground truth lacks.")
    ] = False,
    reproduce_bug: Annotated[
        list[str] | None,
        typer.Option(
            "--reproduce-bug", metavar="BUG", help="Reproduce a bug, for moments: empty-query of QVHighlights' program."
        ),
    ] = None,
    fix: Fix = False,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    scored = task or _task_of(truth)
    if reproduce_bug and scored != "moments":
        raise BadValue("--reproduce-bug goes with --task moments; leave it out")
    if scored in ("questions", "moments"):
        others: dict[str, object] = {
            "--csv": csv,
            "--latex": latex,
            "--names": names,
            "--subset": subset,
            "--figures": figures,
        }
        others |= {"--tiou": tiou, "--blocked": blocked, "--bootstrap": bootstrap or None}
        if unused := [name for name, value in others.items() if value is not None]:
            raise BadValue(f"{unused[0]} goes with detections; {scored} have their own thresholds and intervals")
        if scored == "questions":
            console.give(_score_answers(predictions, truth, against), as_json)
        else:
            console.give(_score_moments(predictions, truth, against, reproduce_bug or [], fix), as_json)
        return
    if scored != "detection":
        if csv is not None or latex is not None or names is not None:
            raise BadValue(f"--csv, --latex and --names go with detections; {scored} have --json")
        console.give(_score_other(scored, predictions, truth, subset, _tious(tiou), fix), as_json)
        return
    from jostle.io.files.truth_table import variant_of
    from jostle.metrics.side_by_side import ScoredFiles, file_names

    real = api.load_scored_truth(truth, subset=subset, fix=fix)
    barred = _ids(blocked)
    paths = [path for path in (predictions, against) if path is not None]
    called = file_names(paths, names)
    with console.progress("drawing videos") as advance:
        scores = [
            api.score(
                api.load_predictions(path, fix=fix),
                real,
                protocol=protocol,
                tious=_tious(tiou),
                bootstrap=bootstrap,
                seed=seed,
                blocked=barred,
                strict=strict,
                progress=advance,
            )
            for path in paths
        ]
        both = api.compare(scores[0], scores[1], bootstrap=bootstrap, seed=seed) if against is not None else None
    if figures is not None:
        _draw_scores(called, scores, figures)
    result = ScoredFiles(called, scores, both, variant_of(real), per_class)
    console.give(result, as_json, csv=csv, latex=latex)


@app.command(help="Diagnose a detector with DETAD: false positives, sensitivity, false negatives.")
def diagnose(
    predictions: PredArgument,
    truth: TruthRequired,
    subset: Subset = None,
    style: Annotated[str, typer.Option("--style", metavar="S", help="Style: activitynet or thumos14.")] = "thumos14",
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="DIR", help="Write figures and diagnosis.json to this folder.")
    ] = None,
    against: Annotated[
        Path | None,
        typer.Option(
            "--against",
            metavar="PRED2",
            help="Second predictions, such as on corrupted video, compared with the first.",
        ),
    ] = None,
    names: Names = None,
    csv: Csv = None,
    latex: Latex = None,
    annotators: Annotated[
        int,
        typer.Option("--annotators", min=1, help="Number of annotations of each instance, where the file has several."),
    ] = 1,
    fix: Fix = False,
    as_json: Json = False,
) -> None:
    from jostle.metrics.diagnosis.comparison import compare_diagnoses
    from jostle.metrics.side_by_side import DiagnosedFiles, file_names

    real = api.load_scored_truth(truth, subset=subset, fix=fix)
    paths = [path for path in (predictions, against) if path is not None]
    called = file_names(paths, names)
    diagnoses = [
        api.diagnose(api.load_predictions(path, fix=fix), real, style=style, annotators=annotators) for path in paths
    ]
    change = compare_diagnoses(*diagnoses[:2]) if len(diagnoses) > 1 else None
    result = DiagnosedFiles(called, diagnoses, change)
    if out is not None:
        _draw_diagnoses(called, result.to_dict(), out)
    console.give(result, as_json, csv=csv, latex=latex)


@app.command(help="Measure pm-k: the stability of a frame classifier or object detector over similar frames.")
def pmk(
    predictions: Annotated[
        Path,
        typer.Argument(
            metavar="PRED", help="Scores of frames, as JSON or npz; or boxes, as COCO JSON, VID text or npz."
        ),
    ],
    sets: Annotated[
        Path, typer.Option("--sets", metavar="pmsets.json", help="JSON file with the similar frames of each anchor.")
    ],
    labels: Annotated[
        Path | None, typer.Option("--labels", metavar="labels.json", help="Classes of each frame, for a classifier.")
    ] = None,
    boxes: Annotated[
        Path | None, typer.Option("--boxes", metavar="boxes.json", help="True boxes of each frame, for a detector.")
    ] = None,
    frames: Annotated[
        Path | None,
        typer.Option("--frames", metavar="FILE", help="Frames that PRED refers to: COCO annotations, or VID's list."),
    ] = None,
    k: Annotated[int, typer.Option("-k", min=0, help="Number of frames on each side of an anchor.")] = 10,
    project: Annotated[
        Literal["imagenet-vid", "ytbb"] | None,
        typer.Option("--project", help="Merge scores of the 1000 ImageNet classes into those of the set."),
    ] = None,
    labels_of: Annotated[
        Literal["own", "anchor"], typer.Option("--labels-of", help="Labels that neighbours are compared with.")
    ] = "own",
    as_json: Json = False,
) -> None:
    if (labels is None) == (boxes is None):
        raise BadValue("pmk takes --labels for a frame classifier, or --boxes for an object detector; give one of them")
    if boxes is not None:
        if project is not None or labels_of != "own":
            raise BadValue("--project and --labels-of are for frame classifiers; leave them out beside --boxes")
        console.give(api.pm_k_boxes(predictions, sets, boxes, k, frames=frames), as_json)
        return
    if frames is not None:
        raise BadValue("--frames goes with --boxes; scores of a classifier have the names of their frames")
    assert labels is not None
    console.give(api.pm_k(predictions, sets, labels, k, labels_of=labels_of, project=project), as_json)


@app.command(help="Convert annotations or predictions from one format to another.")
def convert(
    source: Annotated[Path, typer.Argument(metavar="IN", help="File in any supported format.")],
    target: Annotated[Path, typer.Argument(metavar="OUT", help="File to write; its ending selects the format.")],
    to: Annotated[
        str | None, typer.Option("--to", metavar="FORMAT", help="Format, if the ending is ambiguous.")
    ] = None,
    truth: Annotated[
        Path | None,
        typer.Option("--truth", metavar="GT", help="Ground truth, for names or numbers of the classes of predictions."),
    ] = None,
    subset: Subset = None,
    fix: Fix = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace OUT if it exists.")] = False,
    as_json: Json = False,
) -> None:
    if target.exists() and not overwrite:
        raise BadValue(f"{target} exists; pass --overwrite to replace it")
    console.give(api.convert(source, target, to=to, truth=truth, subset=subset, fix=fix), as_json)


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


def _score_answers(predictions: Path, truth: Path, against: Path | None) -> Result:
    from jostle.metrics.side_by_side import AnsweredFiles, file_names

    first, second, change = api.score_answer_files(predictions, truth, against)
    if against is None or second is None:
        return first
    return AnsweredFiles(file_names([predictions, against]), (first, second), change)


def _score_moments(predictions: Path, truth: Path, against: Path | None, bugs: list[str], fix: bool) -> Result:
    from jostle.metrics.side_by_side import MomentFiles, file_names

    paths = [path for path in (predictions, against) if path is not None]
    scores: list[Any] = [
        api.evaluate(path, truth, task="moments", reproduce_bugs=bugs, fix=fix)  # type: ignore[arg-type]
        for path in paths
    ]
    return scores[0] if len(scores) == 1 else MomentFiles(file_names(paths), scores)


def _score_other(
    task: str, predictions: Path, truth: Path, subset: str | None, tious: list[float] | None, fix: bool
) -> Result:
    if task == "proposals":
        from jostle.metrics.proposals import average_recall

        real = api.load_scored_truth(truth, subset=subset, fix=fix)
        return average_recall(api.load_predictions(predictions, fix=fix), real, average_proposals=100, tious=tious)
    from jostle.io.files.annotations import read_video_labels
    from jostle.metrics.video_classification import video_classification

    return video_classification(read_video_labels(predictions), read_video_labels(truth, subset=subset))


def _tious(text: str | None) -> list[float] | None:
    if text is None:
        return None
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise BadValue(f"--tiou takes numbers with commas between them, as in 0.3,0.5; got {text!r}") from None


def _ids(path: Path | None) -> frozenset[str]:
    if path is None:
        return frozenset()
    from jostle.io.files.label_list import read_ids

    return read_ids(path)


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
        console.remark(escape(str(path)))


def _draw_diagnoses(names: list[str], content: dict[str, Any], folder: Path) -> None:
    import json

    from jostle.reporting.figures.detection import draw_clean_against_corrupted, draw_diagnosis

    written = draw_diagnosis(content, folder)
    if len(names) > 1:
        written += draw_clean_against_corrupted(content, content["against"], folder, names=(names[0], names[1]))
    target = folder / "diagnosis.json"
    target.write_text(json.dumps(content, indent=2, allow_nan=False) + "\n", encoding="utf-8")
    for path in [*written, target]:
        console.remark(escape(str(path)))
