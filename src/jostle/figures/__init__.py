"""Rooms that turn results into something to look at; they know neither models nor corruptions."""
