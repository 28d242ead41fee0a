"""Experiment trackers: optional, and told of a finished run. Nothing is sent unless the user's own settings say so."""
