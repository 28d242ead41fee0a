"""Two lossless clips in a folder for each class, and a benchmark of recognition on them, by public names alone."""

from __future__ import annotations

import json
from pathlib import Path

import av
import numpy as np

RECIPE = """
name = "tiny-p"
title = {title}
version = 1
dataset = "folder"
subset = "test"
task = "recognition"
metric = "top_k_accuracy"
k = 1

[[groups]]
name = "main"
cells = ["gaussian_noise:3"]
"""


def write_clips(folder: Path, title: str = "tiny-p") -> Path:
    """Write `clips/` and `tiny-p.toml`, and return the folder."""
    for number, name in enumerate(("jump/a", "walk/b")):
        path = folder / "clips" / "test" / f"{name}.mkv"
        path.parent.mkdir(parents=True)
        with av.open(str(path), "w") as container:
            stream = container.add_stream("ffv1", rate=10)
            stream.width, stream.height, stream.pix_fmt = 48, 32, "bgr0"
            for t in range(12):
                pixels = np.full((32, 48, 3), 20 * t + number, np.uint8)
                container.mux(stream.encode(av.VideoFrame.from_ndarray(pixels, format="rgb24")))
            container.mux(stream.encode(None))
    (folder / "tiny-p.toml").write_text(RECIPE.format(title=json.dumps(title)))
    return folder
