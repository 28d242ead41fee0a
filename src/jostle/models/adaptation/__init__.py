"""Test-time adaptation: methods that fit a network to the videos it is given, and return it to its source state."""
