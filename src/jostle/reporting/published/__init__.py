"""Published tables of papers as data, one TOML file per paper."""
