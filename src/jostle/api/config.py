"""Configurations of runs, extraction and detection, which join options of several packages."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jostle.core.options import Role, option, reworded
from jostle.core.progress import ProgressOptions
from jostle.corruptions.options import SeedOptions, SpecOptions
from jostle.datasets.options import DataOptions
from jostle.errors import BadValue, JostleError
from jostle.evaluation.config import InferenceConfig, RunOutputOptions, SelectionOptions
from jostle.features.options import FeatureOptions
from jostle.gate.options import StopOptions
from jostle.io.options import OutOptions, OverwriteOptions, RateOptions, VideoOptions
from jostle.mending.options import MendOptions
from jostle.models.options import DeviceOptions, ExtractorOptions, ModelOptions
from jostle.parallel.options import JobOptions, ServingOptions

if TYPE_CHECKING:
    from jostle.evaluation.inference.feature_detection import FeatureGrid
    from jostle.evaluation.runner.progress import Watch
    from jostle.features.interpolation import MendingResult


@dataclass(frozen=True, kw_only=True, eq=False)
class BenchmarkRunConfig(InferenceConfig, SelectionOptions, StopOptions, RunOutputOptions):
    """Options of a run, as requested."""

    watch: Watch | None = field(
        default=None,
        metadata=option("Called with the state of all cells after each video.", Role.SESSION, python=True),
    )

    def check_stop(self) -> None:
        """Raise if options of an early end are given without a budget, or cannot be combined with others."""
        if self.until_decided is None and (self.against is not None or self.fail_fast):
            what = "a reference run is compared with by `jostle check`"
            if self.fail_fast:
                what = "fail_fast ends a run by a budget"
            raise BadValue(f"{what}; give until_decided (--until-decided), the budget, with it")
        if self.adapt_protocol == "online" and self.until_decided is not None:
            raise BadValue(
                "a budget decides the order of videos, and so does online adaptation; leave one of the two out"
            )


@dataclass(frozen=True, kw_only=True, eq=False)
class VideoFeatureOptions(
    SpecOptions, RateOptions, MendOptions, SeedOptions, DeviceOptions, ServingOptions, ProgressOptions
):
    """Features of videos"""

    jobs: int | None = field(
        default=1,
        metadata=reworded(
            JobOptions,
            "jobs",
            "Number of videos processed at once, each in a process of its own; None for one per core.",
            python=True,
        ),
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class ExtractConfig(VideoFeatureOptions, FeatureOptions, OverwriteOptions):
    """Extraction"""

    source: Any = field(
        kw_only=False,
        metadata=reworded(
            VideoOptions,
            "source",
            "Video file, address or image folder, or a folder of them.",
            more="Or an object with frames and timestamps, such as a torchcodec `VideoDecoder`, called `video_id`.",
        ),
    )
    extractor: Any = field(
        kw_only=False,
        metadata=reworded(
            ExtractorOptions,
            "extractor",
            "Name of an extractor (`jostle names extractors`), or a recogniser.",
            more="Or the thing itself, such as what `as_extractor` makes of a recogniser. See `load_extractor`.",
            flag="--extractor",
        ),
    )
    out: str | Path = field(
        kw_only=False,
        metadata=reworded(OutOptions, "out", "Folder for features and features.json.", metavar="DIR"),
    )
    weights: str | Path | None = field(
        default=None,
        metadata=reworded(ModelOptions, "weights", "Weights of the extractor: a file, public or hf:ORG/NAME."),
    )
    subset: str | None = field(
        default=None, metadata=reworded(DataOptions, "subset", "Use videos of this subset only.")
    )
    stride: int | None = field(
        default=None, metadata=option("Frames from one window to the next; default: the model's.", least=1)
    )
    keep_frames: bool = field(
        default=False, metadata=option("Also write the features of single frames, to DIR/frames.")
    )
    clean: str | Path | None = field(
        default=None,
        metadata=option(
            "Folder of clean features with frame features, so that only what changed is computed.", metavar="DIR"
        ),
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class DetectConfig(VideoFeatureOptions, ExtractorOptions):
    """Detection"""

    source: str | Path = field(
        kw_only=False,
        metadata=reworded(
            VideoOptions,
            "source",
            "Features (T, C) as .npy, a video or image folder, or a folder of them.",
            more="Video needs an extractor, or a detector of frames.",
        ),
    )
    detector: Any = field(
        kw_only=False,
        metadata=option(
            "Name of a detector (`jostle names detectors`), or your own as package.module:attribute.",
            more="Or what `load_detector` gives.",
            flag="--detector",
            metavar="NAME",
        ),
    )
    weights: str | Path | None = field(
        default=None,
        metadata=reworded(
            ModelOptions,
            "weights",
            "Weights of the detector: a file, public or hf:ORG/NAME; for _puppets clean or robust.",
        ),
    )
    settings: Mapping[str, Any] | None = field(
        default=None, metadata=option("Change a setting of the detector.", flag="--set", metavar="KEY=VALUE")
    )
    duration: float | None = field(default=None, metadata=option("Duration of a single video, in seconds."))
    video_scores: str | Path | None = field(
        default=None, metadata=option("Scores of a video classifier, for ActivityNet.", metavar="FILE")
    )
    grid: FeatureGrid | None = field(
        default=None,
        metadata=option(
            "Stride, window, rate and file names of the features; by default what `extract` noted beside them.",
            python=True,
        ),
    )
    on_mended: Callable[[str, MendingResult], None] | None = field(
        default=None, metadata=option("Called with each video and its damaged frames.", python=True)
    )
    on_bad: Callable[[str, JostleError], None] | None = field(
        default=None,
        metadata=option("Called with each unusable video of a folder, which is then left out.", python=True),
    )
