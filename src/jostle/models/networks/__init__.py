"""Video networks of the papers; parameter names match the public weights."""
