"""Configuration of a benchmark on a model: the options of all its parts, checked before anything large is loaded."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from jostle.core.options import Role, option, reworded
from jostle.core.plugins import is_import_path
from jostle.core.progress import ProgressOptions
from jostle.corruptions.options import SeedOptions
from jostle.datasets.options import DataOptions
from jostle.errors import BadValue
from jostle.features.options import FeatureOptions
from jostle.io.options import OutOptions
from jostle.mending.loading import MendingOptions
from jostle.mending.options import MendOptions
from jostle.models.adaptation.options import AdaptOptions
from jostle.models.loading.names import check_extractor, check_weights
from jostle.models.options import ComputeOptions, DeviceOptions, ModelOptions
from jostle.parallel.options import ExecutionOptions

if TYPE_CHECKING:
    from jostle.models.adaptation.method import AdaptationOptions


@dataclass(frozen=True)
class LanguageInput:
    """Settings of how questions or sentences are put to a model."""

    frames: int | None = None  # number of frames; None for the model's own
    # Order of options: `drawn` by the seed, as `published`, or all `cyclic` ones, whose answers are merged.
    orders: Literal["drawn", "published", "cyclic"] = "drawn"


@dataclass(frozen=True, kw_only=True, eq=False)
class BenchmarkOptions(SeedOptions):
    """Benchmark"""

    benchmark: str | Path = field(
        kw_only=False,
        metadata=option("Name of a benchmark (`jostle names benchmarks`), or a .toml file.", Role.SAME),
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class CellOptions:
    """Cells and videos"""

    cells: Iterable[str] | None = field(
        default=None,
        metadata=option(
            "Run these cells only: a corruption, a cell, group:NAME or all.",
            Role.SESSION,
            more="By default all that count.",
            metavar="SPEC,...",
            separator=",",
        ),
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class SelectionOptions(CellOptions):
    """Cells and videos"""

    videos: Mapping[str, Any] | None = field(
        default=None,
        metadata=option(
            "Videos of the data set by id, in place of its files: paths, or objects with frames and timestamps, such "
            "as a torchcodec `VideoDecoder`. Frames of objects are written as PNG images to `<out>/frames`. Of a data "
            "set that jostle draws no other videos are drawn then: they count as missing.",
            Role.SESSION,
            python=True,
        ),
    )
    retry_failed: bool = field(default=False, metadata=option("Retry failed videos.", Role.SESSION))


@dataclass(frozen=True, kw_only=True, eq=False)
class InferenceConfig(
    BenchmarkOptions,
    ModelOptions,
    FeatureOptions,
    MendOptions,
    AdaptOptions,
    DeviceOptions,
    ComputeOptions,
    DataOptions,
    ExecutionOptions,
):
    """Options of every benchmark on a model, as requested."""

    def check(self) -> None:
        """Raise if a name, a file or an option is wrong, before data are generated, which takes minutes.

        Raises:
            UnknownName: if there is no such extractor.
            CheckpointError: if there are no such weights.
            BadValue: if the input has no such setting, or mending cannot be combined with other options.
        """
        if isinstance(self.extractor, str) and not is_import_path(self.extractor):
            check_extractor(self.extractor)
        for name, weights in ((self.model, self.weights), (self.extractor, self.extractor_weights)):
            if isinstance(name, str):
                check_weights(name, weights)
        if self.mend is not None:
            MendingOptions(self.mend).check(known=True)
            if self.reproduce_bugs:
                raise BadValue("reproduced bugs affect features that mending replaces; leave one of the two out")
        self._check_adaptation()

    def _check_adaptation(self) -> None:
        """Raise if adaptation has no such method or setting, or cannot be combined with other options."""
        adaptation = self.adaptation()
        if adaptation is None:
            if self.adapt_settings or self.adapt_source is not None or self.adapt_protocol != "episodic":
                raise BadValue("settings, source and protocol of adaptation need a method; give --adapt METHOD")
            return
        adaptation.check()
        if self.adapt_source is not None and not Path(self.adapt_source).exists():
            raise BadValue(f"{self.adapt_source}: no such file or folder; --adapt-source is a run or clean videos")
        if self.engine != "local" or self.model_processes:
            raise BadValue(
                "a network adapts in the process that gives it videos; leave --engine and --model-processes out"
            )
        if self.precision != "float32" or self.compiled:
            raise BadValue("adaptation computes in float32, not compiled; leave --precision and --compile out")
        if self.reproduce_bugs:
            raise BadValue("reproduced bugs reuse features of the clean video, which an adapted network lacks")
        if adaptation.protocol == "online" and self.jobs not in (None, 1):
            raise BadValue(
                f"online adaptation takes one video after the other, and jobs are {self.jobs}; leave --jobs out, or "
                "take --adapt-protocol episodic"
            )

    def adaptation(self) -> AdaptationOptions | None:
        """Return the options of adaptation; None without it."""
        if self.adapt is None:
            return None
        from jostle.models.adaptation.method import AdaptationOptions

        return AdaptationOptions(self.adapt, self.adapt_protocol, self.adapt_settings or {})

    def language_input(self) -> LanguageInput:
        """Return how questions or sentences are put to the model."""
        from jostle.core.settings import convert_settings

        return LanguageInput(**convert_settings(LanguageInput, self.input or {}, where="the model's input"))

    def changes(self) -> dict[str, Any]:
        """Return the changes to the model's input, each converted to the type of its setting."""
        from jostle.core.settings import convert_settings
        from jostle.models.input_spec import InputSpec
        from jostle.models.recognition.recogniser import find_kind, recognisers

        if isinstance(self.model, str) and (self.model in recognisers or "/" in self.model):
            return find_kind(self.model).fit(self.input or {})
        return convert_settings(InputSpec, self.input or {}, where="the model's input")


@dataclass(frozen=True, kw_only=True, eq=False)
class RunOutputOptions(ProgressOptions):
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
