"""Every reader that a file from outside can reach, with sound files of its kind to begin from."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from helpers import samples
from helpers.mutation import (
    Mutator,
    container_changed,
    header_changed,
    json_changed,
    line_changed,
    pickle_changed,
    with_digits,
    zip_changed,
)
from jostle.errors import JostleError


@dataclass(frozen=True)
class Reader:
    """A reader, and what it is given.

    Attributes:
        samples: sound files by name, given a folder to make them in.
        read: reads a file; the folder that it lies in is its own.
        mutators: those that know the format.
        count: how many inputs the whole suite gives it.
        around: files that must lie beside the one that is read.
    """

    samples: Callable[[Path], samples.Samples]
    read: Callable[[Path], object]
    mutators: tuple[Mutator, ...]
    count: int
    around: Callable[[Path], None] = lambda folder: None


def first_of(*reads: Callable[[Path], object]) -> Callable[[Path], object]:
    """Try each reader on a file; refused only if all refuse."""

    def read(path: Path) -> object:
        refusal: JostleError | None = None
        found: object = None
        for one in reads:
            try:
                found = one(path)
            except JostleError as error:
                refusal = error
        if found is None and refusal is not None:
            raise refusal
        return found

    return read


def _annotations(path: Path) -> object:
    from jostle.io.files.annotations import read_predictions, read_truth, read_video_labels

    return first_of(read_truth, lambda path: read_truth(path, fix=True), read_predictions, read_video_labels)(path)


def _language(path: Path) -> object:
    from jostle.core.types.language import QuestionItem, QuestionSet
    from jostle.io.formats.answers import read_answers
    from jostle.io.formats.moments import read_moments, read_windows
    from jostle.io.formats.questions import read_questions
    from jostle.metrics.answer_text import read_choice
    from jostle.metrics.answers import score_answers

    questions = QuestionSet(tuple(QuestionItem(name, name, "Q?", ("x", "y"), 0) for name in "123"))
    return first_of(
        read_questions,
        read_moments,
        read_windows,
        lambda path: score_answers(read_answers(path, questions, read_choice), questions),
    )(path)


def _lists(path: Path) -> object:
    from jostle.datasets.layouts.classes import read_names, read_numbers
    from jostle.io.files.label_list import read_ids

    return first_of(read_ids, read_numbers, read_names)(path)


def _frames(path: Path) -> object:
    from jostle.evaluation.inference.feature_detection import read_video_scores
    from jostle.evaluation.tasks.score_tables import read_table
    from jostle.io.formats.frame_scores import read_frame_labels, read_frame_scores, read_frame_sets

    tables = (read_frame_scores, lambda path: read_table(path, "frames"))
    return first_of(*tables, read_frame_sets, read_frame_labels, read_video_scores)(path)


def _boxes(path: Path) -> object:
    from jostle.io.formats.boxes import read_detections, read_true_boxes, read_vid_boxes

    beside = [path.parent / "images.json", path.parent / "list.txt"]
    return first_of(
        read_true_boxes,
        read_vid_boxes,
        read_detections,
        lambda path: read_detections(path, beside[0]),
        lambda path: read_detections(path, beside[1]),
    )(path)


def _features(path: Path) -> object:
    from jostle.io.files.arrays import read_features

    return read_features(path, channels=6)


def _store(path: Path) -> object:
    from jostle.features.store import read_store

    return read_store(path.parent)


def _weights(path: Path) -> object:
    from jostle.models.checkpoints import read_note, read_weights

    with suppress(JostleError):
        read_note(path, "settings", {})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # about weights that are raw
        return read_weights(path)


def _settings(path: Path) -> object:
    from jostle.evaluation.recipes.selection import read_benchmark
    from jostle.training.task import read_training

    return first_of(read_benchmark, read_training)(path)


def _images(path: Path) -> object:
    from jostle.io.video.decode import Reader

    with Reader(path.parent) as folder:
        return folder.block(0, len(folder))


def _layout(path: Path) -> object:
    from jostle.datasets.dataset import Request, datasets

    name = path.parent.name
    return datasets[name].load(Request(datasets[name].default_subset, path.parent))


def _video(path: Path) -> object:
    from jostle.io.video import decode

    decode._scans.clear()  # they are kept by size and time of change, and inputs may share both
    with decode.Reader(path, threads=1, keep=0.1, on_missing="hold") as opened:
        return sum(int(frame[0, 0, 0]) for frame in opened)


def _corrupted_video(path: Path) -> object:
    """Corrupt the coded stream where there is one, and copy the sound."""
    import jostle
    from jostle.io.video import decode

    decode._scans.clear()
    spec = ("bit_error:2", "packet_loss:2", "freeze:3")[path.stat().st_size % 3]
    return jostle.corrupt_file(path, spec, path.parent / "out" / "corrupted.mkv", jobs=1)


def _run(path: Path) -> object:
    """What `jostle check`, `jostle report` and `jostle diff` learn of a run before they show anything."""
    from jostle.api.results import verify
    from jostle.evaluation.results.record import RunRecord
    from jostle.evaluation.results.run_analysis import analyse_run

    root = next(folder for folder in path.parents if folder.parent.name == "place")
    return first_of(lambda _: verify(root), lambda _: analyse_run(RunRecord.read(root), draws=2))(path)


READERS = {
    "json annotations": Reader(samples.json_annotations, _annotations, (json_changed,), 24_000),
    "text annotations": Reader(samples.text_annotations, _annotations, (line_changed, with_digits), 20_000),
    "pickled annotations": Reader(samples.pickled_annotations, _annotations, (pickle_changed,), 10_000),
    "language": Reader(samples.language, _language, (json_changed, line_changed), 8_000),
    "lists": Reader(samples.lists, _lists, (json_changed, line_changed), 8_000),
    "scores": Reader(samples.scores, _frames, (json_changed,), 5_000),
    "tables": Reader(samples.tables, _frames, (zip_changed,), 8_000),
    "boxes": Reader(samples.boxes, _boxes, (json_changed, line_changed, zip_changed), 6_000, samples.box_lists),
    "features": Reader(samples.features, _features, (header_changed,), 6_000),
    "feature store": Reader(samples.feature_store, _store, (json_changed,), 2_000),
    "data sets": Reader(samples.data_sets, _layout, (json_changed, line_changed), 3_000, samples.some_clips),
    "settings": Reader(samples.settings, _settings, (line_changed, with_digits), 3_000),
    "weights": Reader(samples.weights, _weights, (zip_changed, pickle_changed, header_changed), 8_000),
    "images": Reader(samples.images, _images, (), 10_000),
    "image times": Reader(samples.image_times, _images, (json_changed, with_digits), 2_000, samples.one_image),
    "runs": Reader(samples.runs, _run, (json_changed, zip_changed), 3_000, samples.whole_runs),
    "video": Reader(samples.videos, _video, (container_changed, container_changed), 15_000),
    "video struck": Reader(samples.videos, _corrupted_video, (container_changed,), 2_000, samples.out_folder),
}
