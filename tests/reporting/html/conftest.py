"""Tests of HTML reports; their runs come from `helpers.made_runs`."""

from __future__ import annotations
