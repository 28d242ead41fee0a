"""Options of models: which one with which weights, what it gets to see, and how its networks compute."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from jostle.core.options import Role, option

if TYPE_CHECKING:
    from jostle.models.input_spec import InputSpec

Device = Literal["auto", "cpu", "cuda"]
Precision = Literal["float32", "tf32", "bfloat16", "float16"]
ClipsFrom = Literal["model", "benchmark"]


@dataclass(frozen=True, kw_only=True, eq=False)
class ExtractorOptions:
    """Model"""

    extractor: Any = field(
        default=None,
        metadata=option(
            "Feature extractor of a detector; default: the one recorded in its weights.",
            Role.ENTRY,
            more="A name, `package.module:attribute` or the thing itself.",
            metavar="NAME",
        ),
    )
    extractor_weights: str | Path | None = field(
        default=None,
        metadata=option("Weights of the extractor: a file, public or hf:ORG/NAME.", Role.ENTRY, metavar="F"),
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class ModelOptions(ExtractorOptions):
    """Model"""

    model: Any = field(
        metadata=option(
            "Name of a model (`jostle names detectors`, `models`, `languagemodels`), or your own as "
            "package.module:attribute.",
            Role.ENTRY,
            more="Or the thing itself.",
            short="-m",
            metavar="NAME",
        )
    )
    weights: str | Path | None = field(
        default=None,
        metadata=option(
            "Weights of the model: a file, public or hf:ORG/NAME; for bundled models clean (default) or robust.",
            Role.ENTRY,
            metavar="F",
        ),
    )
    spec: InputSpec | None = field(
        default=None,
        metadata=option(
            "What a module or callable wants to see. A callable without one gets whole frames as they are.",
            Role.CONDITION,
            python=True,
        ),
    )
    input: Mapping[str, Any] | None = field(
        default=None,
        metadata=option(
            "Change the input of a recogniser, for example frames=8.",
            Role.CONDITION,
            more="Fields of its `InputSpec`; for questions and moments `frames` and `orders`.",
        ),
    )
    clips: ClipsFrom = field(
        default="model",
        metadata=option("Take the sampling and size of clips from the model or from the benchmark.", Role.CONDITION),
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class DeviceOptions:
    """Computing"""

    device: Device = field(
        default="auto", metadata=option("Device of networks; auto: a GPU if there is one.", Role.BITS)
    )


@dataclass(frozen=True, kw_only=True)
class ComputeOptions:
    """Computing"""

    precision: Precision = field(
        default="float32",
        metadata=option(
            "Precision of networks; scores change with others than float32.",
            Role.CONDITION,
            more="They are faster on a GPU, and the run remembers it.",
        ),
    )
    compiled: bool = field(
        default=False,
        metadata=option(
            "Compile networks with torch.compile, on a GPU; changes last digits.",
            Role.CONDITION,
            more="The run remembers it.",
            flag="--compile",
            words="torch.compile",
        ),
    )
    threads: int = field(
        default=1,
        metadata=option(
            "Number of threads of networks on a CPU; last digits differ from number to number.",
            Role.BITS,
            more="Many videos are faster with one thread each and more jobs, a few long ones with more threads.",
            metavar="N",
            least=1,
        ),
    )
