"""Checks that weights and outputs of networks are finite numbers.

NaN fails every comparison, also that with a score threshold: a network that computes it would merely find nothing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import torch
from torch import Tensor, nn

from jostle.errors import CheckpointError, NonFiniteOutput


def check_weights(model: object, where: str) -> None:
    """Raise if a weight of a network is NaN or infinite; buffers may be infinite, as attention masks are.

    Args:
        model: a network, or an object that has one as `network`; anything else passes.
        where: file or name of the model, for the message.

    Raises:
        CheckpointError: F120, with the name of the tensor.
    """
    network = getattr(model, "network", model)
    if not isinstance(network, nn.Module):
        return
    parameters = dict(network.named_parameters())
    for name, tensor in network.state_dict().items():
        if not tensor.is_floating_point() or tensor.is_meta or bool(tensor.sum(dtype=torch.float32).isfinite()):
            continue
        wrong = ~tensor.isfinite() if name in parameters else tensor.isnan()
        if count := int(wrong.sum()):  # otherwise the values are finite, and only their sum is not
            raise CheckpointError(
                f"{where}: {count} of {tensor.numel()} values of the weight {name!r} are NaN or infinite; training may "
                "have diverged, or the file is damaged: take an earlier checkpoint or fetch it again",
                fault="F120",
            )


class OutputCheck:
    """Check that outputs of a network are finite, which does not make the CPU wait for a GPU.

    A sum is finite only if every term is. Sums are launched here, and read once results have been copied anyway.

    Args:
        tensors: outputs by name, (B, ...) each; those that are not floating-point are skipped.
    """

    def __init__(self, tensors: Mapping[str, Tensor]) -> None:
        self._tensors = {name: tensor for name, tensor in tensors.items() if tensor.is_floating_point()}
        sums = [x.sum(tuple(range(1, x.ndim)), dtype=torch.float32) for x in self._tensors.values()]
        self._sums = torch.stack(sums)  # (outputs, B)

    def finish(self, model: str, count: int | None = None) -> None:
        """Raise if one of the first `count` items of the batch has an output that is not finite.

        Raises:
            NonFiniteOutput: F121, with the items and the name of the output.
        """
        if all(math.isfinite(one) for row in self._sums.tolist() for one in row[:count]):
            return
        for name, tensor in self._tensors.items():
            wrong = ~tensor[:count].flatten(1).isfinite()
            if bool(wrong.any()):
                raise NonFiniteOutput(
                    f"{model}: {int(wrong.sum())} of {wrong.numel()} values of its output {name!r} are not finite; "
                    "check its weights, and its precision if it is not float32",
                    rows=wrong.any(1).nonzero()[:, 0].tolist(),
                )
