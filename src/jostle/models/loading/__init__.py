"""Loading of models by name, by import path, or as the user's own object."""
