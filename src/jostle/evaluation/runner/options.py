"""Options of a run: model, data and execution, by names and files that are checked before anything large is loaded."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from jostle.core.plugins import is_import_path
from jostle.errors import BadValue
from jostle.mending.loading import MendingOptions
from jostle.models.loading.names import check_extractor, check_weights

if TYPE_CHECKING:
    from jostle.evaluation.recipes.recipe import Recipe
    from jostle.features.windows import ReleasedBug, Rule
    from jostle.mending.inspector import Inspector
    from jostle.models.adaptation.method import AdaptationOptions
    from jostle.models.input_spec import InputSpec

ClipsFrom = Literal["model", "benchmark"]
LANGUAGE_TASKS = ("questions", "moments")


@dataclass(frozen=True)
class LanguageInput:
    """Settings of how questions or sentences are put to a model."""

    frames: int | None = None  # number of frames; None for the model's own
    # Order of options: `drawn` by the seed, as `published`, or all `cyclic` ones, whose answers are merged.
    orders: Literal["drawn", "published", "cyclic"] = "drawn"


@dataclass(frozen=True)
class RunOptions:
    """Options of a run as the caller gives them, from the API down to the runner; see `jostle.run` for each."""

    model: Any
    weights: str | Path | None = None
    extractor: Any = None
    extractor_weights: str | Path | None = None
    rule: Rule = "all"
    reproduce_bugs: Sequence[ReleasedBug] = ()
    spec: InputSpec | None = None
    input: Mapping[str, Any] | None = None
    clips: ClipsFrom = "model"
    precision: str = "float32"
    compiled: bool = False
    mend: str | Path | Inspector | None = None
    adapt: str | None = None
    adapt_protocol: Literal["episodic", "online"] = "episodic"
    adapt_settings: Mapping[str, Any] | None = None
    adapt_source: str | Path | None = None
    data: str | Path | None = None
    videos: Mapping[str, Any] | None = None
    dataset: str | None = None
    subset: str | None = None
    fps: Fraction | float | None = None
    cells: Iterable[str] | None = None
    seed: int = 0
    retry_failed: bool = False
    engine: str = "local"
    jobs: int | None = None
    model_processes: int | None = None
    device: str = "auto"

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

    def check_task(self, recipe: Recipe) -> None:
        """Raise if an option does not fit the task of a benchmark."""
        if self.input:
            self.language_input() if recipe.task in LANGUAGE_TASKS else self.changes()
        if self.mend is not None and recipe.task in ("frames", "objects"):
            raise BadValue(
                f"{recipe.name} uses single frames, and mending needs the frames around them; leave --mend out"
            )

        if self.adapt is not None and recipe.task not in ("recognition", "detection"):
            raise BadValue(
                f"adaptation is for recognisers and feature extractors, and {recipe.name} is of {recipe.task}; leave "
                "--adapt out"
            )

    def language_input(self) -> LanguageInput:
        """Return how questions or sentences are put to the model."""
        from jostle.core.config import convert_settings

        return LanguageInput(**convert_settings(LanguageInput, self.input or {}, where="the model's input"))

    def changes(self) -> dict[str, Any]:
        """Return the changes to the model's input, each converted to the type of its setting."""
        from jostle.core.config import convert_settings
        from jostle.models.input_spec import InputSpec
        from jostle.models.recognition.recogniser import find_kind, recognisers

        if isinstance(self.model, str) and (self.model in recognisers or "/" in self.model):
            return find_kind(self.model).fit(self.input or {})
        return convert_settings(InputSpec, self.input or {}, where="the model's input")
