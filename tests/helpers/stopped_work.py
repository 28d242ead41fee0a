"""What stops work at a step, and the proof that training continues as if it had not been stopped."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest


class Stop(Exception):
    """Exception that ends a run, or a training, at a chosen step."""


def stop_at(last_step: int) -> Callable[[int, int], None]:
    def on_step(step: int, total: int) -> None:
        if step == last_step:
            raise Stop(f"{step} of {total}")

    return on_step


def logged_rows(folder: Path, event: str) -> list[dict[str, Any]]:
    return [row for row in map(json.loads, (folder / "log.jsonl").read_text().splitlines()) if row["event"] == event]


def assert_resumes(config: Any, folder: Path, *stops: int) -> list[dict[str, Any]]:
    """Compare `whole`, a run without interruption, with `parts`, stopped at these steps; return the steps logged."""
    from jostle.training.loop import train

    whole = train(config, folder / "whole")
    for step in stops:
        with pytest.raises(Stop):
            train(config, folder / "parts", on_step=stop_at(step))
    parts = train(config, folder / "parts")
    assert parts.weights.read_bytes() == whole.weights.read_bytes()
    assert (parts.score, parts.epoch, parts.steps) == (whole.score, whole.epoch, whole.steps)
    steps = logged_rows(folder / "whole", "step")
    assert logged_rows(folder / "parts", "step") == steps
    return steps


def spoil(monkeypatch: pytest.MonkeyPatch, learner: Any, method: str, spoilt: Callable[[int], bool], by: float) -> None:
    """Multiply the total loss of a learner in some of its steps, counted from 1, by what is not finite."""
    original, calls = getattr(learner, method), list[int]()

    def spoiling(*arguments: Any) -> Any:
        calls.append(1)
        losses = original(*arguments)
        if not spoilt(len(calls)):
            return losses
        return losses | {"total": losses["total"] * by} if isinstance(losses, dict) else losses * by

    monkeypatch.setattr(learner, method, spoiling)
