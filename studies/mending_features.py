"""Features of the test films in every cell of the study of mending: as they are, mended, and with frames known."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from jostle.core.types.columns import Flags
from jostle.core.types.segments import Segments
from jostle.datasets.dataset import Dataset
from jostle.evaluation.recipes.recipe import CLEAN
from jostle.evaluation.recipes.thumos14_c import CORRUPTIONS
from jostle.features.engine import VideoFeatures
from jostle.features.frames import CachedFrames
from jostle.features.result import Cost, Extraction
from jostle.io.files.atomic import write_bytes
from jostle.mending.damage import Mending
from jostle.parallel.workers import map_unordered
from studies.mending_cells import ALONE, EVERYTHING, GROUPS, UNSEEN, StruckCell, without
from studies.runs import Place

EXTRACTOR = "puppet_net"
AS_IS, KNOWN, MENDED = "as is", "known", "mended"
WAYS = (AS_IS, KNOWN, MENDED)
Plan = list[tuple[str, str | None, tuple[StruckCell, ...]]]  # way, what tells the struck frames, cells


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
        made.inspector.blank_rule = False
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
