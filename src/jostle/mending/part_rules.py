"""Plain rule for a stream that finds bands of one colour in place of a part of the picture."""

from __future__ import annotations

from collections import deque

import numpy as np
import numpy.typing as npt

from jostle.core.kernels import kernel
from jostle.mending.descriptor_layout import CELLS
from jostle.mending.frame_facts import DEVIATION, FrameFacts, Mask, Values, correlation, detail_code
from jostle.mending.stream_rules import Finding

FLAT_DETAIL = detail_code(0.6)  # largest deviation in a cell of a fill, a codec's trace
FLAT_RANGE = 3  # of its four lights
BAND_RANGE = 5  # of lights and colours along a band
BAND_CELLS = CELLS - 1  # of a row or column that must be flat, and of one colour
FILL_ROWS, OTHER_ROWS = 1.5, 3  # rows or columns of a band in a decoder's colours, and in any other
CONTINUES = 0.5  # change of the rest of the picture, as a share of that of the band
REST = 6.0  # grey levels that the rest may change by in any case
SAME_REST = 0.7  # correlation of the rest with what it was; cuts to letterboxed pictures had up to 0.45
TYPICAL = 64  # frames; a row that is a band in half of them is one as a rule
PART_SECONDS = 120.0  # after which a band is taken for part of the picture
NO_BANDS = bytes(2 * CELLS)


class MissingPartRule:
    """Rule for a part of the picture that turns to one colour, as lost slices do: `missing_part`.

    Rows or columns of cells from edge to edge become flat and of one colour from one frame to the next, while the rest
    of the picture goes on. A decoder's grey, green and black need two rows of twelve, other colours three. Bars that
    are there all the time, as of letterbox, are typical and do not count, nor does a cut to a picture with bars.

    Misses: bands of less than two rows of cells, parts of a row, fills with a texture (concealment that copies), what
    is lost at a cut, and what is missing from the first frame on. False: a plain panel over a quarter of the picture
    that appears at once.
    """

    def __init__(self) -> None:
        self._last: FrameFacts | None = None  # last frame without a band that is not typical
        self._bands: deque[bytes] = deque(maxlen=TYPICAL)  # (2, CELLS) which rows and columns were bands
        self._often = np.zeros((2, CELLS), np.int64)  # in how many of those frames
        self._since: float | None = None

    def push(self, index: int, time: float, facts: FrameFacts) -> list[Finding]:
        """Add a frame and return what it shows."""
        bands = find_bands(facts)
        if self._last is None:
            self._begin(bands, facts)
            return []
        if not bands.any() and self._bands[0] == NO_BANDS:  # most frames
            self._bands.append(NO_BANDS)
            self._last, self._since = facts, None
            return []
        new = bands & (self._often < TYPICAL / 2)
        lines = int(new.sum(1).max())
        whole = bool(bands.all())
        if whole or lines < FILL_ROWS or not self._is_part(facts, new):
            oldest = np.frombuffer(self._bands[0], np.bool_).reshape(2, CELLS)
            self._often += bands.astype(np.int64) - oldest
            self._bands.append(bands.tobytes())
            self._last, self._since = facts, None
            return []
        self._since = time if self._since is None else self._since
        if time - self._since > PART_SECONDS:
            self._begin(bands, facts)
            return []
        return [Finding(index, index, "missing_part", 0.97)]

    def _begin(self, bands: Mask, facts: FrameFacts) -> None:
        """Take what a frame shows for typical."""
        self._bands.extend([bands.tobytes()] * TYPICAL)
        self._often = TYPICAL * bands.astype(np.int64)
        self._last, self._since = facts, None

    def _is_part(self, facts: FrameFacts, new: npt.NDArray[np.bool_]) -> bool:
        """Return whether new bands are a fill and the rest goes on."""
        assert self._last is not None
        axis = int(new.sum(1).argmax())
        cells = np.repeat(new[axis][:, None], CELLS, 1) if axis == 0 else np.repeat(new[axis][None], CELLS, 0)
        if int(new[axis].sum()) < (2 if is_fill(facts, cells) else OTHER_ROWS):
            return False
        if self._since is not None:
            return True
        change = np.abs(facts.cell_lights - self._last.cell_lights)
        detail = np.abs(facts.detail[DEVIATION] - self._last.detail[DEVIATION])
        rest = ~cells & ~np.repeat(find_bands(facts)[axis][:, None], CELLS, 1) if axis == 0 else ~cells
        if not rest.any():
            return False
        lost = float(detail[cells].mean()) >= detail_code(1.0) or float(change[cells].mean()) >= 8
        if not lost or float(change[rest].mean()) > max(REST, CONTINUES * float(change[cells].mean())):
            return False
        still = float(change[rest].mean()) <= REST  # where a plain rest would correlate by its noise alone
        return still or correlation(self._last.cell_lights[rest], facts.cell_lights[rest]) >= SAME_REST


def find_bands(facts: FrameFacts) -> Mask:
    """Return (2, CELLS) which rows and which columns of cells are flat and of one colour from edge to edge."""
    bands = np.zeros((2, CELLS), np.bool_)
    if not has_flat_line(facts.detail):
        return bands
    quarters = facts.lights.reshape(CELLS, 2, CELLS, 2)
    flat = facts.detail[DEVIATION] <= FLAT_DETAIL
    flat &= quarters.max((1, 3)) - quarters.min((1, 3)) <= FLAT_RANGE
    values = np.concatenate([facts.cell_lights[None], facts.colours])
    for axis, mask in enumerate((flat, flat.T)):
        enough = mask.sum(1) >= BAND_CELLS
        for line in np.flatnonzero(enough):
            here = values[:, line] if axis == 0 else values[:, :, line]
            here = np.sort(here[:, mask[line]])
            bands[axis, line] = bool((here[:, -1] - here[:, 0] <= BAND_RANGE).all())
    return bands


@kernel
def has_flat_line(detail: Values) -> bool:
    """Return whether enough cells of a row or of a column are flat for a band."""
    for line in range(CELLS):
        across, down = 0, 0
        for cell in range(CELLS):
            across += detail[DEVIATION, line, cell] <= FLAT_DETAIL
            down += detail[DEVIATION, cell, line] <= FLAT_DETAIL
        if max(across, down) >= BAND_CELLS:
            return True
    return False


def is_fill(facts: FrameFacts, cells: Mask) -> bool:
    """Return whether cells have a colour that decoders fill lost parts with: grey, green or black."""
    light = float(np.median(facts.cell_lights[cells]))
    blue, red = (2 * (float(np.median(colour[cells])) - 128) for colour in facts.colours)
    grey = abs(blue) <= 8 and abs(red) <= 8
    return (grey and (light <= 20 or 118 <= light <= 138)) or (blue <= -40 and red <= -40)
