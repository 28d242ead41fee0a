"""The corruption engine: specs, profiles, placements and the pull pipeline that applies them."""
