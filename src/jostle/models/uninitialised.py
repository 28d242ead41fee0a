"""Building of networks without drawing weights that are replaced next."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

_DRAWS = (nn.init.kaiming_uniform_, nn.init.uniform_, nn.init.normal_)


class Uninitialised(TorchFunctionMode):
    """Mode in which layers leave their parameters as they were allocated.

    It is for networks whose weights are loaded next, as drawing them takes longer than that. Buffers are drawn as ever:
    not all of them are among the weights. A tensor without values is not drawn either, which would import torch's
    compiler, for 1.6 s.
    """

    def __torch_function__(
        self, function: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        if function in _DRAWS:
            tensor = args[0] if args else kwargs["tensor"]
            if isinstance(tensor, nn.Parameter) or tensor.is_meta:
                return tensor
        if function is Tensor.normal_ and args[0].is_meta:
            return args[0]
        return function(*args, **kwargs)
