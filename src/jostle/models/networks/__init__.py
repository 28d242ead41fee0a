"""The papers' networks, whatever they are shown; names of their tensors are those of the public weights."""
