"""Benchmarks of a few cells on a folder of the user's own, as TOML files."""

from __future__ import annotations

import json
from pathlib import Path

FACTS = {
    "recognition": {"name": "tiny-p", "metric": "top_k_accuracy", "k": 1},
    "detection": {"name": "tiny-c", "metric": "mean_ap", "protocol": "thumos14", "tious": [0.5]},
}
SAMPLING = {"clips": 2, "short_side": 24, "size": 20, "frames": 6}


def write_benchmark(folder: Path, task: str, *cells: str, **more: object) -> Path:
    """Write a benchmark of these cells under its name, `tiny-p` of recognition or `tiny-c` of detection."""
    facts = {"version": 1, "dataset": "folder", "subset": "test", "task": task, **FACTS[task], **more}
    lines = [f"{name} = {_toml(value)}" for name, value in facts.items() if value is not None]
    path = folder / f"{facts['name']}.toml"
    path.write_text("\n".join([*lines, "[[groups]]", 'name = "main"', f"cells = {_toml(list(cells))}", ""]), "utf-8")
    return path


def _toml(value: object) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{name} = {_toml(part)}" for name, part in value.items()) + "}"
    return json.dumps(value)
