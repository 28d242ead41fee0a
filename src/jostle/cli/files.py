"""The verb that writes videos of benchmarks and data sets: `build`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from jostle import api
from jostle.cli import console
from jostle.cli.app import Json, Workers, app
from jostle.cli.options import ExitCode, Given, with_options
from jostle.core.options import option, options_in
from jostle.corruptions.options import SeedOptions
from jostle.datasets.options import DataOptions
from jostle.errors import BadValue
from jostle.evaluation.config import CellOptions
from jostle.io.options import LosslessOptions


@dataclass(frozen=True, kw_only=True, eq=False)
class BuildConfig(DataOptions, CellOptions, LosslessOptions, SeedOptions):
    """Options of copies of a benchmark, as requested."""

    benchmark: str = field(
        kw_only=False,
        metadata=option(
            "Benchmark (`jostle names benchmarks`), or .toml file; with --clean a data set (`names datasets`).",
            metavar="NAME",
        ),
    )


@app.command(
    help="Write the corrupted videos of a benchmark, or with --clean the files of a data set; existing ones are kept."
)
@with_options(BuildConfig, without=("subset",))
def build(
    given: Given,
    out: Annotated[
        Path | None,
        option(
            "Root folder of the copies; with --clean of data sets, default: $JOSTLE_CACHE or ~/.cache/jostle.",
            short="-o",
            metavar="DIR",
        ),
    ] = None,
    clean: Annotated[bool, option("Draw the files of a data set, verify them, and replace damaged ones.")] = False,
    verify: Annotated[bool, option("With --clean: compare every file with its hash.")] = False,
    subset: Annotated[
        Sequence[str],
        option(
            "Subset to use in place of the recipe's; default: the data set's. With --clean it may be repeated; "
            "default: all.",
            metavar="S",
        ),
    ] = (),
    layout: Annotated[
        Sequence[str],
        option(
            "Also write a layout for other programs: hub (metadata.jsonl and a card), webdataset (tar files) or "
            "croissant (metadata); may be repeated.",
            metavar="NAME",
        ),
    ] = (),
    dry_run: Annotated[bool, option("Print what would be written, and write nothing.")] = False,
    jobs: Workers = None,
    as_json: Json = False,
) -> None:
    name = given.values["benchmark"]
    if clean:
        given.refuse(
            "is for corrupted copies; leave it out with --clean", *options_in(BuildConfig) - {"benchmark", "seed"}
        )
        if layout or dry_run:
            raise BadValue("--layout and --dry-run are for corrupted copies; leave them out with --clean")
        _draw_files(name, subset, out, verify, given.values.get("seed", 0), jobs, as_json)
        return
    if verify:
        raise BadValue("--verify goes with --clean; `jostle check DIR` compares corrupted copies with their hashes")
    if len(subset) > 1:
        raise BadValue("a benchmark is about one subset; give --subset once")
    options = given.keywords(subset=subset[0] if subset else None)
    if dry_run:
        plan = api.plan_build(**options)
        if as_json:
            console.show_json(plan)
        else:
            amount = f"{plan['files']} files, {len(plan['cells'])} cells of {plan['videos']} videos"
            console.show(f"{amount}; about {plan['bytes'] / 1e9:.2f} GB")
        return
    if out is None:
        raise BadValue("say where the copies go: -o DIR")
    with console.progress(f"building {name}") as advance:
        done = api.build(**options, out=out, layouts=layout, jobs=jobs, progress=advance)
    if as_json:
        console.show_json(done.to_dict())
    else:
        console.show(console.escape(str(done.folder)))
        console.remark(str(done.files))
        if done.layouts:
            console.remark(f"for other programs: {console.escape(', '.join(done.layouts[:5]))}")
    for video, why in done.failures.items():
        console.say(f"{console.escape(video)}: set aside: {why}")
    if done.failures:
        raise ExitCode(4)


def _draw_files(
    name: str,
    subsets: Sequence[str],
    root: Path | None,
    verify: bool,
    seed: int,
    jobs: int | None,
    as_json: bool,
) -> None:
    """Draw the files of a data set, subset by subset."""
    from jostle.datasets.dataset import datasets

    kind = datasets[name]
    if kind.on_disk:
        raise BadValue(f"{name} is recorded, not drawn; docs/how-to/get-the-data.md says where it comes from")
    for one in subsets:
        kind.check_subset(one)
    folders = []
    for part in dict.fromkeys(subsets or kind.subsets):
        with console.progress(f"{name} {part}") as advance:
            done = api.load_dataset(name, part, seed=seed, root=root, jobs=jobs, verify=verify, progress=advance)
        console.remark(f"{part}: {len(done.videos)} videos; {done.files}")
        folders.append(done)
    if as_json:
        parts = [
            {
                "subset": one.subset,
                "folder": str(one.folder),
                "videos": len(one.videos),
                "instances": len(one.truth),
                **vars(one.files),
            }
            for one in folders
        ]
        console.show_json({"format": 1, "dataset": name, "seed": seed, "subsets": parts})
        return
    for folder in dict.fromkeys(str(one.folder) for one in folders):
        console.show(console.escape(folder))
