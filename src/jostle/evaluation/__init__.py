"""Benchmark runs: recipes, tasks, inference over corrupted videos, and the run folder."""
