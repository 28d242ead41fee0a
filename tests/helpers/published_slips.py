"""Inconsistent figures of papers: sums recomputed with the tolerance that rounding allows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from jostle.metrics.proportion import clopper_pearson
from jostle.metrics.robustness import robustness
from jostle.reporting.published.table import PublishedRow, PublishedTable, cells_of, published

# Perturbations in each category of UCF101-P.
PERTURBATIONS = {"noise": 4, "blur": 3, "temporal": 5, "digital": 3, "camera": 3}
SPATIAL = ("shot_noise", "rain", "fog", "contrast", "brightness", "saturate")
TEMPORAL = ("motion_blur", "frame_rate", "h265_abr", "h265_crf", "bit_error", "packet_loss")
NEAR = 1e-9  # of sums in binary


@dataclass(frozen=True)
class Slip:
    """A printed figure that does not follow from others.

    Attributes:
        table: its table.
        row: what its row is about.
        column: where in the row.
        printed: the figure.
        found: what the others give, to one digit more.
        why: which others, and how.
    """

    table: PublishedTable
    row: PublishedRow
    column: str
    printed: float
    found: float
    why: str


@dataclass(frozen=True)
class _Span:
    """A number that is known within rounding."""

    low: float
    high: float
    middle: float

    @classmethod
    def printed(cls, value: float, digits: int) -> _Span:
        half = 0.5 * 10.0**-digits
        return cls(value - half, value + half, value)

    def minus(self, other: _Span) -> _Span:
        return _Span(self.low - other.high, self.high - other.low, self.middle - other.middle)

    def over(self, other: _Span) -> _Span:
        return _Span(100 * self.low / other.high, 100 * self.high / other.low, 100 * self.middle / other.middle)

    def meets(self, other: _Span) -> bool:
        return self.low <= other.high + NEAR and other.low <= self.high + NEAR


def _mean(spans: Sequence[_Span], weights: Sequence[int] | None = None) -> _Span:
    shares = [weight / sum(weights) for weight in weights] if weights else [1 / len(spans)] * len(spans)
    ends = ([getattr(span, end) for span in spans] for end in ("low", "high", "middle"))
    return _Span(*(sum(share * value for share, value in zip(shares, values, strict=True)) for values in ends))


Found = tuple[str, tuple[_Span, ...], str]  # a column, what it may be, and why
Find = Callable[[str], _Span | None]


def slips() -> tuple[Slip, ...]:
    """All of them, by table; what other tables of the paper print of the same model counts as well."""
    rows = []
    for table in published.values():
        for row in table.rows:
            keys = set()
            for column, spans, why in _recomputed(table, row):
                own = _Span.printed(row.values[column], table.digits)
                if column not in keys and not any(span.meets(own) for span in spans):
                    keys.add(column)
                    value = round(spans[0].middle, table.digits + 1)
                    rows.append(Slip(table, row, column, row.values[column], value, why))
    return tuple(rows)


def _recomputed(table: PublishedTable, row: PublishedRow) -> Iterator[Found]:
    """Return the figures that a row can be recomputed from."""
    of_model = _columns_of(table, row.labels)

    def find(column: str) -> _Span | None:
        return own[column] if column in own else of_model.get(column)

    own = {column: _Span.printed(value, table.digits) for column, value in row.values.items()}
    rules = (_means, _losses, _gains, _families, _parts, _intervals, _levels, _repeated)
    for rule in rules:
        for column, spans, why in rule(table, row, find):
            if column in own and spans:
                yield column, spans, why


def _same(table: PublishedTable, labels: Mapping[str, str]) -> Iterator[tuple[PublishedTable, PublishedRow]]:
    """Rows about the same in other tables of the paper."""
    key = {name: text for name, text in labels.items() if text}
    for other in published.values():
        if other.paper != table.paper or other is table or other.unit != table.unit or not key.get("benchmark"):
            continue
        for row in other.rows:
            if {name: text for name, text in row.labels.items() if text} == key:
                yield other, row


def _columns_of(table: PublishedTable, labels: Mapping[str, str]) -> dict[str, _Span]:
    spans: dict[str, _Span] = {}
    for other, row in _same(table, labels):
        for column, value in row.values.items():
            spans.setdefault(column, _Span.printed(value, other.digits))
    return spans


def _cells(table: PublishedTable, row: PublishedRow) -> tuple[PublishedTable, PublishedRow, tuple[str, ...]] | None:
    """Return the cells of a model from its own row, or from another table."""
    for other, held in ((table, row), *_same(table, row.labels)):
        cells = tuple(cell for cell in cells_of(other) if cell in held.values)
        if cells:
            return other, held, cells
    return None


def _means(table: PublishedTable, row: PublishedRow, find: Find) -> Iterator[Found]:
    """The mean over cells, and what it is of the clean score; of the printed mean where there are no cells."""
    clean, found = find("clean"), _cells(table, row)
    if found:
        other, held, cells = found
        mean = _mean([_Span.printed(held.values[cell], other.digits) for cell in cells])
        whole = robustness(held.values.get("clean"), {cell: held.values[cell] for cell in cells})
        assert whole.mean_corrupted is not None
        mean = _Span(mean.low, mean.high, whole.mean_corrupted)
        where = "" if other is table else f" in table {other.number}"
        why = f"mean of {len(cells)} cells{where}"
        yield "corrupted", (mean,), why
        yield "mpc", (mean,), why
    else:
        mean_printed = find("corrupted") or find("mpc")
        if mean_printed is None:
            return
        mean, why = mean_printed, "printed mean"
    if clean is not None:
        yield "relative", (mean.over(clean),), f"{why}, by clean"
        yield "rpc", (mean.over(clean),), f"{why}, by clean"


def _losses(table: PublishedTable, row: PublishedRow, find: Find) -> Iterator[Found]:
    for suffix in ("", " at 0.2", " at 0.5", " at 0.7"):
        for before, after in (("clean", "corrupted"), ("accuracy", "pm_k")):
            one, other = find(before + suffix), find(after + suffix)
            if one and other:
                yield f"drop{suffix}", (one.minus(other),), f"{before} less {after}".replace("pm_k", "pm-k")


def _gains(table: PublishedTable, row: PublishedRow, find: Find) -> Iterator[Found]:
    """Over the row of the same model without any special training."""
    plain = {**row.labels, "training": ""}
    base = next((other for other in table.rows if dict(other.labels) == plain), None)
    for column in row.values:
        what, dot, gain = column.rpartition(".")
        own = find(what)
        if dot and gain == "gain" and base is not None and what in base.values and own:
            yield column, (own.minus(_Span.printed(base.values[what], table.digits)),), f"{what} less that without"


def _families(table: PublishedTable, row: PublishedRow, find: Find) -> Iterator[Found]:
    """The mean over categories, or over perturbations: the paper does not say."""
    for kind in ("absolute", "relative"):
        parts = [find(f"{family}.{kind}") for family in PERTURBATIONS]
        known = [part for part in parts if part is not None]
        if len(known) == len(parts):
            spans = (_mean(known), _mean(known, tuple(PERTURBATIONS.values())))
            yield kind, spans, "mean of five categories; of 18 perturbations it is not either"


def _parts(table: PublishedTable, row: PublishedRow, find: Find) -> Iterator[Found]:
    clean = find("clean")
    for part, names in (("spatial", SPATIAL), ("temporal", TEMPORAL)):
        known = [span for name in names if (span := find(name)) is not None]
        if len(known) == len(names) and clean is not None:
            mean = _mean(known)
            yield f"{part}.mpc", (mean,), f"mean of the six {part} ones in table 1"
            yield f"{part}.rpc", (mean.over(clean),), f"mean of the six {part} ones in table 1, by clean"


def _intervals(table: PublishedTable, row: PublishedRow, find: Find) -> Iterator[Found]:
    """Clopper and Pearson's, of every count of anchors that the printed share may stand for."""
    sets = row.labels.get("benchmark", "")
    for what in ("accuracy", "pm_k"):
        share = find(what)
        if share is None or f"{what}.low" not in row.values:
            continue
        anchors = _anchors(table.paper, sets)
        spans: dict[str, list[_Span]] = {"low": [], "high": []}
        counts = [n for n in range(anchors + 1) if share.low - NEAR <= 100 * n / anchors <= share.high + NEAR]
        for count in sorted(counts, key=lambda n: abs(100 * n / anchors - share.middle)):
            ends = clopper_pearson(count, anchors)
            assert ends is not None
            for end, value in zip(("low", "high"), ends, strict=True):
                spans[end].append(_Span(100 * value, 100 * value, 100 * value))
        for end, held in spans.items():
            yield f"{what}.{end}", tuple(held), f"exact interval of {share.middle:g} % of {anchors} anchors"


def _anchors(paper: str, sets: str) -> int:
    table = published[f"{paper}/table-1"]
    return next(int(row.values[sets]) for row in table.rows if row.labels["what"] == "anchors accepted")


def _levels(table: PublishedTable, row: PublishedRow, find: Find) -> Iterator[Found]:
    """A corruption as a whole, where another table has its levels."""
    for column in cells_of(table):
        levels = [span for level in (1, 2, 3) if (span := find(f"{column}:{level}")) is not None]
        if ":" not in column and len(levels) == 3:
            yield column, (_mean(levels),), "mean over the levels in table C"


def _repeated(table: PublishedTable, row: PublishedRow, find: Find) -> Iterator[Found]:
    """Return the same figure as printed in the first table that has it."""
    before = [(other, held) for other, held in _same(table, row.labels) if other.order < table.order]
    for column, value in row.values.items():
        printed = next(((other, held.values[column]) for other, held in before if column in held.values), None)
        if printed is not None and printed[1] != value:
            yield column, (_Span(printed[1], printed[1], printed[1]),), f"as table {printed[0].number} prints it"
