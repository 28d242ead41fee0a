"""Registration of every published table in this folder; a new paper is a new file."""

from __future__ import annotations

from pathlib import Path

from jostle.reporting.published.table import published, read_paper

for _file in sorted(Path(__file__).parent.glob("*.toml")):
    for _table in read_paper(_file):
        published.add(_table.name, _table)
