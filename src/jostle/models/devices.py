"""Where networks run."""

from __future__ import annotations

import os

import torch

from jostle.errors import ResourceError

VISIBLE = "CUDA_VISIBLE_DEVICES"


def device_for(wanted: str) -> torch.device:
    """The device of a name: `auto` takes a GPU if there is one.

    Raises:
        ResourceError: if a GPU is asked for and there is none.
    """
    if wanted == "cuda" and not torch.cuda.is_available():
        raise ResourceError("no CUDA device here; pass --device cpu, or auto", fault="F70")
    return torch.device("cuda" if wanted != "cpu" and torch.cuda.is_available() else "cpu")


def one_gpu_each(processes: int | None) -> list[dict[str, str]]:
    """Variables for processes of which each sees one GPU; by default as many as there are GPUs.

    They are shared out in turns where there are more processes than GPUs.
    """
    named = os.environ.get(VISIBLE)
    count = torch.cuda.device_count()
    gpus = [str(number) for number in range(count)] if named is None else [one.strip() for one in named.split(",")]
    return [{VISIBLE: gpus[number % count]} for number in range(count if processes is None else processes)]
