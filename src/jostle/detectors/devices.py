"""Where networks run."""

from __future__ import annotations

import torch

from jostle.errors import ResourceError


def device_for(wanted: str) -> torch.device:
    """The device of a name: `auto` takes a GPU if there is one.

    Raises:
        ResourceError: if a GPU is asked for and there is none.
    """
    if wanted == "cuda" and not torch.cuda.is_available():
        raise ResourceError("no CUDA device here; pass --device cpu, or auto", fault="F70")
    return torch.device("cuda" if wanted != "cpu" and torch.cuda.is_available() else "cpu")
