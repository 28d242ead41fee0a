"""Selection of the devices that networks run on."""

from __future__ import annotations

import os

import torch

from jostle.errors import ResourceError

VISIBLE = "CUDA_VISIBLE_DEVICES"


def device_for(name: str) -> torch.device:
    """Return the device of a name; `auto` takes a GPU if there is one.

    Raises:
        ResourceError: if a GPU is requested and there is none.
    """
    if name == "cuda" and not torch.cuda.is_available():
        raise ResourceError("no CUDA device here; pass --device cpu, or auto", fault="F70")
    return torch.device("cuda" if name != "cpu" and torch.cuda.is_available() else "cpu")


def one_gpu_each(processes: int | None) -> list[dict[str, str]]:
    """Return environment variables for processes that use one GPU each; by default one per GPU.

    They are shared out in turns where there are more processes than GPUs.
    """
    named = os.environ.get(VISIBLE)
    count = torch.cuda.device_count()
    gpus = [str(number) for number in range(count)] if named is None else [one.strip() for one in named.split(",")]
    return [{VISIBLE: gpus[number % count]} for number in range(count if processes is None else processes)]
