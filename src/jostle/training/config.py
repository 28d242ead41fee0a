"""Settings that every training run has, and the comparison with those that a folder's run was started with."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Literal

from jostle.core.formatting import shorten
from jostle.core.schema import Bounds, current_key
from jostle.core.settings import settings_as_dict
from jostle.training.schedule import OptimiserConfig

Device = Literal["auto", "cpu", "cuda"]


@dataclass(frozen=True, kw_only=True)
class RunConfig:
    """Settings of a training run; those of a task derive from it.

    Attributes:
        task: name of the training task.
        data: what to learn from.
        optimiser: how long and how fast.
        weights: a file to start from; `none` to start from chance.
        seed: of the first weights and everything that is drawn in training.
        score_every: epochs between two scores; the last epoch is always scored.
        device: `auto`, `cpu` or `cuda`.
        save_every: seconds between two checkpoints.
        bad_steps: steps in a row whose loss or gradient is not finite, after which the run stops.
        tensorboard: write TensorBoard's files too, if it is installed.
    """

    FREE: ClassVar[tuple[str, ...]] = ("device", "save_every", "tensorboard")  # may change while a run goes on

    task: str
    data: Any = field(default_factory=lambda: None)
    optimiser: OptimiserConfig = field(default_factory=OptimiserConfig)
    weights: str | None = None
    seed: int = 0
    score_every: Annotated[int, Bounds(1)] = 1
    device: Device = "auto"
    save_every: float = 300.0
    bad_steps: Annotated[int, Bounds(1)] = 10
    tensorboard: bool = False

    def check_names(self) -> None:
        """Raise if the settings have a name that no registry has; called before torch is imported, which takes seconds.

        Raises:
            UnknownName: with the nearest names.
        """


def changed_settings(stored: Mapping[str, Any], config: RunConfig) -> list[str]:
    """Return how settings differ from those that a run was started with, as `data.views was 1, and is 2`.

    A setting that the stored ones lack was added later, so the run has been going on with its default.

    Args:
        stored: plain settings, as train.json has them.
    """
    return list(_differences(stored, config, "", leave_out=config.FREE))


def _differences(stored: Any, value: Any, path: str, leave_out: Collection[str] = ()) -> Iterator[str]:
    """Yield the differences of stored plain settings and present ones, of nested tables one by one."""
    before, now = path and f"{path}.", _plain(value)
    if not isinstance(stored, Mapping) or not isinstance(now, Mapping):
        if stored != now:
            yield f"{path} was {_shown(stored)}, and is {_shown(now)}"
        return
    stored = {current_key(key, now): content for key, content in stored.items() if key not in leave_out}
    defaults = _defaults(value)
    for key in now:
        if key in leave_out:
            continue
        if key in stored or key in defaults:
            content = getattr(value, key) if dataclasses.is_dataclass(value) else value[key]
            yield from _differences(stored.get(key, defaults.get(key)), content, before + key)
        else:
            yield f"{before}{key} was not set, and is {_shown(now[key])}"
    for key in [key for key in stored if key not in now]:
        yield f"{before}{key} was {_shown(stored[key])}, and is not set"


def _defaults(settings: Any) -> dict[str, Any]:
    """Return the plain defaults of the fields of settings; of a plain table none."""
    if not dataclasses.is_dataclass(settings):
        return {}
    defaults = {one.name: one.default for one in dataclasses.fields(settings)}
    defaults |= {
        one.name: one.default_factory()
        for one in dataclasses.fields(settings)
        if one.default_factory is not dataclasses.MISSING
    }
    return {name: _plain(value) for name, value in defaults.items() if value is not dataclasses.MISSING}


def _plain(value: Any) -> Any:
    return settings_as_dict(value) if dataclasses.is_dataclass(value) else json.loads(json.dumps(value, default=str))


def _shown(value: Any) -> str:
    return "none" if value is None else shorten(value)
