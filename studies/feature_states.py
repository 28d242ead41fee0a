"""Features of films in many states: clean and in every cell, as they are, mended, and with damaged frames known."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import jostle
from jostle.core.types.columns import Flags
from jostle.core.types.predictions import Predictions
from jostle.core.types.segments import Segments
from jostle.core.types.truth import Truth
from jostle.corruptions.engine.spec import Spec
from jostle.datasets.dataset import Dataset
from jostle.evaluation.recipes.recipe import CLEAN
from jostle.features.caches import CachedFrames
from jostle.features.video import VideoFeatures
from jostle.io.files.atomic import write_bytes
from jostle.models.detection.outputs import Candidates, in_seconds
from jostle.parallel.workers import map_unordered
from studies.harness import get_device

AS_IS, KNOWN, MENDED = "as is", "known", "mended"
WAYS: dict[str, str | None] = {AS_IS: None, KNOWN: "known", MENDED: "jostle"}  # sources of damaged frames
TIOUS = (0.3, 0.4, 0.5, 0.6, 0.7)
STRIDE, WINDOW = 4, 16  # of the rows of every extractor here


@dataclass(frozen=True)
class CorruptedCell:
    """A way to corrupt a film.

    Attributes:
        placement: which frames; None where the specs say it.
    """

    name: str
    specs: tuple[Spec, ...]
    placement: str | None = None


@dataclass(frozen=True)
class Way:
    """Treatment of damaged frames in some cells; the clean one is always among them.

    Attributes:
        mend: source of damaged frames: None for nothing, `known`, `jostle`, or weights of an inspector.
        rules: whether the inspector uses its rules beside its network.
    """

    name: str
    mend: str | None
    cells: tuple[CorruptedCell, ...]
    rules: bool = True


@dataclass(frozen=True, eq=False)
class FilmStates:
    """Features of one film in all its states.

    Attributes:
        rows: features, each kind of them once.
        place: by way and cell, which of `rows` they are.
        found: by way and cell: damaged frames that were found, damaged ones, others that were found, and others.
    """

    name: str
    rows: list[npt.NDArray[np.float32]]
    place: dict[str, dict[str, int]]
    found: dict[str, dict[str, list[int]]]


Order = tuple[str, Path, Segments, Path]  # name, video, actions, and the file to write


def register_extractor(name: str) -> None:
    """Import the networks on film, which registers their extractors, if one of them is named."""
    if name.startswith("film_"):
        import_module("studies.film_networks")


def load_extractor_file(name: str, weights: Path) -> Any:
    """Load an extractor with weights of a file, for a process with one thread."""
    import torch

    from jostle.models.checkpoints import read_weights
    from jostle.models.loading.extractors import load_extractor

    register_extractor(name)
    torch.set_num_threads(1)
    torch.backends.cudnn.allow_tf32 = False
    return load_extractor(name, weights=read_weights(weights), device=get_device())


def make_states(data: Dataset, folder: Path, load: Callable[[], Any], plan: Sequence[Way], *, jobs: int) -> None:
    """Write the features of each film in every way and cell, where they are not there yet.

    Args:
        load: returns the extractor; called in every process.
    """
    folder.mkdir(parents=True, exist_ok=True)
    actions, orders = data.truth.actions, []
    for name, path in data.videos.items():
        if not (folder / f"{name}.npz").exists():
            orders.append((name, Path(path), actions[name], folder / f"{name}.npz"))
    for count, _ in enumerate(map_unordered(partial(_writer, load, plan), orders, jobs), 1):
        print(f"{folder.name}: {count} of {len(orders)} films", flush=True)


def read_states(folder: Path, names: Iterable[str]) -> Iterator[FilmStates]:
    """Read the features of each of these films; none may lack, so that no record is on fewer than it says."""
    for name in sorted(names):
        with np.load(folder / f"{name}.npz") as file:
            info = json.loads(str(file["info"]))
            rows = [file[f"rows {n}"] for n in range(info["rows"])]
        yield FilmStates(name, rows, info["place"], info["found"])


def _writer(load: Callable[[], Any], plan: Sequence[Way]) -> Callable[[Order], None]:
    import cv2

    from jostle.mending.loading import MendingOptions

    cv2.setNumThreads(1)
    finders: dict[str, Any] = {}
    for way in plan:
        if way.mend is not None:
            finders[way.name] = MendingOptions(way.mend).get(get_device())
            if not way.rules:
                finders[way.name].inspector.rules = False
    return partial(_write_states, load(), plan, finders)


def _write_states(extractor: Any, plan: Sequence[Way], finders: dict[str, Any], order: Order) -> None:
    from jostle.io.video.decode import Reader

    name, path, segments, out = order
    number: dict[bytes, int] = {}  # by their bytes, which row features are
    place: dict[str, dict[str, int]] = {}
    detections: dict[str, dict[str, list[int]]] = {}
    damaged: dict[str, Flags] = {}
    with Reader(path, threads=1) as reader:
        known: dict[str, Any] = {"segments": segments, "path": reader.coded_path, "bit_rate": reader.facts.bit_rate}
        frames, plain = CachedFrames(reader), None
        for way in plan:
            video = VideoFeatures(
                frames, extractor, video_id=name, clean=plain, finder=finders.get(way.name), **known
            )  # fmt: skip
            plain = plain or video.plain()
            for cell in (None, *way.cells):
                state = CLEAN if cell is None else cell.name
                done = video.clean() if cell is None else video.under(cell.specs, cell.placement)
                rows = np.array(done.features)
                place.setdefault(way.name, {})[state] = number.setdefault(rows.tobytes(), len(number))
                if done.mended is not None:
                    if way.name == KNOWN:
                        damaged[state] = done.mended.damaged
                    detections.setdefault(way.name, {})[state] = counts(done.mended.damaged, damaged[state])
    arrays: dict[str, Any] = {
        f"rows {n}": np.frombuffer(data, np.float32).reshape(-1, extractor.dim) for data, n in number.items()
    }
    info = {"rows": len(arrays), "place": place, "found": detections}
    buffer = io.BytesIO()
    np.savez(buffer, **arrays, info=np.array(json.dumps(info)))
    write_bytes(out, [buffer.getvalue()])


def counts(detected: Flags, damaged: Flags) -> list[int]:
    """Return the numbers of detected damaged frames, damaged frames, detected others, and others."""
    every = ((detected & damaged).sum(), damaged.sum(), (detected & ~damaged).sum(), (~damaged).sum())
    return [int(many) for many in every]


class DetectedStates:
    """Detections in every state of some films; states of the same features are scored once.

    Attributes:
        films: names of the films.
        truth: their annotations.
        numbers: by way and cell, which features of each film they are.
        found: by way and cell, the sums over films of the counts of found frames.
    """

    def __init__(self, detector: Any, states: Iterable[FilmStates], truth: Truth) -> None:
        facts = dict(zip(truth.videos, zip(truth.fps, truth.duration, strict=True), strict=True))
        segments: dict[str, list[Segments]] = {}
        numbers: dict[str, dict[str, list[int]]] = {}
        self.found: dict[str, dict[str, list[int]]] = {}
        for film in states:
            fps, duration = facts[film.name]
            segments[film.name] = find_in_states(detector, film.rows, fps=float(fps), duration=float(duration))
            for way, cells in film.place.items():
                for cell, number in cells.items():
                    numbers.setdefault(way, {}).setdefault(cell, []).append(number)
                    own = film.found.get(way, {}).get(cell, [0] * 4)
                    total = self.found.setdefault(way, {}).get(cell, [0] * 4)
                    self.found[way][cell] = [a + b for a, b in zip(total, own, strict=True)]
        self.films, self.truth = list(segments), truth.of_videos(list(segments))
        self.numbers = {way: {cell: tuple(own) for cell, own in cells.items()} for way, cells in numbers.items()}

        @cache
        def predictions(numbers: tuple[int, ...]) -> Predictions:
            return Predictions.from_segments(
                {name: segments[name][n] for name, n in zip(self.films, numbers, strict=True)}
            )

        self._score = cache(
            lambda numbers: jostle.score(predictions(numbers), self.truth, protocol="thumos14", tious=TIOUS)
        )
        self._errors = cache(lambda numbers: error_profile(predictions(numbers), self.truth))

    def score(self, way: str, cell: str) -> Any:
        """Return the score in a state."""
        return self._score(self.numbers[way][cell])

    def errors(self, way: str, cells: Collection[str]) -> dict[str, dict[str, float]]:
        """Return the profiles of errors in clean films, and the mean of those in some cells."""
        clean, *each = (self._errors(self.numbers[way][cell]) for cell in (CLEAN, *cells))
        return {"clean": clean, "corrupted": {key: float(np.mean([one[key] for one in each])) for key in clean}}


def error_profile(predictions: Predictions, truth: Any) -> dict[str, float]:
    """Return the cost of each kind of error, in average mAP_N, and the share of actions that are missed."""
    diagnosis = jostle.diagnose(predictions, truth, style="thumos14").to_dict()
    return {**diagnosis["false_positives"]["impact"], "missed": diagnosis["false_negatives"]["overall"]}


def find_in_states(
    detector: Any, states: Sequence[npt.NDArray[np.float32]], *, fps: float, duration: float
) -> list[Segments]:
    """Return the segments of many states of a film, processed in one batch, which keeps a GPU busy.

    They are those of `detector.detect`, up to what a sum in another order changes.

    Args:
        detector: one of features that does not stretch them.
        states: (T, C) rows each, all of one film and so as many.
    """
    import torch

    (count,) = {len(rows) for rows in states}
    assert not detector.config.stretches
    candidates: list[list[Candidates]] = [[] for _ in states]
    for first, many in detector.windows(count):
        assert detector.steps(many) == many
        rows, lengths = detector.batch([state[first : first + many] for state in states])
        with torch.inference_mode():
            parts = detector.decode(detector.infer(detector.forward, rows, lengths))
        for own, part in zip(candidates, parts, strict=True):
            own.append(Candidates(part.segments + np.float32(first), part.scores, part.labels))
    segments_of = []
    for own in candidates:
        segments, scores, labels = (
            np.concatenate([getattr(part, column) for part in own]) for column in ("segments", "scores", "labels")
        )
        suppressed = detector.suppress(Candidates(segments, scores, labels), seconds_a_step=STRIDE / fps)
        final, classes = detector.named(suppressed)
        centre = WINDOW - 2 * detector.row_centre * STRIDE
        segments_of.append(in_seconds(final, fps=fps, duration=duration, stride=STRIDE, window=centre, classes=classes))
    return segments_of
