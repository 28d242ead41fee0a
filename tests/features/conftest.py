"""Make the small extractors importable by name, as worker processes need."""

from __future__ import annotations
