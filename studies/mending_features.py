"""Features of the test films in every cell of the study of mending: as they are, mended, and with frames known.

Cells are those of `puppets-c`, those beside it, and further lengths, strengths and combinations.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from jostle.core.types.columns import Flags
from jostle.core.types.segments import Segments
from jostle.corruptions.engine.spec import Entry, Spec
from jostle.datasets.dataset import Dataset
from jostle.evaluation.recipes.recipe import CLEAN
from jostle.evaluation.recipes.thumos14_c import CORRUPTIONS, EXTRA, MIXES, PROFILE
from jostle.features.caches import CachedFrames
from jostle.features.engine import Cost, Extraction, VideoFeatures
from jostle.io.files.atomic import write_bytes
from jostle.mending.damage_finders import Mending
from jostle.models.detection.outputs import Candidates, in_seconds
from jostle.parallel.workers import map_unordered
from studies.detection import CELLS, PUPPETS_C, Place

EXTRACTOR = "puppet_net"
AS_IS, KNOWN, MENDED = "as is", "known", "mended"
WAYS = (AS_IS, KNOWN, MENDED)
LENGTHS = (0.1, 1, 5, 10, 20, 30, 40, 60)  # percent of an action; three of them are the benchmark's
OUTSIDE = 60  # frames that are corrupted outside of actions


@dataclass(frozen=True)
class CorruptedCell:
    """A way to corrupt a film.

    Attributes:
        placement: which frames; None where the specs say it.
    """

    name: str
    specs: tuple[Spec, ...]
    placement: str | None = None


def _cell(text: str, placement: str | None = None, name: str = "") -> CorruptedCell:
    specs = tuple(map(Spec.parse, text.split("+")))
    return CorruptedCell(name or (f"{text}@{placement}" if placement else text), specs, placement)


def _strength(kind: str, word: str, value: Any) -> CorruptedCell:
    """Return a kind of THUMOS14-C at a strength that no table has, so that no inspector was trained on it."""
    own = Spec.parse(f"{PROFILE}/{kind}:2").entry
    entry = Entry(own.corruption, (value,), own.options)
    return CorruptedCell(f"{kind} {word}", (Spec(None, own.corruption, 1, entry),), "centre:5%")


# Weaker than in any table that the inspector learned from, between two of its strengths, and stronger.
STRENGTHS: dict[str, tuple[Any, Any, Any]] = {
    "packet_loss": (200, 1700, 6000),
    "overexposure": (25, 85, 230),
    "motion_blur": ((6, 1.5), (18, 10), (30, 25)),
    "occlusion": (0.3, 0.75, 1.6),
}
WORDS = ("weaker", "between", "stronger")
GREYS = (48, 128, 255)  # frames of one colour that is not black


def length_cell(kind: str, percent: float) -> str:
    """Return the name of a cell that corrupts so much of each action."""
    known = {1: 1, 5: 2, 10: 3}.get(percent)
    return f"{PROFILE}/{kind}:{known}" if known else f"{PROFILE}/{kind}:1@centre:{percent:g}%"


GROUPS: dict[str, tuple[CorruptedCell, ...]] = {
    "main": tuple(_cell(name) for name in PUPPETS_C),
    "single": tuple(
        _cell(spec, placement, name)
        for name, (spec, placement) in CELLS.items()
        if name not in PUPPETS_C and "background" not in name
    ),
    "extra": tuple(_cell(f"{PROFILE}/{kind}:{share}") for kind in (*MIXES, *EXTRA) for share in (1, 2, 3)),
    "lengths": tuple(
        _cell(f"{PROFILE}/{kind}:1", f"centre:{percent:g}%")
        for kind in CORRUPTIONS
        for percent in LENGTHS
        if percent not in (1, 5, 10)
    ),
    "strengths": (
        *(_strength(kind, word, STRENGTHS[kind][i]) for kind in STRENGTHS for i, word in enumerate(WORDS)),
        *(_strength("black_frame", f"of grey {level}", level) for level in GREYS),
    ),
    "together": tuple(
        _cell("+".join(f"{PROFILE}/{kind}:2" for kind in kinds))
        for kinds in (
            ("motion_blur", "occlusion"),
            ("overexposure", "packet_loss"),
            ("overexposure", "motion_blur", "occlusion", "packet_loss"),
        )
    ),
    "background": tuple(_cell(f"{PROFILE}/{kind}:1", f"background:{OUTSIDE}") for kind in CORRUPTIONS),
}
UNSEEN = "unseen"  # the main cells before inspectors that never met their kind
BLANK = "black_frame"  # the kind that the rule beside the inspector's network is for
EVERYTHING = "with all"
ALONE = ", alone"  # behind the name of an inspector whose network speaks without the rule beside it


def without(kind: str) -> str:
    """Return the name of an inspector that was trained without a kind."""
    return f"without {kind}"


Plan = list[tuple[str, str | None, tuple[CorruptedCell, ...]]]  # way, what tells the struck frames, cells


@dataclass(frozen=True, eq=False)
class FilmFeatures:
    """What was made of one film.

    Attributes:
        rows: features, each kind of them once.
        place: by way and cell, which of `rows` they are.
        found: by way and cell: struck frames that were found, struck ones, others that were found, and others.
    """

    name: str
    rows: list[npt.NDArray[np.float32]]
    place: dict[str, dict[str, int]]
    found: dict[str, dict[str, list[int]]]


@dataclass(frozen=True)
class _Order:
    name: str
    path: Path
    actions: npt.NDArray[np.float64]
    clean: Path
    out: Path


def inspector_file(folder: Path, name: str) -> Path:
    """Where the weights of an inspector of the study lie."""
    return folder / (name.replace(" ", "-") + ".safetensors")


def plan_of(group: str, inspectors: Path, kinds: Collection[str] = CORRUPTIONS) -> Plan:
    """What is made of a film in a group of cells; the clean cell is in all.

    Args:
        kinds: of stretches of all lengths, and of kinds never met, only these.
    """
    of_kind = {
        kind: tuple(cell for cell in GROUPS["main" if group == UNSEEN else group] if f"/{kind}:" in cell.name)
        for kind in kinds
    }
    main = tuple(cell for own in of_kind.values() for cell in own)
    if group != UNSEEN:
        cells = main if group == "lengths" else GROUPS[group]
        return [(AS_IS, None, cells), (KNOWN, "known", cells), (MENDED, "jostle", cells)]
    plan: Plan = [(KNOWN, "known", main), (EVERYTHING, str(inspector_file(inspectors, EVERYTHING)), main)]
    for kind, own in of_kind.items():
        file = str(inspector_file(inspectors, without(kind)))
        plan += [(without(kind), file, own), (without(kind) + ALONE, file, own)]
    return plan


def make_mended(data: Dataset, group: str, place: Place, number: int, *, plan: Plan, jobs: int) -> None:
    """Write what a network makes of each film in a group of cells, where it is not there yet."""
    truth, orders, folder = data.truth, [], place.films(number)
    for row, name in enumerate(truth.videos):
        out = _file(folder, group, name)
        if name in data.videos and not out.exists():
            mine = truth.video == row
            actions = np.stack([truth.start[mine], truth.end[mine]], axis=1)
            orders.append(_Order(name, Path(data.videos[name]), actions, _file(folder, CLEAN, name), out))
    (folder / group).mkdir(parents=True, exist_ok=True)
    (folder / CLEAN).mkdir(parents=True, exist_ok=True)
    maker = partial(_maker, place.network(number), plan)
    for count, _ in enumerate(map_unordered(maker, orders, jobs), 1):
        print(f"{group}: {count} of {len(orders)} films", flush=True)


def read_mended(folder: Path, group: str, names: Iterable[str]) -> Iterator[FilmFeatures]:
    """What was made of each of these films; none may lack, so that no record is on fewer than it says."""
    for name in sorted(names):
        with np.load(_file(folder, group, name)) as file:
            told = json.loads(str(file["told"]))
            rows = [file[f"rows {n}"] for n in range(told["rows"])]
        yield FilmFeatures(name, rows, told["place"], told["found"])


def _file(folder: Path, group: str, name: str) -> Path:
    return folder / group / f"{name}.npz"


def _maker(network: Path, plan: Plan) -> Callable[[_Order], None]:
    import cv2
    import torch

    from jostle.models.checkpoints import read_weights
    from jostle.models.extractors.extractor import load_extractor

    cv2.setNumThreads(1)
    torch.set_num_threads(1)
    torch.backends.cudnn.allow_tf32 = False
    device = "cuda" if torch.cuda.is_available() else "cpu"
    extractor = load_extractor(EXTRACTOR, weights=read_weights(network), device=device)
    finders = {way: _finder(mend, device, alone=way.endswith(ALONE)) for way, mend, _ in plan if mend is not None}
    return partial(_made, extractor, plan, finders)


def _finder(mend: str, device: str, *, alone: bool) -> Mending:
    from jostle.mending.loading import MendingOptions

    made = MendingOptions(mend).get(device)
    if alone:
        assert made.inspector is not None
        made.inspector.rules = False
    return made


def _made(extractor: Any, plan: Plan, finders: dict[str, Mending], order: _Order) -> None:
    from jostle.io.video.decode import Reader

    rows: list[npt.NDArray[np.float32]] = []
    number: dict[bytes, int] = {}
    place: dict[str, dict[str, int]] = {}
    found: dict[str, dict[str, list[int]]] = {}
    struck: dict[str, Flags] = {}
    with Reader(order.path, threads=1) as reader:
        frames = CachedFrames(reader)
        plain = _kept(order.clean)
        for way, _, cells in plan:
            video = VideoFeatures(
                frames,
                extractor,
                video_id=order.name,
                segments=Segments.from_pairs(order.actions),
                path=reader.coded_path,
                bit_rate=reader.facts.bit_rate,
                clean=plain,
                finder=finders.get(way),
            )
            if plain is None:
                plain = video.plain()
                _keep(order.clean, plain)
            for cell in (None, *cells):
                name = CLEAN if cell is None else cell.name
                done = video.clean() if cell is None else video.under(cell.specs, cell.placement)
                key = done.features.tobytes()
                if key not in number:
                    number[key] = len(rows)
                    rows.append(np.array(done.features))
                place.setdefault(way, {})[name] = number[key]
                if done.mended is not None:
                    told = struck.setdefault(name, done.mended.damaged) if way == KNOWN else struck[name]
                    found.setdefault(way, {})[name] = counts(done.mended.damaged, told)
    told_all = {"rows": len(rows), "place": place, "found": found}
    parts = {f"rows {n}": one for n, one in enumerate(rows)}
    write_bytes(order.out, [_packed({**parts, "told": np.array(json.dumps(told_all))})])


def counts(found: Flags, struck: Flags) -> list[int]:
    """Struck frames that were found, struck ones, others that were found, and others."""
    every = ((found & struck).sum(), struck.sum(), (found & ~struck).sum(), (~struck).sum())
    return [int(many) for many in every]


def _kept(path: Path) -> Extraction | None:
    if not path.exists():
        return None
    with np.load(path) as file:
        return Extraction(file["features"], file["seen"], Cost())


def _keep(path: Path, clean: Extraction) -> None:
    assert clean.seen is not None
    write_bytes(path, [_packed({"features": clean.features, "seen": clean.seen})])


def _packed(parts: dict[str, Any]) -> bytes:
    held = io.BytesIO()
    np.savez(held, **parts)
    return held.getvalue()


STRIDE, WINDOW = 4, 16  # of the rows of `puppet_net`


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
    found: list[list[Candidates]] = [[] for _ in states]
    for first, many in detector.windows(count):
        assert detector.steps(many) == many
        rows, lengths = detector.batch([state[first : first + many] for state in states])
        with torch.inference_mode():
            parts = detector.decode(detector.infer(detector.forward, rows, lengths))
        for own, part in zip(found, parts, strict=True):
            own.append(Candidates(part.segments + np.float32(first), part.scores, part.labels))
    segments_of = []
    for own in found:
        segments, scores, labels = (
            np.concatenate([getattr(part, column) for part in own]) for column in ("segments", "scores", "labels")
        )
        kept = detector.suppress(Candidates(segments, scores, labels), seconds_a_step=STRIDE / fps)
        kept, classes = detector.named(kept)
        centre = WINDOW - 2 * detector.row_centre * STRIDE
        segments_of.append(in_seconds(kept, fps=fps, duration=duration, stride=STRIDE, window=centre, classes=classes))
    return segments_of
