"""The keys of struck frames where their frames lie: a GPU computes them itself, sooner than a core."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from jostle.corruptions.kernels.frame_keys import HEAD, ORDER, START
from jostle.corruptions.tensors.holding import held, sent
from jostle.corruptions.tensors.moments import Moments
from jostle.corruptions.tensors.programs import runs_on
from jostle.seeds import Part

LANES = 32  # messages of one program
_START, _ORDER = START.view(np.int64), ORDER.astype(np.int32)


def keys_on(frames: Tensor, at: Moments, *parts: Part) -> Tensor:
    """(N,) what `Moment.key` says of each moment, its bits as numbers with a sign, on the device of `frames`."""
    if not runs_on(frames):
        return torch.from_numpy(at.keys(*parts).view(np.int64)).to(frames.device)
    from jostle.corruptions.tensors.key_program import hash_messages

    words = at.messages(*parts)
    keys = torch.empty(len(at), dtype=torch.int64, device=frames.device)
    given = [sent(words.view(np.int64), frames.device), *(held(table, frames.device) for table in (_START, _ORDER))]
    hash_messages[(-(-len(at) // LANES),)](*given, keys, len(at), words.shape[1], HEAD, LANES=LANES, num_warps=1)
    return keys
