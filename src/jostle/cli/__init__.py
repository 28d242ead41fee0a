"""The command line: argument parsing, one verb per call, exit codes."""

from jostle.cli import benchmarks, models, results, scoring, streams, system, video  # each module registers its verbs
from jostle.cli.app import app, main

__all__ = ["app", "benchmarks", "main", "models", "results", "scoring", "streams", "system", "video"]
