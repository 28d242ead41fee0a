"""Helpers of the tests of findings, which make runs."""

from __future__ import annotations
