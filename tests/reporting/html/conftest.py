"""Tests of HTML reports; their runs come from `helpers.synthetic_runs`."""

from __future__ import annotations
