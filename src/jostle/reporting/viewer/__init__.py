"""The local web viewer: pages on the loopback interface, each with a JSON twin, and linked players."""
