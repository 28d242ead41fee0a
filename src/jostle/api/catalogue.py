"""What there is: data sets, names, descriptions and weights of models; the installation; and the demo."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from jostle.core.progress import Progress
from jostle.errors import BadValue, UnknownName
from jostle.models.loading.names import names_of, need_torch
from jostle.parallel.workers import available_cpus

if TYPE_CHECKING:
    from pathlib import Path

    from jostle.api.demonstration import Demo, VideoDemo
    from jostle.api.installation import Health
    from jostle.datasets.dataset import Dataset
    from jostle.evaluation.recipes.recipe import Recipe
    from jostle.models.loading.names import ModelDescription
    from jostle.reporting.published.table import PublishedTable


def load_dataset(
    name: str,
    subset: str | None = None,
    *,
    seed: int = 0,
    root: str | Path | None = None,
    jobs: int | None = None,
    verify: bool = False,
    progress: Progress | None = None,
    annotations: str | Path | None = None,
    first: int | None = None,
    fps: Fraction | float | None = None,
) -> Dataset:
    """One subset of a data set: what is annotated in it, and where its videos lie.

    What is missing of `puppets` is made first, which takes a while the first time; work that was stopped goes on
    where it was. Files whose size is not the recorded one, or whose time and content are not, are made again.
    Other data sets are searched for in `root`, in the layouts people have them; a copy may be partial, and the result
    says what it lacks.

    Args:
        name: one of `jostle names datasets`.
        subset: `puppets` has extractor, training, validation and test; by default the one that results are given for.
        seed: another seed gives other videos, in another folder.
        root: for `puppets` the folder that holds data sets, by default the cache, `$JOSTLE_CACHE` or
            `~/.cache/jostle`; for others the folder with the annotations and videos.
        jobs: processes; by default one a core. The bytes do not depend on it.
        verify: compare every file with its hash.
        progress: called with (files ready, files in all).
        annotations: the file or folder of annotations, if it is not in `root` or is one of several there.
        first: make only so many videos of `puppets`; the others count as missing.
        fps: the rate of folders of images, where neither they nor the annotations say it.

    Raises:
        BadValue: if a folder is needed and none is given.
        ResourceError: if the disk is full; finished files are kept.
        DataError: if the folder cannot be used, or holds no annotations of the data set.
    """
    from jostle.core.environment import cache_folder
    from jostle.core.progress import progress_or_bar
    from jostle.datasets.dataset import Request, datasets
    from jostle.errors import BadValue

    kind = datasets[name]
    part = kind.default_subset if subset is None else subset
    kind.check_subset(part)
    if kind.on_disk and root is None:
        raise BadValue(
            f"{name} is not made by jostle: give the folder with its annotations and videos as root; "
            "docs/how-to/get-the-data.md says where they come from"
        )
    if annotations is not None and not kind.on_disk:
        raise BadValue(f"{name} comes with its own annotations; leave annotations out")
    if first is not None and kind.on_disk:
        raise BadValue(f"{name} is not made by jostle, so none of its videos can be left unmade; leave first out")
    place = cache_folder() if root is None else Path(root)
    chosen = None if annotations is None else Path(annotations)
    jobs = available_cpus() if jobs is None else jobs
    with progress_or_bar(f"reading {name}" if kind.on_disk else f"making {name}", progress) as callback:
        loaded = kind.load(Request(part, place, seed, jobs, verify, callback, chosen, first))
    if fps is None:
        return loaded
    from jostle.core.types.clip import check_rate

    return replace(loaded, fps=check_rate(fps))


@dataclass(frozen=True)
class DataSpec:
    """The data that a caller wants a recipe to be done to; see `run`."""

    folder: str | Path | None = None
    dataset: str | None = None
    subset: str | None = None
    fps: Fraction | float | None = None

    def put_under(self, recipe: Recipe) -> Recipe:
        """The recipe on these data."""
        from jostle.evaluation.recipes.selection import apply_recipe_to

        return apply_recipe_to(recipe, self.dataset, self.subset, None if self.folder is None else Path(self.folder))

    def load(self, recipe: Recipe, *, given: bool = False) -> Dataset:
        """The data set, as the recipe needs it.

        Args:
            given: whether the caller gives the videos, so that none is drawn.
        """
        from jostle.datasets.dataset import datasets
        from jostle.evaluation.recipes.selection import check_task

        # The data are the same for every seed of the corruptions.
        first = 0 if given and not datasets[recipe.dataset].on_disk else None
        loaded = load_dataset(recipe.dataset, recipe.subset or None, root=self.folder, fps=self.fps, first=first)
        check_task(recipe, loaded)
        return loaded


def names(kind: str, *, profile: str | None = None, level: str | None = None) -> list[str]:
    """The registered names of one kind, sorted.

    Args:
        kind: `corruptions`, `profiles`, `placements`, `protocols`, `metrics`, `statistics`, `formats`, `styles`,
            `detectors`, `extractors`, `models`, `objectdetectors`, `languagemodels`, `datasets`, `benchmarks`,
            `published`, `menders`, `damagefinders`, `sections`, `tasks`, `trackers`, `videosources`, `losses`,
            `divergences` or `trainingtasks`. Names with capitals are forms: put yours in their place.
        profile: list the names of this profile's table instead of jostle's own.
        level: only corruptions of this level: frame, clip, codec or time.

    >>> names("corruptions", level="time")[:3]
    ['box_jumble', 'frame_rate', 'freeze']
    """
    if kind not in KINDS:
        raise UnknownName("kind of name", kind, KINDS)
    if kind in NETWORKS and find_spec("torch") is None:
        return sorted(names_of(kind))
    if kind in LOSSES:
        need_torch("losses")
    if kind != "corruptions":
        module, _, registry = KINDS[kind].partition(":")
        return list(getattr(import_module(module), registry))
    from jostle.corruptions.engine.corruption import corruptions
    from jostle.corruptions.engine.spec import own_entry, profiles

    table = profiles[profile].entries if profile else {name: own_entry(name) for name in corruptions}
    return sorted(n for n, entry in table.items() if level in (None, corruptions[entry.corruption].level))


def published(name: str) -> PublishedTable:
    """A table of a paper, as data; `names("published")` lists them.

    >>> table = published("thumos14-c/table-1")
    >>> table.source, dict(table.rows[0].values)["clean"]
    ('Zeng et al. 2024, table 1', 59.17)
    """
    from jostle.reporting.published.table import published as tables

    return tables[name]


def origins(kind: str, *, profile: str | None = None, level: str | None = None) -> dict[str, str]:
    """Return the origin of each part that `names` lists: `jostle`, or the plugin's package or module.

    >>> set(origins("placements").values())
    {'jostle'}
    """
    from jostle.core.plugins import get_part

    listed = names(kind, profile=profile, level=level)
    parts = {name: get_part("profiles", profile) if profile else get_part(kind, name) for name in listed}
    return {name: "jostle" if one is None else str(one.origin) for name, one in parts.items()}


def describe(kind: str) -> list[ModelDescription]:
    """Describe the input and the source of weights of each network of a kind.

    Args:
        kind: `models`, `extractors`, `detectors`, `objectdetectors` or `languagemodels`.

    >>> [one.weights for one in describe("models") if one.name == "puppet_frames"]
    ['clean or robust: with jostle']
    """
    from jostle.models.loading.names import DESCRIBED, describe_models

    if kind not in DESCRIBED:
        raise UnknownName("kind of networks", kind, DESCRIBED)
    if kind == "languagemodels":
        from jostle.models.language.loading import describe_language_models

        return describe_language_models()
    return describe_models(kind)


def fetch_weights(kind: str, name: str, weights: str = "public", *, progress: Progress | None = None) -> Path:
    """Have weights fetched now, to be used later: the file or folder is then in the cache, where names find it.

    Args:
        kind: `models`, `extractors`, `detectors` or `objectdetectors`.
        name: of the network.
        weights: `public`, or `hf:ORG/NAME[/file]`.
        progress: called with (mebibytes there, mebibytes in all).

    Raises:
        ResourceError: if they cannot be had; the message says what to fetch by hand, and where to put it.
    """
    from jostle.core.progress import progress_or_bar
    from jostle.models.loading.names import check_extractor, check_known
    from jostle.models.weights.resolve import weights_path
    from jostle.models.weights.sources import is_fetched

    if not is_fetched(weights):
        raise BadValue(f"weights are fetched by public or hf:ORG/NAME[/file], not by {weights!r}")
    need_torch("weights")
    if kind == "extractors":
        check_extractor(name)
        kind = kind if name in names_of(kind) else "models"  # every recogniser is an extractor as well
    else:
        check_known(kind, name)
    with progress_or_bar(f"fetching weights of {name}, MiB", progress) as callback:
        return weights_path(kind, name, weights, progress=callback)


def doctor() -> Health:
    """Check the installation: packages, encoders, devices, and a self-test."""
    from jostle.api.installation import examine

    return examine()


NETWORKS = ("detectors", "extractors", "models", "objectdetectors")  # whose modules import torch; names need none

LOSSES = ("losses", "divergences")  # whose names need torch

# Where the registry of each kind of name is; corruptions are listed by `names`.
KINDS = {
    "corruptions": "jostle.corruptions.engine.corruption:corruptions",
    "profiles": "jostle.corruptions.engine.spec:profiles",
    "placements": "jostle.corruptions.engine.placement:placements",
    "protocols": "jostle.metrics.protocol:protocols",
    "metrics": "jostle.metrics.metric:metrics",
    "statistics": "jostle.metrics.metric:statistics",
    "formats": "jostle.io.files.format:formats",
    "styles": "jostle.metrics.diagnosis.style:styles",
    "detectors": "jostle.models.detection.detector:detectors",
    "extractors": "jostle.models.extractors.extractor:extractors",
    "models": "jostle.models.recognition.recogniser:recognisers",
    "objectdetectors": "jostle.models.objects.object_detector:object_detectors",
    "languagemodels": "jostle.models.language.loading:language_models",
    "datasets": "jostle.datasets.dataset:datasets",
    "benchmarks": "jostle.evaluation.recipes.recipe:benchmarks",
    "published": "jostle.reporting.published.table:published",
    "menders": "jostle.mending.mender:menders",
    "damagefinders": "jostle.mending.damage_finders:damage_finders",
    "sections": "jostle.reporting.html.section:sections",
    "tasks": "jostle.evaluation.tasks.task:tasks",
    "trackers": "jostle.reporting.trackers:trackers",
    "videosources": "jostle.io.video.video_source:video_sources",
    "losses": "jostle.training.loss:losses",
    "divergences": "jostle.training.loss:divergences",
    "trainingtasks": "jostle.training.task:training_tasks",
}


StageProgress = Callable[[str, int, int], None]


def demo(
    out: str | Path = "demo",
    *,
    full: bool = False,
    seed: int = 0,
    jobs: int | None = None,
    progress: StageProgress | None = None,
) -> Demo:
    """Run the whole loop on the embedded data set: generate films, corrupt them, run two detectors, score, report.

    One was trained on clean films, one to stand firm; the third run is the first with damaged frames mended.

    Args:
        out: folder for three runs and a report about them.
        full: all 60 test films, all 15 cells, and a page that shows every corruption, which takes minutes. Otherwise
            six films and the hardest cell of each of five kinds: the same story, with wider intervals.
        seed: of the films and of all corruptions.
        jobs: processes; by default one a core.
        progress: called with (what is being done, how much is done, how much there is).
    """
    need_torch("the demo")
    from jostle.api.demonstration import BENCHMARK, DETECTOR, FILMS, HOW, write_demo
    from jostle.api.warm_up import prepare_demo
    from jostle.evaluation.config import InferenceConfig
    from jostle.evaluation.recipes.recipe import benchmarks
    from jostle.evaluation.runner.treatments import build_benchmark_model

    many = available_cpus() if jobs is None else jobs
    prepare_demo(many)
    callback = None if progress is None else partial(progress, "rendering films")
    data = load_dataset("puppets", "test", seed=seed, jobs=many, progress=callback, first=None if full else FILMS)
    recipe = benchmarks[BENCHMARK]
    every = {
        how: build_benchmark_model(
            recipe, data, InferenceConfig(recipe.name, model=DETECTOR, weights=weights, mend=mend), "cpu"
        )
        for how, (weights, mend) in HOW.items()
    }
    return write_demo(Path(out), data, every, full=full, seed=seed, jobs=many, progress=progress)


def demo_films(out: str | Path = "demo", *, seed: int = 0, progress: Progress | None = None) -> Path:
    """Write two films of puppets and the annotations of their actions, in seconds, and return their folder.

    The README's commands are tried on `demo/films`; it is a data set of the kind `folder`.
    """
    from jostle.api.demonstration import FEW, leave_films

    return leave_films(Path(out), load_dataset("puppets", "test", seed=seed, progress=progress, first=FEW))


def demo_video(
    video: str | Path, out: str | Path = "demo", *, seed: int = 0, progress: StageProgress | None = None
) -> VideoDemo:
    """Apply every corruption to three seconds from the middle of a video, and write one page.

    With torch installed each has the distance by which it moves the features of the bundled extractor. That extractor
    was trained on puppets, so this measures how strong a corruption is, and nothing about a model of yours.

    Args:
        out: folder for the page, the clips and a contact sheet.
    """
    from jostle.api.demonstration import show_video

    return show_video(Path(video), Path(out), seed=seed, progress=progress)
