"""Execution on a Ray cluster; imported only on request."""
