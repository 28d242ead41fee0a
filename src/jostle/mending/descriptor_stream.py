"""Predictions for the frames of a live stream, from their descriptors, each a few frames late."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from jostle.core.finite import check_finite
from jostle.core.state_dict import describe_mismatch
from jostle.errors import CheckpointError
from jostle.mending.blank_frames import median
from jostle.mending.descriptor_layout import CELLS, CHANNELS, Descriptors
from jostle.mending.frame_comparison import DIFFERENCE_SCALE, scale_channels
from jostle.mending.lookahead_network import (
    BLOCK,
    DILATIONS,
    DIM,
    LOOKAHEADS,
    PAST,
    REACHES,
    LookaheadNetwork,
    LookaheadNetworks,
    median_frames,
)
from jostle.models.checkpoints import read_note, read_weights, tensors_fingerprint
from jostle.models.devices import one_thread
from jostle.models.finite import check_weights
from jostle.models.weights.shipped import weights_file

BUNDLED = "inspector_lookahead"  # name of the weights that ship with jostle
OUTPUT = "the look-ahead inspector, logits of a frame"  # in messages
KEPT = max(REACHES) + BLOCK + max(LOOKAHEADS)  # descriptors that medians need
NEAR = 1 - min(PAST) + max(LOOKAHEADS)  # descriptors that comparisons need

Probabilities = npt.NDArray[np.float32]


@dataclass(frozen=True)
class LogitCalibration:
    """Calibration of one network on held-out films.

    Attributes:
        scale: factor of the damage logit,
        bias: and what is added to it, so that its sigmoid is a probability.
        threshold: probability from which one clean frame in a thousand counts as damaged.
    """

    scale: float
    bias: float
    threshold: float


@dataclass(frozen=True, eq=False, slots=True)
class FramePrediction:
    """Prediction for one frame of a stream.

    Attributes:
        probability: calibrated probability that the frame is damaged.
        kinds: probability of each kind: clean, each of `DAMAGE_KINDS`, and unknown, which is 0; they sum to 1.
    """

    probability: float
    kinds: Probabilities


class LookaheadInspector:
    """Networks for short look-aheads with their calibrations."""

    def __init__(self, networks: LookaheadNetworks, calibrations: Mapping[int, LogitCalibration], *, name: str) -> None:
        self.networks, self.name = networks.eval(), name
        self.calibrations = dict(calibrations)
        self.fingerprint = tensors_fingerprint(networks)

    def __repr__(self) -> str:
        return f"LookaheadInspector({self.name!r})"


def build_lookahead_inspector(
    weights: Mapping[str, Tensor], calibrations: Mapping[str, Mapping[str, float]], *, name: str
) -> LookaheadInspector:
    """Build an inspector from the tensors and the calibrations of a weights file."""
    networks = LookaheadNetworks()
    shapes = {key: tuple(value.shape) for key, value in networks.state_dict().items()}
    wrong = describe_mismatch(shapes, weights)
    if wrong:
        raise CheckpointError(f"{name}: not the weights of a look-ahead inspector: {wrong}")
    try:
        calibrated = {lookahead: LogitCalibration(**calibrations[str(lookahead)]) for lookahead in LOOKAHEADS}
        valid = all(one.scale > 0 and 0 < one.threshold < 1 for one in calibrated.values())
    except (KeyError, TypeError):
        valid = False
    if not valid:
        raise CheckpointError(
            f"{name}: lacks the calibrations of look-aheads {', '.join(map(str, LOOKAHEADS))}, without which no "
            "confidence is right; write the weights again with `studies.lookahead`",
            fault="F147",
        )
    networks.load_state_dict(dict(weights))
    check_weights(networks, name)
    return LookaheadInspector(networks, calibrated, name=name)


def read_lookahead_inspector(path: str | Path) -> LookaheadInspector:
    """Read an inspector from a weights file."""
    calibrations: dict[str, dict[str, float]] = read_note(Path(path), "calibrations", {})
    return build_lookahead_inspector(read_weights(path), calibrations, name=str(path))


@cache
def bundled_lookahead_inspector() -> LookaheadInspector:
    """Return the inspector that ships with jostle."""
    return read_lookahead_inspector(weights_file(BUNDLED))


class DescriptorStream:
    """State of one live stream on its way through a network; its memory does not grow with the stream.

    Args:
        inspector: networks and calibrations.
        lookahead: greatest number of later frames to wait for; the network with the next lower look-ahead is used.
    """

    def __init__(self, inspector: LookaheadInspector, *, lookahead: int) -> None:
        self.lookahead = max(ahead for ahead in LOOKAHEADS if ahead <= max(lookahead, 0))
        self.calibration = inspector.calibrations[self.lookahead]
        self._network: LookaheadNetwork = inspector.networks.network(self.lookahead)
        self._bytes = np.zeros((KEPT, CHANNELS, CELLS, CELLS), np.uint8)  # frame t is at t % KEPT
        self._scaled = torch.zeros(NEAR, CELLS, CELLS, CHANNELS)  # frame t is at t % NEAR
        self._medians = torch.zeros(len(REACHES), CELLS, CELLS, CHANNELS)  # of the present block
        self._layers = [
            _TimeLayer(time, mixed, dilation, ahead)
            for time, mixed, dilation, ahead in zip(
                self._network.times, self._network.mixed, DILATIONS, self._network.ahead, strict=True
            )
        ]
        self._count, self._embedded = 0, 0

    def push(self, descriptors: Descriptors) -> list[FramePrediction]:
        """Add (T, CHANNELS, CELLS, CELLS) frames and return the predictions that have become known, in order."""
        predictions: list[FramePrediction] = []
        with one_thread(), torch.inference_mode():
            for descriptor in descriptors:
                self._bytes[self._count % KEPT] = descriptor
                self._scaled[self._count % NEAR] = scale_channels(torch.from_numpy(descriptor))
                self._count += 1
                if self._count - self._network.next_frames > self._embedded:
                    predictions += self._predict(self._embed(), 0)
        return predictions

    def flush(self) -> list[FramePrediction]:
        """Return the predictions of the last frames; the stream has ended."""
        predictions: list[FramePrediction] = []
        with one_thread(), torch.inference_mode():
            while self._embedded < self._count:
                predictions += self._predict(self._embed(), 0)
            for number, layer in enumerate(self._layers):
                for _ in range(layer.ahead):
                    predictions += self._predict(torch.zeros(1, DIM), number)
        return predictions

    def _embed(self) -> Tensor:
        """Return the (1, DIM) embedding of the next frame."""
        now = self._embedded
        if now % BLOCK == 0:
            frames = torch.cat(median_frames(torch.tensor([now]))).numpy() % KEPT
            self._medians = scale_channels(torch.from_numpy(median(self._bytes[frames])))
        others = (now + lag for lag in self._network.lags)
        beside = [(other if 0 <= other < self._count else now) % NEAR for other in others]
        own = self._scaled[now % NEAR][None]
        references = torch.cat([self._scaled[beside], self._medians])
        inputs = torch.cat([own, DIFFERENCE_SCALE * (own - references)]).permute(1, 2, 0, 3).flatten(2)
        self._embedded += 1
        return self._network.embed(inputs[None])

    def _predict(self, values: Tensor, first: int) -> list[FramePrediction]:
        """Send the next input of layer `first` through it and all later ones; return what comes out, if anything."""
        for layer in self._layers[first:]:
            output = layer.push(values)
            if output is None:
                return []
            values = output
        logits = self._network.answer(values[..., None])[..., 0]
        return predictions_of(logits, self.calibration)


class _TimeLayer:
    """One convolution over time with its residual, computed frame by frame; equals the layer of `classify`.

    Attributes:
        ahead: later inputs that an output needs.
    """

    def __init__(self, time: nn.Module, mixed: nn.Module, dilation: int, ahead: int) -> None:
        assert isinstance(time, nn.Conv1d)
        assert isinstance(mixed, nn.Conv1d)
        assert time.bias is not None
        assert mixed.bias is not None
        self.ahead, self._dilation = ahead, dilation
        self._first = (time.bias, time.weight.permute(2, 1, 0).reshape(3 * DIM, DIM).contiguous())
        self._second = (mixed.bias, mixed.weight[:, :, 0].t().contiguous())
        self._inputs = torch.zeros(2 * dilation + 1, DIM)  # input t is at t % (2 dilation + 1)
        self._count = 0

    def push(self, values: Tensor) -> Tensor | None:
        """Add the next (1, DIM) input and return the next output; None while that needs later inputs."""
        now, size = self._count, len(self._inputs)
        self._inputs[now % size] = values[0]
        self._count += 1
        if now < self.ahead:
            return None
        taps = [(now + 1) % size, (now - self._dilation) % size, now % size]  # the first is 2 dilations ago
        hidden = torch.addmm(self._first[0], self._inputs[taps].view(1, 3 * DIM), self._first[1]).relu_()
        own = self._inputs[(now - self.ahead) % size][None]
        return own + torch.addmm(self._second[0], hidden, self._second[1])


def predictions_of(logits: Tensor, calibration: LogitCalibration) -> list[FramePrediction]:
    """Turn (T, 1 + kinds) logits into predictions."""
    check_finite(logits.numpy(), OUTPUT)
    damaged = (logits[:, :1] * calibration.scale + calibration.bias).sigmoid()
    kinds = damaged * logits[:, 1:].softmax(1)
    rows = torch.cat([1 - damaged, kinds, torch.zeros_like(damaged)], 1).numpy()
    return [FramePrediction(float(p), row) for p, row in zip(damaged[:, 0].tolist(), rows, strict=True)]


def calibrations_note(calibrations: Mapping[int, LogitCalibration]) -> str:
    """Return calibrations as the note of a weights file."""
    return json.dumps(
        {
            str(lookahead): {"scale": one.scale, "bias": one.bias, "threshold": one.threshold}
            for lookahead, one in sorted(calibrations.items())
        }
    )
