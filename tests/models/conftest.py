"""The tiny networks can be imported by their own name, and torchvision wherever its Python half is enough."""

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
    """torchvision's video models, which use none of its compiled operators; beside a CPU torch these are declared."""
    name = "torchvision.models.video"
    declared = None
    try:
        found = importlib.import_module(name)
    except ImportError as error:
        pytest.skip(f"torchvision does not import here: {error}")
    except RuntimeError:
        import torch

        declared = torch.library.Library("torchvision", "DEF")
        for operator in OPERATORS:
            declared.define(f"{operator}(Tensor x) -> Tensor")
        found = importlib.import_module(name)
    yield found
    del declared  # they last as long as it does
