"""The verb that writes videos of benchmarks and data sets: `build`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

from jostle import api
from jostle.cli import console
from jostle.cli.app import DryRun, Json, app
from jostle.cli.options import Given, with_options
from jostle.core.options import option, options_in, reworded
from jostle.core.results import Written
from jostle.datasets.options import DataOptions
from jostle.errors import BadValue
from jostle.evaluation.config import BenchmarkOptions
from jostle.evaluation.recipes.options import BuildConfig, CopyOptions
from jostle.io.options import OutOptions


@dataclass(frozen=True, kw_only=True, eq=False)
class BuildFlags(BuildConfig):
    """Copies"""

    benchmark: str | Path = field(
        kw_only=False,
        metadata=reworded(
            BenchmarkOptions,
            "benchmark",
            "Benchmark (`jostle names benchmarks`), or .toml file; with --clean a data set (`names datasets`).",
            metavar="NAME",
        ),
    )


@app.command(
    help="Write the corrupted videos of a benchmark, or with --clean the files of a data set; existing ones are kept."
)
@with_options(BuildFlags, without=("out", "subset"))
def build(
    given: Given,
    out: Annotated[
        Path | None,
        reworded(
            OutOptions,
            "out",
            "Root folder of the copies; with --clean of data sets, default: $JOSTLE_CACHE or ~/.cache/jostle.",
            metavar="DIR",
        ),
    ] = None,
    clean: Annotated[bool, option("Draw the files of a data set, verify them, and replace damaged ones.")] = False,
    verify: Annotated[bool, option("With --clean: compare every file with its hash.")] = False,
    subset: Annotated[
        Sequence[str],
        reworded(
            DataOptions,
            "subset",
            "Subset to use in place of the recipe's; default: the data set's. With --clean it may be repeated; "
            "default: all.",
        ),
    ] = (),
    dry_run: DryRun = False,
    as_json: Json = False,
) -> None:
    name = given.values["benchmark"]
    if clean:
        given.refuse(
            "is for corrupted copies; leave it out with --clean",
            *options_in(BuildConfig) - {"benchmark", "seed", "jobs"},
        )
        if dry_run:
            raise BadValue("--dry-run is for corrupted copies; leave it out with --clean")
        drawn = {key: given.filled(out=out)[key] for key in ("seed", "jobs")}
        _draw_files(name, subset, {"root": out, "verify": verify, **drawn}, as_json)
        return
    if verify:
        raise BadValue("--verify goes with --clean; `jostle check DIR` compares corrupted copies with their hashes")
    if len(subset) > 1:
        raise BadValue("a benchmark is about one subset; give --subset once")
    options = given.filled(out=out, subset=subset[0] if subset else None)
    if dry_run:
        console.give(api.plan_build(**{key: options[key] for key in options_in(CopyOptions)}), as_json)
        return
    if out is None:
        raise BadValue("say where the copies go: -o DIR")
    with console.progress(f"building {name}") as advance:
        done = api.build(**options, progress=advance)
    console.give(done, as_json)
    console.end_with_failures(done.failures.items())


def _draw_files(name: str, subsets: Sequence[str], options: dict[str, Any], as_json: bool) -> None:
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
            done = api.load_dataset(name, part, progress=advance, **options)
        console.remark(f"{part}: {len(done.videos)} videos; {done.files}")
        folders.append(done)
    parts = [
        {
            "subset": one.subset,
            "folder": one.folder,
            "videos": len(one.videos),
            "instances": len(one.truth),
            **vars(one.files),
        }
        for one in folders
    ]
    content = {"dataset": name, "seed": options["seed"], "subsets": parts}
    console.give(Written(content, tuple(dict.fromkeys(one.folder for one in folders))), as_json)
