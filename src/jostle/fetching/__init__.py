"""Weights fetched when somebody asks for them by name, and never otherwise."""
