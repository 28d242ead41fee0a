"""A model as a caller asks for it: names, files and changes, checked before anything large is loaded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from jostle.core.plugins import is_place
from jostle.errors import BadValue
from jostle.mending.loading import AskedMending
from jostle.models.loading.names import check_extractor, check_weights

if TYPE_CHECKING:
    from jostle.features.windows import ReleasedFault, Rule
    from jostle.mending.inspector import Inspector
    from jostle.models.input_spec import InputSpec

ClipsFrom = Literal["model", "benchmark"]


@dataclass(frozen=True)
class AskedModel:
    """The model as it was asked for.

    Attributes:
        model: a name, `package.module:attribute`, or the thing itself.
        weights: of a name; by default the `clean` ones, where such come with jostle.
        extractor: makes features for a detector: a name, `package.module:attribute`, or the thing itself.
        extractor_weights: its checkpoint.
        rule, released_faults: see `jostle.features.windows.WindowGrid`.
        spec: what a `torch.nn.Module` or a callable wants to see.
        input: fields of the `InputSpec` to change.
        clips: whether frames and sizes of a clip are the model's own or the benchmark's.
        precision: of the numbers that networks compute with.
        compiled: whether networks go through torch.compile.
        mend: what says which frames were struck, so that what they touch is replaced; None to let it be.
    """

    model: Any
    weights: str | Path | None = None
    extractor: Any = None
    extractor_weights: str | Path | None = None
    rule: Rule = "all"
    released_faults: Sequence[ReleasedFault] = ()
    spec: InputSpec | None = None
    input: Mapping[str, Any] | None = None
    clips: ClipsFrom = "model"
    precision: str = "float32"
    compiled: bool = False
    mend: str | Path | Inspector | None = None

    def check(self) -> None:
        """Raise where a name, a file or a setting is wrong: before data are drawn, which takes minutes.

        Raises:
            UnknownName: if the extractor is none.
            CheckpointError: if there are no such weights.
            BadValue: if the input has no such setting, or mending does not go with the rest.
        """
        if isinstance(self.extractor, str) and not is_place(self.extractor):
            check_extractor(self.extractor)
        for name, weights in ((self.model, self.weights), (self.extractor, self.extractor_weights)):
            if isinstance(name, str):
                check_weights(name, weights)
        if self.input:
            self.changes()
        if self.mend is not None:
            AskedMending(self.mend).check(known=True)
            if self.released_faults:
                raise BadValue("released faults are about rows that mending replaces; leave one of the two out")

    def changes(self) -> dict[str, Any]:
        """Changes to what the model is shown, each as its setting wants it."""
        from jostle.core.config import fit_changes
        from jostle.models.input_spec import InputSpec
        from jostle.models.recognition.recogniser import kind_of, recognisers

        if isinstance(self.model, str) and (self.model in recognisers or "/" in self.model):
            return kind_of(self.model).fit(self.input or {})
        return fit_changes(InputSpec, self.input or {}, where="what the model is shown")
