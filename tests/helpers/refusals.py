"""Errors by the number of their fault."""

from __future__ import annotations

import pytest

from jostle.errors import JostleError


def refused(
    fault: str, kind: type[JostleError] = JostleError, *, match: str | None = None
) -> pytest.RaisesExc[JostleError]:
    """Expect an error of this kind with this fault's number."""
    return pytest.raises(kind, match=match, check=lambda error: error.fault == fault)
