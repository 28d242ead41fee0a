"""Checkpoint and log of a training run on disk."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from jostle.core.state_dict import describe_mismatch
from jostle.errors import CheckpointError
from jostle.io.files.atomic import write_text
from jostle.models.checkpoints import read_note, read_weights, write_weights
from jostle.training.optimisation import Average

CHECKPOINT = "checkpoint.safetensors"
SETTINGS = "train.json"  # what the run was started with
STATE_KEYS = ("step", "exp_avg", "exp_avg_sq", "momentum_buffer")  # optimiser state of a parameter (Adam, SGD)


@dataclass
class Progress:
    """State of a run, as its checkpoint stores it.

    Attributes:
        step: optimisation steps done.
        skipped: steps whose loss or gradient was not finite.
        skipped_in_a_row: length of the current series of such steps.
        best: best score so far, reached in `best_epoch`.
        loss_normalizer: running number of positives.
        epoch_loss: sum of the losses of the current epoch, over `epoch_steps` steps.
        first_loss: mean loss of the first epoch.
        last_loss: mean loss of the last complete epoch.
    """

    step: int = 0
    skipped: int = 0
    skipped_in_a_row: int = 0
    best: float | None = None
    best_epoch: int | None = None
    loss_normalizer: float = 0.0
    epoch_loss: float = 0.0
    epoch_steps: int = 0
    first_loss: float | None = None
    last_loss: float | None = None
    finished: bool = False
    fingerprint: str = ""
    scores: list[dict[str, Any]] = field(default_factory=list)


def save_state(
    folder: Path, model: nn.Module, optimiser: torch.optim.Optimizer, average: Average, progress: Progress
) -> None:
    """Write everything needed to resume a run; the previous file stays until this one is complete."""
    tensors: dict[str, Tensor] = {f"model.{name}": value for name, value in model.state_dict().items()}
    tensors |= {f"average.{name}": value for name, value in average.weights.items()}
    names = {id(parameter): name for name, parameter in model.named_parameters()}
    for parameter, state in optimiser.state.items():
        for key, value in state.items():
            if value is None:
                continue  # a buffer of SGD without momentum
            tensors[f"optimiser.{names[id(parameter)]}.{key}"] = torch.as_tensor(value)
    write_weights(tensors, folder / CHECKPOINT, metadata={"progress": json.dumps(asdict(progress))})


def read_settings_of(folder: Path) -> dict[str, Any] | None:
    """Return the settings that the run of a folder was started with; None if there is no run, or no record of them."""
    if not (folder / CHECKPOINT).exists():
        return None
    try:
        record = json.loads((folder / SETTINGS).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):  # without them the fingerprint decides
        return None
    settings = record.get("config") if isinstance(record, dict) else None
    return settings if isinstance(settings, dict) else None


def load_state(folder: Path, model: nn.Module, optimiser: torch.optim.Optimizer, average: Average) -> Progress | None:
    """Restore a run from its checkpoint; return None if there is none.

    Raises:
        CheckpointError: if the checkpoint belongs to another model, F106 if its progress is damaged.
    """
    path = folder / CHECKPOINT
    if not path.exists():
        return None
    tensors = read_weights(path)
    info: dict[str, Any] = read_note(path, "progress", {})
    parts: dict[str, dict[str, Tensor]] = {"model": {}, "average": {}, "optimiser": {}}
    for name, value in tensors.items():
        part, _, rest = name.partition(".")
        parts.setdefault(part, {})[rest] = value
    shapes = {name: tuple(value.shape) for name, value in model.state_dict().items()}
    averaged = {name: tuple(value.shape) for name, value in average.weights.items()}
    if describe_mismatch(shapes, parts["model"]) or describe_mismatch(averaged, parts["average"]):
        raise CheckpointError(f"{path}: belongs to another detector; train into another folder, or remove it")
    if not info or not set(info) <= {known.name for known in fields(Progress)}:
        raise CheckpointError(
            f"{path}: does not record the progress of the run; remove it, and train again", fault="F106"
        )
    model.load_state_dict(parts["model"])
    for name, value in average.weights.items():
        value.copy_(parts["average"][name])
    for name, parameter in model.named_parameters():
        own = {
            key.removeprefix(f"{name}."): value
            for key, value in parts["optimiser"].items()
            if key.startswith(f"{name}.") and key.removeprefix(f"{name}.") in STATE_KEYS
        }
        if own:
            # The fused kernel counts steps on the device, the others on the host.
            step_device = parameter.device if optimiser.defaults["fused"] else torch.device("cpu")
            optimiser.state[parameter] = {
                key: value.to(step_device if key == "step" else parameter.device) for key, value in own.items()
            }
    progress = Progress(**info)
    average.updates = progress.step - progress.skipped
    return progress


class Log:
    """Log of a run as JSON lines, with TensorBoard files if requested and installed."""

    def __init__(self, folder: Path, *, tensorboard: bool) -> None:
        self._path = folder / "log.jsonl"
        self._board: Any = None
        if tensorboard:
            try:
                from torch.utils.tensorboard import SummaryWriter
            except ImportError:
                self.write({"event": "warning", "message": "tensorboard is not installed; pip install tensorboard"})
            else:
                self._board = SummaryWriter(str(folder / "tensorboard"))

    def write(self, row: Mapping[str, Any]) -> None:
        """Append a row and sync it to disk."""
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")
            file.flush()
            os.fsync(file.fileno())

    def plot(self, step: int, values: Mapping[str, float]) -> None:
        """Write scalars to TensorBoard, if enabled."""
        if self._board is not None:
            for name, value in values.items():
                self._board.add_scalar(name, value, step)

    def trim(self, step: int) -> None:
        """Remove rows after a step, which the resumed run will write again."""
        if not self._path.exists():
            return
        lines = []
        for line in self._path.read_text(encoding="utf-8").splitlines():
            try:
                row = json.loads(line)
            except (ValueError, RecursionError):
                continue  # truncated when the process was killed
            if row.get("step", 0) <= step:
                lines.append(line + "\n")
        write_text(self._path, lines)
