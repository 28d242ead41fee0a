"""Damage finders that come with jostle, one a file."""
