"""The command line: argument parsing, one verb per call, exit codes."""

from jostle.cli import (  # each module registers its verbs
    benchmarks,
    files,
    models,
    results,
    scoring,
    streams,
    system,
    video,
)
from jostle.cli.app import app, main

__all__ = ["app", "benchmarks", "files", "main", "models", "results", "scoring", "streams", "system", "video"]
