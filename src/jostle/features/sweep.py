"""Features of a video under many corruptions, several of which are computed at once."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace

import numpy as np

from jostle.core.finite import naming
from jostle.core.types.video import VideoSource
from jostle.corruptions.engine.placement import Placement
from jostle.corruptions.engine.spec import Spec
from jostle.corruptions.engine.stages import MADE, origins
from jostle.features.deferred_corruption import DeferredCorruptionFactory
from jostle.features.extraction import CellExtraction, Extraction
from jostle.features.states import StateExtractor

# Cells whose frames are sent once, to be corrupted on the extractor's device; and groups of cells that are in progress,
# and that are begun before the first is waited for: while a core corrupts one, the device is done with those before.
CELLS_AT_ONCE, IN_PROGRESS, BEFORE_WAITING = 16, 8, 4

Corruptions = tuple[Sequence[Spec], str | Placement | None]  # the specs of a cell and their placement
Defer = Callable[[Sequence[Spec], str | Placement | None], DeferredCorruptionFactory | None]


class CellSweep:
    """Computes the features of cells where they can differ from the clean ones, decoding the video once.

    Args:
        corrupt: returns the video under specs and a placement.
        defer: returns the factory of corruptions that run on the extractor's device; None to corrupt here.
    """

    def __init__(
        self,
        states: StateExtractor,
        corrupt: Callable[[Sequence[Spec], str | Placement | None], VideoSource],
        defer: Defer,
        *,
        reproduce_bugs: bool,
    ) -> None:
        self._states, self._corrupt, self._defer, self._reproduce_bugs = states, corrupt, defer, reproduce_bugs

    def run(self, cells: Mapping[str, Corruptions]) -> Iterator[tuple[str, Extraction]]:
        """Yield the features of each cell in order; with an extractor in another process, a few are under way."""
        clean = self._states.plain()
        most = IN_PROGRESS if hasattr(self._states.extractor, "submit") else 1
        in_progress: deque[list[CellExtraction]] = deque()
        for together in self._groups(cells):
            self._submit_frames(together, clean)
            in_progress.append(together)
            for earlier in list(in_progress)[:-BEFORE_WAITING]:
                self._submit_windows(earlier, clean)
            if len(in_progress) == most:
                yield from self._finish_cells(in_progress.popleft(), clean)
        while in_progress:
            for earlier in list(in_progress)[:2]:
                self._submit_windows(earlier, clean)
            yield from self._finish_cells(in_progress.popleft(), clean)

    def _groups(self, cells: Mapping[str, Corruptions]) -> Iterator[list[CellExtraction]]:
        """Yield cells that are computed together: those for which an extractor's device corrupts the same frames."""
        group: list[CellExtraction] = []
        for name, (specs, placement) in cells.items():
            before = self._states.cost
            top = self._corrupt(specs, placement)
            came_from, defer = origins(top), self._defer(specs, placement)
            created = np.flatnonzero(came_from == MADE)
            cell = CellExtraction(name, top, came_from, created, defer, self._states.cost - before)
            if group and (len(group) == CELLS_AT_ONCE or not group[0].can_join(cell)):
                yield group
                group = []
            group.append(cell)
        if group:
            yield group

    def _submit_frames(self, cells: Sequence[CellExtraction], clean: Extraction) -> None:
        """Submit the frames, or windows of frames, that cells changed."""
        factories = [cell.defer for cell in cells if cell.defer is not None]
        if factories:
            with self._account(cells[0]):
                answers = self._states.requests.embed_deferred(cells[0].created, factories)
            for cell, answer in zip(cells, answers, strict=True):
                cell.finish = answer
        for cell in cells:
            with self._account(cell):
                if self._states.finder is not None:
                    cell.done = self._states.mended(cell.top)
                elif clean.seen is None:
                    changed = cell.came_from != np.arange(len(cell.came_from))
                    windows, cell.rows = self._states.windows.patched(changed)
                    cell.finish = self._states.requests.extract_windows(cell.top, windows)
                elif cell.defer is None:
                    cell.finish = self._states.requests.embed_pictures(cell.top, cell.created)

    def _submit_windows(self, cells: Sequence[CellExtraction], clean: Extraction) -> None:
        """Wait for the features of frames, and submit the windows that they change; once for each cell."""
        for cell in cells:
            if cell.done is not None or cell.rows is not None:
                continue
            assert clean.seen is not None
            with self._account(cell):
                frame_features = clean.seen[cell.came_from]  # rows of new frames are arbitrary until they are filled in
                frame_features[cell.created] = cell.finish()
                if self._reproduce_bugs:  # the bugs depend on which frames were corrupted, visibly or not
                    changed = cell.came_from != np.arange(len(cell.came_from))
                else:
                    changed = (frame_features.view(np.uint32) != clean.seen.view(np.uint32)).any(1)
                windows, cell.rows = self._states.windows.patched(changed)
                cell.frame_features, cell.finish = frame_features, self._states.requests.join(frame_features, windows)

    def _finish_cells(self, cells: Sequence[CellExtraction], clean: Extraction) -> Iterator[tuple[str, Extraction]]:
        """Wait for the features of windows, and yield the extractions."""
        self._submit_windows(cells, clean)
        for cell in cells:
            done = cell.done
            if done is None:
                features = np.array(clean.features)
                with self._account(cell):
                    features[cell.rows] = cell.finish()
                done = Extraction(features, cell.frame_features)
            yield cell.name, replace(done, cost=cell.cost)

    @contextmanager
    def _account(self, cell: CellExtraction) -> Iterator[None]:
        """Add what is computed meanwhile to the cost of a cell, and name the cell in errors."""
        before = self._states.cost
        with naming(cell=cell.name):
            yield
        cell.cost += self._states.cost - before
