"""A run on disk: one checkpoint that is whole or absent, a log that is appended to, and what the run was."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from jostle.core.state_dict import differences
from jostle.errors import CheckpointError
from jostle.io.files.atomic import write_text
from jostle.models.checkpoints import read_note, read_weights, write_weights
from jostle.training.optimisation import Average

CHECKPOINT = "checkpoint.safetensors"
KEPT = ("step", "exp_avg", "exp_avg_sq", "momentum_buffer")  # of a parameter, by Adam and by SGD


@dataclass
class Progress:
    """Where a run stands.

    Attributes:
        step: optimisation steps done.
        skipped: steps whose loss or gradient was not finite.
        skipped_in_a_row: the last so many.
        best: the best score yet, and `best_epoch` when it was had.
        loss_normalizer: the running number of positives.
        epoch_loss: sum of the losses of the epoch so far, and `epoch_steps` how many they are.
        first_loss: mean of the first epoch's.
        last_loss: and of the last whole one's.
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
    """Write everything a run needs to go on; the file before it stays until this one is whole."""
    tensors: dict[str, Tensor] = {f"model.{name}": value for name, value in model.state_dict().items()}
    tensors |= {f"average.{name}": value for name, value in average.weights.items()}
    names = {id(parameter): name for name, parameter in model.named_parameters()}
    for parameter, state in optimiser.state.items():
        for key, value in state.items():
            if value is None:
                continue  # a buffer of SGD without momentum
            tensors[f"optimiser.{names[id(parameter)]}.{key}"] = torch.as_tensor(value)
    write_weights(tensors, folder / CHECKPOINT, metadata={"progress": json.dumps(asdict(progress))})


def load_state(folder: Path, model: nn.Module, optimiser: torch.optim.Optimizer, average: Average) -> Progress | None:
    """Put a run back where its checkpoint left it; None if there is none.

    Raises:
        CheckpointError: if the checkpoint is of another model, F106 if what it notes of the run is damaged.
    """
    path = folder / CHECKPOINT
    if not path.exists():
        return None
    tensors = read_weights(path)
    noted: dict[str, Any] = read_note(path, "progress", {})
    parts: dict[str, dict[str, Tensor]] = {"model": {}, "average": {}, "optimiser": {}}
    for name, value in tensors.items():
        part, _, rest = name.partition(".")
        parts.setdefault(part, {})[rest] = value
    shapes = {name: tuple(value.shape) for name, value in model.state_dict().items()}
    averaged = {name: tuple(value.shape) for name, value in average.weights.items()}
    if differences(shapes, parts["model"]) or differences(averaged, parts["average"]):
        raise CheckpointError(f"{path}: belongs to another detector; train into another folder, or remove it")
    if not noted or not set(noted) <= {known.name for known in fields(Progress)}:
        raise CheckpointError(f"{path}: does not say how far the run was; remove it, and train anew", fault="F106")
    model.load_state_dict(parts["model"])
    for name, value in average.weights.items():
        value.copy_(parts["average"][name])
    for name, parameter in model.named_parameters():
        own = {
            key.removeprefix(f"{name}."): value
            for key, value in parts["optimiser"].items()
            if key.startswith(f"{name}.") and key.removeprefix(f"{name}.") in KEPT
        }
        if own:
            # The fused kernel counts steps on the device, the others on the host.
            there = parameter.device if optimiser.defaults["fused"] else torch.device("cpu")
            optimiser.state[parameter] = {
                key: value.to(there if key == "step" else parameter.device) for key, value in own.items()
            }
    progress = Progress(**noted)
    average.updates = progress.step - progress.skipped
    return progress


class Log:
    """Lines of JSON, one an event; TensorBoard's files beside them if asked for and installed."""

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
        """Append a row; it is on disk when this returns."""
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")
            file.flush()
            os.fsync(file.fileno())

    def plot(self, step: int, values: Mapping[str, float]) -> None:
        """Curves for TensorBoard, where there is one."""
        if self._board is not None:
            for name, value in values.items():
                self._board.add_scalar(name, value, step)

    def trim(self, step: int) -> None:
        """Forget rows after a step that a stopped run had written and will write again."""
        if not self._path.exists():
            return
        kept = []
        for line in self._path.read_text(encoding="utf-8").splitlines():
            try:
                row = json.loads(line)
            except json.JSONDecodeError:
                continue  # torn by a kill
            if row.get("step", 0) <= step:
                kept.append(line + "\n")
        write_text(self._path, kept)
