"""A local viewer of runs: pages on the loopback interface, each with a JSON twin, and players that move together."""
