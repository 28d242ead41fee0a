"""Benchmark recipes: data set, corruptions, severities, placement and metric, one family per file."""
