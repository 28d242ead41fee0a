"""Extractors whose network has no parameters or raises StopIteration."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from jostle.extend import InputSpec
from jostle.models.extractors.extractor import Extractor, ExtractorKind

SPEC = InputSpec(frames=2, resize=None, size=4)


class MeanColour(torch.nn.Module):
    """Network whose feature is the mean colour of a clip."""

    def features(self, clips: torch.Tensor) -> torch.Tensor:
        return clips.mean((2, 3, 4))


class StopIterationNetwork(torch.nn.Module):
    """Network that raises StopIteration for clips, frames and windows."""

    def features(self, clips: torch.Tensor) -> torch.Tensor:
        return next(iter([clips][:0]))

    see = join = features


def test_a_network_without_parameters_computes_features() -> None:
    extractor = Extractor(ExtractorKind("mean", MeanColour, SPEC, 3, 1, "nowhere"), MeanColour())
    clips = np.random.default_rng(0).integers(0, 256, (3, 2, 4, 4, 3), np.uint8)
    np.testing.assert_allclose(extractor(clips), clips.mean((1, 2, 3)) / 255, rtol=1e-5)


@pytest.mark.fault("F190")
def test_F190_a_stop_iteration_of_a_network_is_an_error() -> None:
    windows = Extractor(ExtractorKind("stopping", StopIterationNetwork, SPEC, 3, 1, "nowhere"), StopIterationNetwork())
    frames = Extractor(
        ExtractorKind("stopping", StopIterationNetwork, SPEC, 3, 1, "nowhere", frame_dim=3), StopIterationNetwork()
    )
    clips = np.zeros((3, 2, 4, 4, 3), np.uint8)
    for compute, inputs in ((windows, clips), (frames.see, clips[0]), (frames.join, np.zeros((3, 2, 3), np.float32))):
        with pytest.raises(RuntimeError, match="StopIteration"):
            compute(inputs)
