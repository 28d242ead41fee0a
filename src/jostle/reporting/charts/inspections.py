"""An inspected video: some of its frames above the probability that each is damaged."""

from __future__ import annotations

from jostle.core.types.inspection import Inspection
from jostle.reporting.analysis.verdict import percent
from jostle.reporting.charts.drawing import Drawing, Scale, ticks

LEFT, WIDE, TALL = 64.0, 800.0, 120.0  # pixels of the curve


def draw_inspection(inspection: Inspection, title: str) -> Drawing:
    """Draw the curve of probabilities with the threshold, below the frames that the inspection kept."""
    right = LEFT + WIDE
    step = float(1 / inspection.fps)
    times = [float(time) for time in inspection.pts]
    begin, end = (times[0], times[-1] + step) if times else (0.0, 1.0)
    size = WIDE / max(len(inspection.small), 1)
    strip = size * inspection.small[0].shape[0] / inspection.small[0].shape[1] if inspection.small else 0.0
    top = 26 + strip + (10 if strip else 0)
    drawing = Drawing(right + 10, top + TALL + 40, title or "Probability of damage over time")
    drawing.text(LEFT, 16, title, "strong")
    for number, pixels in enumerate(inspection.small):
        drawing.image(LEFT + number * size, 26, size, strip, pixels)
    over, down = Scale(begin, end, LEFT, right), Scale(0, 1, top + TALL, top)
    drawing.levels(down, LEFT, right, lambda tick: f"{tick:g}", 2)
    for lo, hi in inspection.stretches:
        start, stop = over(times[lo]), over(times[hi - 1] + step)
        hint = f"damaged, {times[lo]:.2f} to {times[hi - 1] + step:.2f} s"
        drawing.rect(start, top, stop - start, TALL, "damaged", hint)
    for tick in ticks(begin, end, 10):
        drawing.line(over(tick), top + TALL, over(tick), top + TALL + 4, "axis")
        drawing.text(over(tick), top + TALL + 17, f"{tick:g}", "pale small", "middle")
    drawing.text((LEFT + right) / 2, top + TALL + 34, "seconds", "pale small", "middle")
    drawing.text(14, top + TALL / 2, "P(damaged)", "pale small", "middle", turn=-90)
    level = down(inspection.threshold)
    drawing.line(LEFT, level, right, level, "level")
    drawing.text(
        right, level + (11 if level < top + 12 else -4), f"{percent(inspection.threshold, 0)} %", "tiny", "end"
    )
    ends = zip(times, [*times, end][1:], inspection.probabilities, strict=True)
    steps = [(over(time), down(float(probability))) for a, b, probability in ends for time in (a, b)]
    if steps:
        drawing.path(steps, "line run0")
    return drawing
