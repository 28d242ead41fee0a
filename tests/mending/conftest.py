"""Networks of an inspector that has learned nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from jostle.mending.inspection import Inspector
    from jostle.mending.network import InspectorNetworks


@pytest.fixture(scope="session")
def networks() -> InspectorNetworks:
    import torch

    from jostle.mending.network import InspectorNetworks

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        return InspectorNetworks().eval()


@pytest.fixture
def inspector(networks: InspectorNetworks) -> Inspector:
    from jostle.mending.inspection import Inspector

    return Inspector(networks, {"both": 0.5, "causal": 0.6}, name="x")
