"""The command line: arguments, one verb, an exit code."""

from jostle.cli import (  # each puts its verbs into the program
    building,
    corrupting,
    detecting,
    extracting,
    generating,
    looking,
    running,
    scoring,
    verifying,
)
from jostle.cli.app import app
from jostle.cli.main import main

__all__ = [
    "app",
    "building",
    "corrupting",
    "detecting",
    "extracting",
    "generating",
    "looking",
    "main",
    "running",
    "scoring",
    "verifying",
]
