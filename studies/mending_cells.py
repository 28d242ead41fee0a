"""Cells of the study of mending: those of `puppets-c`, those beside it, and further lengths and strengths."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any

from jostle.corruptions.engine.spec import Entry, Spec
from jostle.evaluation.recipes.thumos14_c import CORRUPTIONS, EXTRA, MIXES, PROFILE
from studies.detection import CELLS, PUPPETS_C
from studies.feature_states import KNOWN, WAYS, CorruptedCell, Way

LENGTHS = (0.1, 1, 5, 10, 20, 30, 40, 60)  # percent of an action; three of them are the benchmark's
OUTSIDE = 60  # frames that are corrupted outside of actions


def _cell(text: str, placement: str | None = None) -> CorruptedCell:
    specs = tuple(map(Spec.parse, text.split("+")))
    return CorruptedCell(f"{text}@{placement}" if placement else text, specs, placement)


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
    "main": tuple(CELLS[name] for name in PUPPETS_C),
    "single": tuple(cell for name, cell in CELLS.items() if name not in PUPPETS_C and "background" not in name),
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


def inspector_file(folder: Path, name: str) -> Path:
    """Return the path of the weights of an inspector of the study."""
    return folder / (name.replace(" ", "-") + ".safetensors")


def plan_of(group: str, inspectors: Path, kinds: Collection[str] = CORRUPTIONS) -> list[Way]:
    """Return what is made of a film in a group of cells; the clean cell is in all.

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
        return [Way(name, mend, cells) for name, mend in WAYS.items()]
    plan = [Way(KNOWN, "known", main), Way(EVERYTHING, str(inspector_file(inspectors, EVERYTHING)), main)]
    for kind, own in of_kind.items():
        file = str(inspector_file(inspectors, without(kind)))
        plan += [Way(without(kind), file, own), Way(without(kind) + ALONE, file, own, rules=False)]
    return plan
