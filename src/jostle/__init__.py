"""jostle shows how badly a video model takes a knock, why, and how to train one that does not flinch."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jostle.api import (
        board,
        build,
        compare,
        convert,
        corrupt,
        corrupt_file,
        corrupt_frame,
        detect,
        diagnose,
        diff,
        export_run,
        extract,
        inspect,
        load_dataset,
        load_detector,
        load_extractor,
        load_inspector,
        load_predictions,
        load_recogniser,
        load_truth,
        mend,
        mend_file,
        names,
        pm_k,
        published,
        read,
        report,
        robustness,
        run,
        score,
        sheet,
        train,
        view,
    )
    from jostle.errors import JostleError
    from jostle.metrics.running import TemporalMeanAP
    from jostle.types import Clip, Predictions, Segments, Truth

__version__ = "0.1.0"

__all__ = [
    "Clip",
    "JostleError",
    "Predictions",
    "Segments",
    "TemporalMeanAP",
    "Truth",
    "board",
    "build",
    "compare",
    "convert",
    "corrupt",
    "corrupt_file",
    "corrupt_frame",
    "detect",
    "diagnose",
    "diff",
    "export_run",
    "extract",
    "inspect",
    "load_dataset",
    "load_detector",
    "load_extractor",
    "load_inspector",
    "load_predictions",
    "load_recogniser",
    "load_truth",
    "mend",
    "mend_file",
    "names",
    "pm_k",
    "published",
    "read",
    "report",
    "robustness",
    "run",
    "score",
    "sheet",
    "train",
    "view",
]

# Names are fetched when they are first used: even NumPy takes a quarter of a second to import on a slow machine.
_HOMES = {
    "Clip": "jostle.types",
    "JostleError": "jostle.errors",
    "Predictions": "jostle.types",
    "Segments": "jostle.types",
    "TemporalMeanAP": "jostle.metrics.running",
    "Truth": "jostle.types",
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'jostle' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_HOMES.get(name, "jostle.api")), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
