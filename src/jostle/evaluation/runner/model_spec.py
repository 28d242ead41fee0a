"""Specification of a model by names, files and options, checked before anything large is loaded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from jostle.core.plugins import is_import_path
from jostle.errors import BadValue
from jostle.mending.loading import MendingOptions
from jostle.models.loading.names import check_extractor, check_weights

if TYPE_CHECKING:
    from jostle.features.windows import ReleasedBug, Rule
    from jostle.mending.inspector import Inspector
    from jostle.models.input_spec import InputSpec

ClipsFrom = Literal["model", "benchmark"]


@dataclass(frozen=True)
class ModelSpec:
    """Specification of the model of a run, as the caller gives it.

    Attributes:
        model: a name, `package.module:attribute`, or the model itself.
        weights: of a named model; by default the bundled `clean` ones, if there are any.
        extractor: feature extractor of a detector: a name, `package.module:attribute`, or the extractor itself.
        extractor_weights: its checkpoint.
        rule, reproduce_bugs: see `jostle.features.windows.WindowGrid`.
        spec: input of a `torch.nn.Module` or a callable.
        input: fields of the `InputSpec` to change.
        clips: whether frames and sizes of a clip are the model's own or the benchmark's.
        precision: floating-point precision of the networks.
        compiled: whether networks go through torch.compile.
        mend: inspector that finds corrupted frames, which are replaced; None for no mending.
    """

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
        if self.input:
            self.changes()
        if self.mend is not None:
            MendingOptions(self.mend).check(known=True)
            if self.reproduce_bugs:
                raise BadValue("reproduced bugs affect features that mending replaces; leave one of the two out")

    def changes(self) -> dict[str, Any]:
        """Return the changes to the model's input, each converted to the type of its setting."""
        from jostle.core.config import convert_settings
        from jostle.models.input_spec import InputSpec
        from jostle.models.recognition.recogniser import find_kind, recognisers

        if isinstance(self.model, str) and (self.model in recognisers or "/" in self.model):
            return find_kind(self.model).fit(self.input or {})
        return convert_settings(InputSpec, self.input or {}, where="the model's input")
