"""Recognisers that adapt to each video before or after they predict its classes."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from jostle.errors import BadValue
from jostle.models.adaptation.method import Passes, State
from jostle.models.adaptation.options import AdaptationOptions
from jostle.models.input_spec import Frames
from jostle.models.recognition.recogniser import Recogniser, Scores


class AdaptedRecogniser:
    """Recogniser with an adaptation method; its network is in the source state between calls.

    Raises:
        BadValue: if the recogniser is no torch module, or lacks what the method needs.
    """

    def __init__(self, recogniser: Recogniser, options: AdaptationOptions) -> None:
        network, spec = recogniser.network, recogniser.spec
        if not isinstance(network, nn.Module) or spec is None:
            raise BadValue(
                f"{recogniser.name}: adaptation changes the layers of a torch.nn.Module, and this is a "
                f"{type(network).__name__}; leave --adapt out"
            )
        if options.kind.needs_classes and recogniser.outputs != "logits":
            raise BadValue(
                f"{recogniser.name}: adaptation by {options.method} needs logits, and its outputs are scores; take bn"
            )
        self.recogniser, self.spec = recogniser, spec
        self.adapter = options.build(network)

    def predict(
        self, clips: Frames, state: State | None = None, second_view: Frames | None = None
    ) -> tuple[Scores, State]:
        """Adapt to the clips of one video; return their (B, classes) scores and the state after them.

        Args:
            clips: (B, T, H, W, 3) uint8.
            state: after the videos before; None for the source.
            second_view: other frames of the same clips, for methods that compare two views.
        """
        self.adapter.passes += Passes(plain=1)
        batch = self.prepare(clips)
        beside = None if second_view is None else self.prepare(second_view)
        with self.adapter.state(state):
            raw = self.adapter.adapt(batch, clips.shape[0] * clips.shape[1], beside)
            return self.recogniser.to_scores(raw, len(clips)), self.adapter.save_state()

    def prepare(self, clips: Frames) -> Tensor:
        """Return the prepared crops of clips as one batch."""
        with torch.no_grad():
            there = torch.from_numpy(clips).to(self.recogniser.device)
            return self.spec.prepare_clips(list(there)).flatten(0, 1)
