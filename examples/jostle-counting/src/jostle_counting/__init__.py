"""Counting events in videos: a task of one's own for jostle."""
