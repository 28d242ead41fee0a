"""Recognisers and feature extractors that adapt to each video before or after they predict."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from jostle.errors import BadValue
from jostle.models.adaptation.method import AdaptationOptions, Passes, State
from jostle.models.extractors.extractor import Extractor
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


class AdaptedExtractor:
    """Extractor with an adaptation method; its network is in the source state outside of `adapting`.

    Raises:
        BadValue: if the method needs classes, or the extractor is not a torch network that sees frames alone.
    """

    def __init__(self, extractor: Any, options: AdaptationOptions) -> None:
        if not isinstance(extractor, Extractor) or not isinstance(extractor.network, nn.Module):
            raise BadValue(
                f"adaptation changes the layers of a torch network, and the extractor is a {type(extractor).__name__}; "
                "leave --adapt out, or give a jostle.extend.Recogniser with its head"
            )
        name = extractor.kind.name
        if options.kind.needs_classes:
            raise BadValue(
                f"adaptation by {options.method} needs class scores, and {name} computes features; take bn or vitta"
            )
        if extractor.sees_flow:
            raise BadValue(f"adaptation works on frames, and {name} also sees optical flow; leave --adapt out")
        self.extractor = extractor
        self.adapter = options.build(extractor.network, forward=self.compute_features)

    def compute_features(self, batch: Tensor) -> Tensor:
        """Return the features of prepared windows."""
        network: Any = self.extractor.network
        if self.extractor.frame_dim is None:
            features: Tensor = network.features(batch)
        else:
            features = network.join(network.see(batch.flatten(0, 1)).unflatten(0, batch.shape[:2]))
        return features

    def prepare(self, windows: Frames) -> Tensor:
        """Return prepared windows (N, T, H, W, 3) as one batch: of frames, or of crops of whole windows."""
        spec, device = self.extractor.spec, self.extractor.device
        with torch.no_grad():
            there = torch.from_numpy(windows).to(device)
            if self.extractor.frame_dim is not None:
                frames = spec.prepare_frames(there.flatten(0, 1))
                return frames.reshape(*windows.shape[:2], *frames.shape[1:])
            picks = self.extractor.kind.picks
            return torch.cat([spec.prepare(window if picks is None else window[list(picks)]) for window in there])

    @contextmanager
    def adapting(self, windows: Frames, state: State | None) -> Iterator[State]:
        """Yield the state after adaptation to windows of a video, in which the network is meanwhile.

        Args:
            state: after the videos before; None for the source.
        """
        self.adapter.passes += Passes(plain=1, forward=1)  # the features of the video itself
        with self.adapter.state(state):
            self.adapter.adapt(self.prepare(windows), windows.shape[0] * windows.shape[1])
            yield self.adapter.save_state()
