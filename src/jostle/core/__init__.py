"""Types, registry, plugins, random keys, configuration, progress and caching."""
