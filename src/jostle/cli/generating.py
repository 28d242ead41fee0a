"""The verb that makes the files of a data set: `generate`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from jostle import api
from jostle.cli import voice
from jostle.cli.app import app
from jostle.cli.options import Json, Quiet, Seed, Verbose
from jostle.errors import BadValue


@app.command(help="Make the files of a data set, check them, and mend what is damaged.")
def generate(
    name: Annotated[str, typer.Argument(metavar="DATASET", help="See `jostle names datasets`.")],
    subset: Annotated[
        list[str] | None, typer.Option("--subset", metavar="S", help="Only this subset; may be given several times.")
    ] = None,
    root: Annotated[
        Path | None,
        typer.Option("--root", metavar="DIR", help="Folder of data sets; by default $JOSTLE_CACHE or ~/.cache/jostle."),
    ] = None,
    verify: Annotated[bool, typer.Option("--verify", help="Compare every file with its hash.")] = False,
    seed: Seed = 0,
    jobs: Annotated[
        int | None,
        typer.Option("--jobs", "-j", min=1, envvar="JOSTLE_NUM_WORKERS", help="Processes; by default one a core."),
    ] = None,
    as_json: Json = False,
    quiet: Quiet = False,
    verbose: Verbose = 0,
) -> None:
    voice.speak(quiet, verbose)
    from jostle.datasets.dataset import datasets

    kind = datasets[name]
    if kind.on_disk:
        raise BadValue(f"{name} is recorded, not drawn; docs/how-to/get-the-data.md says where it comes from")
    for wanted in subset or ():
        kind.check_subset(wanted)
    found = []
    for part in dict.fromkeys(subset or kind.subsets):
        with voice.progress(f"{name} {part}") as advance:
            done = api.load_dataset(name, part, seed=seed, root=root, jobs=jobs, verify=verify, progress=advance)
        voice.remark(f"{part}: {len(done.videos)} videos; {done.files}")
        found.append(done)
    if as_json:
        parts = [
            {
                "subset": one.subset,
                "folder": str(one.folder),
                "videos": len(one.videos),
                "instances": len(one.truth),
                **vars(one.files),
            }
            for one in found
        ]
        voice.show_json({"format": 1, "dataset": name, "seed": seed, "subsets": parts})
        return
    for folder in dict.fromkeys(str(one.folder) for one in found):
        voice.show(voice.shown(folder))
