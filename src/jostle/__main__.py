"""`python -m jostle`."""

from jostle.cli import main

main()
