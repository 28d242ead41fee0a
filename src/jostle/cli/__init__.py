"""The command line: arguments, one verb, an exit code."""

from jostle.cli import corrupting, detecting, looking, scoring  # each puts its verbs into the program
from jostle.cli.app import app
from jostle.cli.main import main

__all__ = ["app", "corrupting", "detecting", "looking", "main", "scoring"]
