"""The small extractors can be imported by their own name, as worker processes have to."""

from __future__ import annotations
