"""What a worker needs of the process that holds a model, on this machine or on a cluster."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol


class ModelClient(Protocol):
    """Protocol of clients of a served model; picklable, so that workers can have one.

    `SocketClient` asks servers on this machine, `RayClient` those of a cluster.
    """

    def __hash__(self) -> int:
        """Return a hash: answers are cached by it."""

    def __call__(self, function: Callable[..., Any], /, *arguments: object) -> Any:
        """Return `function(model, *arguments)`, computed where the model is."""

    def submit(self, function: Callable[..., Any], /, *arguments: object, together: int = 1) -> Callable[[], Any]:
        """Send a request without waiting; the returned function waits for the answer.

        Args:
            together: rows of the first argument that `function.together` may process in one call, of this and of
                similar requests.
        """
