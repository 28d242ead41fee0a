"""Menders that come with jostle, one a file."""
