"""Import path of the tiny networks, and a fixture for torchvision without its compiled operators."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from types import ModuleType

import pytest

# Operators that torchvision registers from its compiled half, which is linked against a CUDA build of torch.
OPERATORS = (
    *("nms", "qnms", "roi_align", "_roi_align_backward", "roi_pool", "_roi_pool_backward", "ps_roi_align"),
    *("_ps_roi_align_backward", "ps_roi_pool", "_ps_roi_pool_backward", "deform_conv2d", "_deform_conv2d_backward"),
)


@pytest.fixture(scope="session")
def torchvision_video() -> Iterator[ModuleType]:
    """Video models of torchvision, which need no compiled operators; next to a CPU torch these are only declared."""
    name = "torchvision.models.video"
    declared = None
    try:
        module = importlib.import_module(name)
    except ImportError as error:
        pytest.skip(f"torchvision does not import here: {error}")
    except RuntimeError:
        import torch

        declared = torch.library.Library("torchvision", "DEF")
        for operator in OPERATORS:
            declared.define(f"{operator}(Tensor x) -> Tensor")
        module = importlib.import_module(name)
    yield module
    del declared  # the operators exist as long as it does
