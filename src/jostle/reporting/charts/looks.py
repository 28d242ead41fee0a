"""Looks of the shapes of charts, as rules of a style sheet, and as values for what is saved to a file.

A look is declared once: pages get it as a style sheet, figures for papers the values of the light ground.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from jostle.reporting.charts.drawing import Shape
from jostle.reporting.charts.palette import INKS, LOSS_INKS, LOSSES, PAGE, SERIES

Look = dict[str, str]

# A selector is a tag with classes; a value that begins with -- is a colour of the palette, `--own` the shape's own.
RULES: Mapping[str, Mapping[str, str]] = {
    "text": {
        "font-family": 'system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif',
        "font-size": "13px",
        "fill": "--ink",
    },
    ".small": {"font-size": "11px"},
    ".tiny": {"font-size": "9.5px"},
    ".strong": {"font-weight": "650"},
    "text.pale": {"fill": "--pale"},
    ".grid": {"stroke": "--line", "stroke-width": "1"},
    ".axis": {"stroke": "--pale", "stroke-width": "1"},
    ".level": {"stroke": "--ink", "stroke-width": "1", "stroke-dasharray": "4 2"},
    ".square": {"fill": "--own --raised", "stroke": "--line", "stroke-width": ".6"},
    "text.on": {"fill": "--own --h-ink", "font-variant-numeric": "tabular-nums"},
    **{f"text.on-h{step}": {"fill": "--h-deep-ink"} for step in range(5, 9)},
    ".line": {"fill": "none", "stroke": "--own", "stroke-width": "2"},
    ".band": {"fill": "--own", "opacity": ".18", "stroke": "none"},
    ".run1.line": {"stroke-dasharray": "6 3"},
    ".run2.line": {"stroke-dasharray": "2 3"},
    ".run3.line": {"stroke-dasharray": "8 3 2 3"},
    ".run5.line": {"stroke-dasharray": "6 3"},
    ".mark": {"fill": "--own", "stroke": "--paper", "stroke-width": "1"},
    ".mark.open": {"fill": "--paper", "stroke": "--own", "stroke-width": "2"},
    ".bar": {"fill": "--own"},
    ".kind": {"fill": "--own"},
    ".bar.soft": {"opacity": ".45"},
    ".hatch": {"fill": "none", "stroke": "--paper", "stroke-width": "1", "opacity": ".8"},
    ".seam": {"stroke": "--paper", "stroke-width": "1"},
    ".ground": {"fill": "--paper"},
    ".lost": {"stroke": "--corrupted", "stroke-width": "2", "opacity": ".45"},
    ".won": {"stroke": "--clean", "stroke-width": "2", "opacity": ".45"},
    ".lost-at": {"fill": "--corrupted"},
    ".reach": {"stroke": "--own", "stroke-width": "2"},
    ".reach.clean": {"stroke-width": "1", "stroke-dasharray": "4 3"},
    ".spread": {"stroke": "--own", "stroke-width": "1.5", "opacity": ".45"},
    ".same": {"stroke": "--pale", "stroke-width": "1", "stroke-dasharray": "4 3"},
    ".corrupted-span": {"fill": "--corrupted-span", "opacity": ".5"},
    ".damaged": {"fill": "--corrupted", "opacity": ".25"},
    ".action": {"fill": "--truth"},
    ".action.gone": {"fill": "--truth", "stroke": "--corrupted", "stroke-width": "2.5"},
    ".found": {"fill": "--own"},
    ".wrong": {
        "fill": "--paper",
        "fill-opacity": ".8",
        "stroke": "--own",
        "stroke-width": "1.5",
        "stroke-dasharray": "4 2",
    },
    "text.in-action": {"fill": "--bar-ink"},
    "text.in-found": {"fill": "--bar-ink"},
}

_OWN = {**LOSSES, **SERIES, **INKS}  # classes that give a shape its own colour, the last one counts
_COLOURS = {**PAGE, **LOSS_INKS, **_OWN}


def style_sheet() -> str:
    """Return the rules as a style sheet of a page."""
    return "\n".join(f"svg {selector} {{ {_declarations(rule)} }}" for selector, rule in RULES.items())


def _declarations(rule: Mapping[str, str]) -> str:
    return " ".join(f"{name}: {_variables(value)};" for name, value in rule.items())


def _variables(value: str) -> str:
    """Return a value as CSS writes it.

    >>> _variables("--own --raised"), _variables("--ink"), _variables("2")
    ('var(--own, var(--raised))', 'var(--ink)', '2')
    """
    if not value.startswith("--"):
        return value
    first, _, other = value.partition(" ")
    return f"var({first}, {_variables(other)})" if other else f"var({first})"


def look_of(shape: Shape) -> Look:
    """Return how a shape looks on light ground, as attributes of SVG; the more exact rule comes first, as in CSS.

    >>> look_of(Shape("path", "band run0"))
    {'fill': '#0072b2', 'opacity': '.18', 'stroke': 'none'}
    """
    classes = shape.kind.split()
    own = next((colours[0] for name, colours in reversed(_OWN.items()) if name in classes), "")
    matching = []
    for number, (selector, rule) in enumerate(RULES.items()):
        tag, *wanted = selector.split(".")
        if tag in ("", shape.tag) and set(wanted) <= set(classes):
            matching.append((len(wanted), bool(tag), number, rule))
    look: Look = {}
    for *_, rule in sorted(matching, key=lambda one: one[:3]):
        look |= {name: _light(value, own) for name, value in rule.items()}
    return look


def _light(value: str, own: str) -> str:
    """Return a value with colours in place of their names."""
    if not value.startswith("--"):
        return re.sub("px$", "", value)
    names = [name.removeprefix("--") for name in value.split()]
    colours = [own if name == "own" else _COLOURS[name][0] for name in names]
    return next((colour for colour in colours if colour), "none")
