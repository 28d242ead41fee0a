"""The verbs: what a script calls, and what the command line calls in turn.

Rooms that load compiled or foreign code are imported inside the verbs, and a verb itself when it is first used, so that
`import jostle` and a wrong name on the command line cost next to nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jostle.api.boarding import board, export_run
    from jostle.api.building import build, plan_build
    from jostle.api.corrupting import corrupt, corrupt_file, corrupt_frame, read, sheet
    from jostle.api.data import load_dataset
    from jostle.api.demonstrating import demo, demo_video
    from jostle.api.detecting import detect
    from jostle.api.diffing import diff
    from jostle.api.extracting import extract
    from jostle.api.inspecting import draw_inspection, inspect, inspection
    from jostle.api.listing import describe, doctor, fetch_weights, names, origins, published
    from jostle.api.many import draw_stability, read_models, run_many, stability
    from jostle.api.mending import mend, mend_file
    from jostle.api.publishing import card, track
    from jostle.api.reporting import report
    from jostle.api.running import plan, run
    from jostle.api.scoring import (
        compare,
        convert,
        diagnose,
        load_predictions,
        load_scored_truth,
        load_truth,
        pm_k,
        pm_k_boxes,
        robustness,
        score,
    )
    from jostle.api.training import train
    from jostle.api.verifying import verify
    from jostle.api.viewing import view
    from jostle.loading.detector import load_detector
    from jostle.loading.extractor import load_extractor
    from jostle.loading.inspector import load_inspector
    from jostle.loading.recogniser import load_recogniser

__all__ = [
    "board",
    "build",
    "card",
    "compare",
    "convert",
    "corrupt",
    "corrupt_file",
    "corrupt_frame",
    "demo",
    "demo_video",
    "describe",
    "detect",
    "diagnose",
    "diff",
    "doctor",
    "draw_inspection",
    "draw_stability",
    "export_run",
    "extract",
    "fetch_weights",
    "inspect",
    "inspection",
    "load_dataset",
    "load_detector",
    "load_extractor",
    "load_inspector",
    "load_predictions",
    "load_recogniser",
    "load_scored_truth",
    "load_truth",
    "mend",
    "mend_file",
    "names",
    "origins",
    "plan",
    "plan_build",
    "pm_k",
    "pm_k_boxes",
    "published",
    "read",
    "read_models",
    "report",
    "robustness",
    "run",
    "run_many",
    "score",
    "sheet",
    "stability",
    "track",
    "train",
    "verify",
    "view",
]

_VERBS = {
    "jostle.api.boarding": (
        "board",
        "export_run",
    ),
    "jostle.api.building": (
        "build",
        "plan_build",
    ),
    "jostle.api.corrupting": (
        "corrupt",
        "corrupt_file",
        "corrupt_frame",
        "read",
        "sheet",
    ),
    "jostle.api.data": ("load_dataset",),
    "jostle.api.demonstrating": (
        "demo",
        "demo_video",
    ),
    "jostle.api.detecting": ("detect",),
    "jostle.api.training": ("train",),
    "jostle.api.diffing": ("diff",),
    "jostle.api.extracting": ("extract",),
    "jostle.api.inspecting": (
        "draw_inspection",
        "inspect",
        "inspection",
    ),
    "jostle.api.listing": (
        "describe",
        "doctor",
        "fetch_weights",
        "names",
        "origins",
        "published",
    ),
    "jostle.api.many": (
        "draw_stability",
        "read_models",
        "run_many",
        "stability",
    ),
    "jostle.api.mending": (
        "mend",
        "mend_file",
    ),
    "jostle.api.publishing": (
        "card",
        "track",
    ),
    "jostle.api.reporting": ("report",),
    "jostle.api.running": (
        "plan",
        "run",
    ),
    "jostle.api.scoring": (
        "compare",
        "convert",
        "diagnose",
        "load_predictions",
        "load_scored_truth",
        "load_truth",
        "pm_k",
        "pm_k_boxes",
        "robustness",
        "score",
    ),
    "jostle.api.verifying": ("verify",),
    "jostle.api.viewing": ("view",),
    "jostle.loading.detector": ("load_detector",),
    "jostle.loading.extractor": ("load_extractor",),
    "jostle.loading.inspector": ("load_inspector",),
    "jostle.loading.recogniser": ("load_recogniser",),
}
_HOMES = {verb: home for home, verbs in _VERBS.items() for verb in verbs}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'jostle.api' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_HOMES[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
