"""The command line: arguments, one verb, an exit code."""

from jostle.cli import (  # each puts its verbs into the program
    boarding,
    building,
    corrupting,
    detecting,
    diffing,
    extracting,
    generating,
    inspecting,
    looking,
    publishing,
    reporting,
    running,
    scattering,
    scoring,
    verifying,
    viewing,
)
from jostle.cli.app import app
from jostle.cli.main import main

__all__ = [
    "app",
    "boarding",
    "building",
    "corrupting",
    "detecting",
    "diffing",
    "extracting",
    "generating",
    "inspecting",
    "looking",
    "main",
    "publishing",
    "reporting",
    "running",
    "scattering",
    "scoring",
    "verifying",
    "viewing",
]
