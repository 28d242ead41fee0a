"""Configurations of runs and probes: options from which keywords, flags and keys of settings files follow."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jostle.core.options import Role, option, reworded
from jostle.core.progress import ProgressOptions
from jostle.corruptions.options import SeedOptions, SpecOptions
from jostle.datasets.options import DataOptions
from jostle.errors import BadValue, JostleError
from jostle.evaluation.config import BenchmarkOptions, CellOptions, InferenceConfig, SelectionOptions
from jostle.features.options import FeatureOptions
from jostle.gate.options import StopOptions
from jostle.io.options import LosslessOptions, OutOptions, OverwriteOptions, RateOptions, VideoOptions
from jostle.mending.options import MendOptions, ThresholdOptions
from jostle.models.options import DeviceOptions, ExtractorOptions, ModelOptions
from jostle.parallel.options import JobOptions, ServingOptions

if TYPE_CHECKING:
    from jostle.evaluation.inference.feature_detection import FeatureGrid
    from jostle.evaluation.runner.progress import Watch
    from jostle.features.interpolation import MendingResult


@dataclass(frozen=True, kw_only=True, eq=False)
class OutputOptions(ProgressOptions):
    """Output"""

    out: str | Path = field(
        metadata=reworded(
            OutOptions,
            "out",
            "Run folder; with several models, the folder that holds theirs.",
            more="Deleting a predictions file there makes the next run do that cell again.",
            metavar="RUN",
        )
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class RunConfig(InferenceConfig, SelectionOptions, StopOptions, OutputOptions):
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
class ProbeOptions:
    """Probe"""

    kinds: Iterable[str] | None = field(
        default=None,
        metadata=option(
            "Kind of damage, for example kinetics-c/fog or fog:5; may be repeated. Default: those of THUMOS14-C.",
            Role.SAME,
            flag="--kind",
            metavar="SPEC",
        ),
    )
    step: int = field(
        default=1,
        metadata=option(
            "Frames between the positions of single damaged frames.",
            Role.SAME,
            more="1 tries every position.",
            least=1,
        ),
    )
    threshold: float | None = field(
        default=None,
        metadata=reworded(
            ThresholdOptions,
            "threshold",
            "Least score of detections that count; default: one that leaves as many as there are actions on clean "
            "video.",
            role=Role.SAME,
            least=None,
            most=None,
        ),
    )
    videos: int | None = field(
        default=None,
        metadata=option(
            "Use this many videos only, drawn by the seed.",
            Role.SESSION,
            more="More are added to those that are done.",
            metavar="N",
            least=1,
        ),
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class ProbeConfig(InferenceConfig, ProbeOptions, OutputOptions):
    """Options of a probe, as requested."""


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
            "Video file or image folder, or a folder of them.",
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


@dataclass(frozen=True, kw_only=True, eq=False)
class CopyOptions(BenchmarkOptions, DataOptions, CellOptions, LosslessOptions):
    """Options of what a set of corrupted copies holds, as requested."""


@dataclass(frozen=True, kw_only=True, eq=False)
class BuildConfig(CopyOptions, JobOptions, ProgressOptions):
    """Copies"""

    out: str | Path = field(metadata=reworded(OutOptions, "out", "Root folder of the copies.", metavar="DIR"))
    layouts: Sequence[str] = field(
        default=(),
        metadata=option(
            "Also write a layout for other programs: hub (metadata.jsonl and a card), webdataset (tar files) or "
            "croissant (metadata); may be repeated.",
            flag="--layout",
            metavar="NAME",
        ),
    )
