"""Write the reference pages from the registries, the docstrings and the command line itself.

Run by `make reference`. The pages are committed, so that links to them work in a checkout, and `tests/test_docs.py`
fails when they are out of date.
"""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import json
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, get_type_hints

import typer

from jostle import errors
from jostle.cli import app
from jostle.corruptions.engine.corruption import Corruption, corruptions
from jostle.corruptions.engine.placement import placements
from jostle.corruptions.engine.spec import Entry, Profile, profiles
from jostle.datasets.dataset import datasets
from jostle.evaluation.inference.feature_detection import FeatureGrid
from jostle.evaluation.recipes.recipe import Group, Recipe, benchmarks
from jostle.evaluation.recipes.sampling import Sampling
from jostle.io.files.format import KIND_NAMES, Format, Kind, formats
from jostle.metrics.diagnosis import MENDED_FAULTS, Buckets, Style, styles
from jostle.metrics.metric import Metric, Statistic, metrics, statistics
from jostle.metrics.protocol import Protocol, protocols
from jostle.models.detection.config import DetectorConfig, PointConfig
from jostle.models.detection.detector import Variant, detectors
from jostle.models.detection.frame_detector import FrameConfig
from jostle.models.extractors.extractor import ExtractorKind, extractors
from jostle.models.input_spec import InputSpec
from jostle.models.language.loading import describe_language_models
from jostle.models.recognition.recogniser import RecogniserKind, recognisers
from jostle.reporting.published.table import PublishedTable, published
from jostle.training.detection_config import ClipDropConfig, FrameTrainingConfig, TrainingConfig
from jostle.training.inspection_config import InspectionConfig
from jostle.training.recognition_config import RecognitionConfig

DOCS = Path(__file__).parent

PUBLIC = ("jostle", "jostle.extend", "jostle.torch")  # modules
SECTION = re.compile(r"^(Args|Attributes|Returns|Raises):$")

WRITTEN_BY = "% Written by docs/generate_reference.py; change the code it is made from instead.\n\n"


def write_pages(folder: Path) -> list[Path]:
    """Write every generated page that has changed into `folder`, and return the paths of all."""
    paths = []
    for name, make in PAGES.items():
        path, text = folder / name, WRITTEN_BY + make()
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
        paths.append(path)
    return paths


def corruptions_page() -> str:
    """Return the page of all registered corruptions, by family."""
    lines = [
        "# Corruptions",
        "",
        f"The {len(corruptions)} registered corruptions with jostle's own table: what a bare name such as `fog:3` "
        "means. A function receives the value for the severity and never the severity itself. Papers' tables over the "
        "same corruptions are in [profiles](profiles.md).",
        "",
        "The level says what a corruption maps: single frames, frames with their neighbours (clip), the coded stream "
        "(codec) or the order of frames (time). [Concepts](../concepts.md#four-levels) explains them.",
    ]
    families: dict[str, list[Corruption]] = {}
    for corruption in corruptions.values():
        families.setdefault(corruption.family, []).append(corruption)
    for family, members in sorted(families.items()):
        lines += ["", f"## {family}", "", _module_summary(members[0])]
        for corruption in members:
            lines += ["", f"### {corruption.name}", "", *_corruption(corruption)]
    return "\n".join(lines) + "\n"


def _corruption(corruption: Corruption) -> list[str]:
    values = [_value(value) for value in corruption.scale]
    rows = [["value", *values]]
    if corruption.placements:
        rows.append(["placement", *(f"`{place}`" for place in corruption.placements)])
    facts = [f"Level: {corruption.level}.", f"From: {_citation(corruption.cites)}."]
    if corruption.reach is not None:
        reaches = [corruption.reach(value) for value in corruption.scale]
        before, after = (max(side) for side in zip(*reaches, strict=True))
        facts.append(f"Reads at most {before} frames before and {after} after.")
    lines = [*_docstring(corruption.function), "", " ".join(facts), ""]
    lines += _table(["severity", *"12345"], rows)
    options = _options(corruption.function)
    if options:
        lines += ["", "Options, set by profiles: " + ", ".join(options) + "."]
    users = [f"`{table.name}/{name}`" for table in profiles.values() for name, entry in table.entries.items()
             if entry.corruption == corruption.name]  # fmt: skip
    if users:
        lines += ["", "Used by " + ", ".join(users) + "."]
    return lines


def profiles_page() -> str:
    """Return the page of all profiles with their entries."""
    lines = [
        "# Profiles",
        "",
        "A profile is a paper's table: its names, severities and parameters over jostle's corruptions. Write "
        "`profile/name:severity`. Where a line departs from the published program its note says so; "
        "[differences](../differences.md) has the whole account.",
    ]
    for table in profiles.values():
        lines += ["", f"## {table.name}", "", *_profile(table)]
    return "\n".join(lines) + "\n"


def _profile(table: Profile) -> list[str]:
    turns = "the strength" if table.severity == "strength" else "the share of each action that is corrupted"
    lines = [table.summary, "", f"From: {_citation(table.cites)}. Severity is {turns}."]
    if table.code_names:
        pairs = [f"`{code}` for `{name}`" for code, name in table.code_names.items()]
        lines += ["", "Names of the released program, understood as well: " + ", ".join(pairs) + "."]
    rows = [[f"`{name}`", *_entry(entry)] for name, entry in table.entries.items()]
    return [*lines, "", *_table(["name", "corruption", "value by severity", "options", "placement", "note"], rows)]


def _entry(entry: Entry) -> list[str]:
    home = f"[{entry.corruption}](corruptions.md#{_anchor(entry.corruption)})"
    same = len(set(entry.values)) == 1
    values = f"always {_value(entry.values[0])}" if same else ", ".join(map(_value, entry.values))
    options = ", ".join(f"`{name}={value!r}`" for name, value in entry.options.items())
    places = ", ".join(f"`{place}`" for place in entry.placements) if entry.placements else "everywhere"
    return [home, values, options, places, entry.note]


def placements_page() -> str:
    """Return the page of all kinds of placements."""
    lines = [
        "# Placements",
        "",
        "A placement says which frames are corrupted. It is written `kind` or `kind:argument`. Frames outside "
        "it stay as they were, byte for byte. [Place a corruption in time](../how-to/place-in-time.md) shows them at "
        "work; [concepts](../concepts.md#rounding) has the rounding rules.",
        "",
    ]
    rows = [[f"`{kind.name}`", f"`{kind.form}`", kind.summary] for kind in placements.values()]
    return "\n".join([*lines, *_table(["kind", "written as", "corrupts"], rows)]) + "\n"


def protocols_page() -> str:
    """Return the page of all protocols with their rules."""
    lines = [
        "# Protocols",
        "",
        "A protocol is one public evaluator's rules for scoring detections. [Score detections]"
        "(../how-to/score-detections.md) shows them at work; [differences](../differences.md#evaluators) says where "
        "the programs themselves are at fault.",
        "",
        *protocol_table(),
    ]
    for protocol in protocols.values():
        lines += ["", f"## {protocol.name}", "", protocol.summary, "", f"From: {_citation(protocol.cites)}."]
    return "\n".join(lines) + "\n"


def protocol_table() -> list[str]:
    """Return a table with a row for each rule and a column for each protocol."""
    columns = protocols.values()
    rows = [[rule, *(describe(protocol) for protocol in columns)] for rule, describe in RULES.items()]
    return _table(["", *(f"`{protocol.name}`" for protocol in columns)], rows)


def _duplicates(protocol: Protocol) -> str:
    near = protocol.duplicate_tolerance
    return "all count" if near is None else f"the first counts, if both ends are within {near:g} s"


def _shortest(protocol: Protocol) -> str:
    if protocol.shortest is None:
        return "all count"
    return f"left out below {protocol.shortest:g} s" if protocol.shortest > 1e-9 else "left out if of no length"


RULES: dict[str, Callable[[Protocol], str]] = {
    "thresholds of tIoU": lambda p: ", ".join(f"{tiou:g}" for tiou in p.tious),
    "who chooses": lambda p: (
        "each prediction, the most confident first, takes the free instance it overlaps most"
        if p.chooser == "prediction"
        else "each instance, in file order, takes the free prediction that overlaps it most"
    ),
    "overlap needed": lambda p: "at least the threshold" if p.chooser == "prediction" else "more than the threshold",
    "average precision": lambda p: (
        "area under interpolated precision"
        if p.ap == "interpolated"
        else "precision at each hit, summed, over the number of instances"
    ),
    "of equal scores": lambda p: (
        "the later row of the file is first" if p.ties == "later" else "by id of the video, then the earlier row"
    ),
    "repeated instances": _duplicates,
    "short instances": _shortest,
    "ambiguous stretches": lambda p: (
        "a prediction that misses and touches one is not counted" if p.ambiguous else "play no part"
    ),
}


def styles_page() -> str:
    """Return the page of all styles of diagnosis with their buckets."""
    lines = [
        "# Styles of diagnosis",
        "",
        "A style is what DETAD uses for one data set: thresholds of tIoU, and how characteristics of instances are "
        "sorted into buckets. [Diagnose a detector](../how-to/diagnose-a-detector.md) says what the numbers mean.",
        "",
        "A bucket holds what lies above its lower edge and not above its upper one; the lowest edge itself is in the "
        "first bucket.",
    ]
    for style in styles.values():
        lines += ["", f"## {style.name}", "", *_style(style)]
    return "\n".join(lines) + "\n"


def _style(style: Style) -> list[str]:
    counted = "those of the same class in the video" if style.instances == "same class" else "all of the video"
    return [
        style.summary,
        "",
        f"Thresholds: {', '.join(f'{tiou:g}' for tiou in style.tious)}. Where the file does not give `num-instances`, "
        f"it counts {counted}.",
        "",
        *_table(["characteristic", "buckets"], [[f"`{b.characteristic}`", _edges(b)] for b in style.buckets]),
    ]


def _edges(buckets: Buckets) -> str:
    parts = zip(buckets.labels, buckets.edges[:-1], buckets.edges[1:], strict=True)
    return ", ".join(f"`{label}` {low:g} to {high:g}" for label, low, high in parts)


def metrics_page() -> str:
    """Return the page of all metrics and statistics with their formulas."""
    known = [*metrics.values(), *statistics.values()]
    lines = [
        "# Metrics",
        "",
        "What cells of benchmarks are scored by. The function of each is in the module named; its docstring, below, "
        "has the formula. Those with intervals can be drawn, so that a gate decides on them.",
        "",
        *_table(
            ["metric", "for", "better", "intervals", "function", "from"],
            [[f"[{m.name}](#{_anchor(m.name)})", m.task, _better(m), "yes" if m.has_intervals else "no", _home(m),
              _citation(m.cites)] for m in metrics.values()],
        ),
        "",
        "A statistic is no metric of a benchmark, as it needs several cells or other predictions.",
        "",
        *_table(
            ["statistic", "for", "better", "function", "from"],
            [[f"[{s.name}](#{_anchor(s.name)})", s.task, _better(s), _home(s), _citation(s.cites)]
             for s in statistics.values()],
        ),
    ]  # fmt: skip
    for one in known:
        lines += ["", f"## {one.name}", "", *_object(one.function or type(one))]
    return "\n".join(lines) + "\n"


def _better(one: Metric | Statistic) -> str:
    return "higher" if one.higher_is_better else "lower"


def _home(one: Metric | Statistic) -> str:
    function = one.function or type(one)
    return f"`{function.__module__}.{function.__name__}`"


KINDS: tuple[Kind, ...] = ("truth", "predictions", "labels")
HELD = {  # descriptions of data that a format can keep besides segments, labels and scores
    "subset": "subsets",
    "duration": "durations",
    "fps": "frame rates",
    "label_ids": "class numbers beside names",
    "characteristics": "DETAD's characteristics",
    "all_segments": "several annotations",
    "ambiguous": "ambiguous stretches",
    "empty_videos": "videos without a row",
    "row_order": "the order of rows",
    "names": "class names",
    "numbers": "class numbers",
    "paths": "paths",
    "frames": "numbers of frames",
    "scores": "scores",
    "true": "that labels are true",
}


def formats_page() -> str:
    """Return the page of all file formats and the data that they keep."""
    lines = [
        "# File formats",
        "",
        "Formats of annotations, predictions and labels of whole videos. A file's format is recognised by its content; "
        "the ending matters only when a file is written. [Convert files](../how-to/convert-files.md) shows how.",
        "",
        *formats_table(),
        "",
        "## What each keeps",
        "",
        "Segments, labels and scores are kept to the last bit everywhere. Of the rest, what a format can hold:",
        "",
        *_table(
            ["format", "also keeps"],
            [[f"`{name}`", ", ".join(HELD[held] for held in HELD if held in formats[name].holds)]
             for name in formats if formats[name].writes or formats[name].holds],
        ),
    ]  # fmt: skip
    return "\n".join(lines) + "\n"


def formats_table() -> list[str]:
    """Return a table of formats with the kinds of data they read and write, and their file endings."""
    return _table(
        ["format", "is", "reads", "writes", "ending"],
        [[f"`{name}`", formats[name].about, *_abilities(formats[name])] for name in formats],
    )


def _abilities(file_format: Format) -> list[str]:
    readers = {
        "truth": file_format.read_truth,
        "predictions": file_format.read_predictions,
        "labels": file_format.read_labels,
    }
    reads = ", ".join(KIND_NAMES[kind] for kind in KINDS if readers[kind])
    writes = [kind for kind in KINDS if file_format.can_write(kind)]
    endings = []
    for kind in writes:
        for ending in file_format.writes.get(kind, ()):
            text = f"`{ending}`" if ending else "a folder"
            if text not in endings:
                endings.append(text)
    by_ending = ", ".join(endings) if endings else "`--to`" if writes else ""
    return [reads, ", ".join(KIND_NAMES[kind] for kind in writes), by_ending]


def faults_table() -> list[str]:
    """Return a table of the faults of DETAD's public program and the behaviour of jostle."""
    return _table(["the public program", "jostle"], [[fault.original, fault.ours] for fault in MENDED_FAULTS])


def faults_page() -> str:
    """Return the page of the faults and the tests that are marked with them."""
    sys.path.insert(0, str(DOCS.parent / "tests"))
    from helpers.faults import marked_tests

    tests: dict[str, list[str]] = {}
    for fault, test in marked_tests(DOCS.parent / "tests"):
        file, _, name = test.partition("::")
        tests.setdefault(fault, []).append(f"`{file}`: {name.removeprefix('test_').replace('_', ' ')}")
    rows = [[fault, "<br>".join(tests[fault])] for fault in sorted(tests, key=lambda fault: int(fault[1:]))]
    head = [
        "# Faults and their tests",
        "",
        "Each [fault](../faults.md) with the tests marked `@pytest.mark.fault`.",
        "",
    ]
    return "\n".join([*head, *_table(["fault", "tests"], rows)]) + "\n"


def detectors_page() -> str:
    """Return the page of all detectors, their settings and variants."""
    families: dict[type, list[Variant]] = {}
    for variant in detectors.values():
        families.setdefault(variant.model, []).append(variant)
    lines = [
        "# Detectors",
        "",
        "Names for `--detector` and `jostle.load_detector`. A variant is a set of settings; any of them can be changed "
        "by `--set key=value`, by keyword, or in the `[settings]` table of a [training file](training.md). "
        "[Run a detector](../how-to/run-a-detector.md) says which weights fit.",
        "",
        "## Shared settings",
        "",
        *_settings_table(DetectorConfig),
        "",
        "Detectors that answer at the points of a pyramid (ActionFormer, TriDet, TemporalMaxer) also have:",
        "",
        *_settings_table(PointConfig, only=list(PointConfig.__annotations__)),
        "",
        "Detectors that look at frames (AFSD, BasicTAD, E2E-TAD) also have:",
        "",
        *_settings_table(FrameConfig, only=list(FrameConfig.__annotations__)),
    ]
    for model, variants in sorted(families.items(), key=lambda item: item[0].__name__):
        base = min(variants, key=lambda variant: len(variant.name))
        title = WRITTEN.get(model.__name__, model.__name__)
        own = type(base.config())
        base_kind = next(kind for kind in (PointConfig, FrameConfig, DetectorConfig) if issubclass(own, kind))
        shared = {field.name: field.default for field in dataclasses.fields(base_kind)}
        rows = [[f"`{variant.name}`", variant.summary, _changed(variant.config(), own)] for variant in variants]
        lines += ["", f"## {title}", "", _first_paragraph(importlib.import_module(model.__module__).__doc__)]
        lines += ["", f"From: {_citation(DETECTOR_WORKS[model.__name__])}.", ""]
        lines += _table(["name", "is", "settings that differ from the defaults"], rows)
        mine = [field for field in dataclasses.fields(own) if field.default != shared.get(field.name, ...)]
        lines += ["", f"Settings of {title} itself:", ""]
        lines += _settings_table(own, only=[field.name for field in mine])
    return "\n".join(lines) + "\n"


DETECTOR_WORKS = {
    "ActionFormer": "zhang2022",
    "AFSD": "lin2021",
    "BasicTAD": "yang2023",
    "E2ETAD": "liu2022",
    "TemporalMaxer": "tang2023",
    "TriDet": "shi2023",
    "VSGN": "zhao2021",
}
WRITTEN = {"E2ETAD": "E2E-TAD"}  # as its authors write a name that Python does not take


def _changed(config: DetectorConfig, kind: type[DetectorConfig]) -> str:
    plain = kind()
    changed = {f.name: getattr(config, f.name) for f in dataclasses.fields(kind)}
    return ", ".join(f"`{n}={v!r}`" for n, v in changed.items() if v != getattr(plain, n)) or "none"


def _settings_table(kind: type, *, only: Sequence[str] | None = None) -> list[str]:
    """Return a table of the fields of a settings class, with their defaults and descriptions."""
    descriptions: dict[str, str] = {}
    for base in (FeatureGrid, *reversed(kind.__mro__)):  # those of the grid serve classes that repeat its fields
        descriptions |= _attributes(base)
    rows = []
    for field in dataclasses.fields(kind):
        if only is not None and field.name not in only:
            continue
        nothing = field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
        if nothing:
            default = "must be given"
        elif field.default is dataclasses.MISSING:
            default = "a table"
        else:
            default = f"`{_as_toml(field.default)}`"
        rows.append([f"`{field.name}`", default, descriptions.get(field.name, "")])
    return _table(["key", "default", "meaning"], rows)


def _as_toml(value: Any) -> str:
    if isinstance(value, tuple):
        return "[" + ", ".join(map(_as_toml, value)) + "]"
    if value is None or isinstance(value, bool):
        return '"none"' if value is None else str(value).lower()
    return f'"{value}"' if isinstance(value, str) else repr(value)


def _attributes(kind: type) -> dict[str, str]:
    """Return the descriptions of attributes in the docstring of a class."""
    _, _, listed = (inspect.cleandoc(kind.__doc__ or "")).partition("Attributes:\n")
    descriptions: dict[str, str] = {}
    name = ""
    for line in listed.split("\n\n")[0].splitlines():
        if match := re.match(r" {4}(\w+): (.*)", line):
            name, descriptions[match[1]] = match[1], match[2]
        elif name:
            descriptions[name] += f" {line.strip()}"
    return descriptions


def extractors_page() -> str:
    """Return the page of all extractors and their inputs."""
    lines = [
        "# Extractors",
        "",
        "Names for `jostle.load_extractor`. An extractor turns windows of frames into features; its weights are public "
        "and not ours to give. Frames are resized, cropped and scaled as the columns say; the feature is the mean over "
        "the crops. Any of the [models](models.md) is an extractor as well.",
        "",
        *_table(
            ["name", "is", "feature", "window", "every", "frames resized to", "crops", "weights"],
            [_extractor(kind) for kind in extractors.values()],
        ),
    ]
    return "\n".join(lines) + "\n"


def models_page() -> str:
    """Return the page of all recognisers with their inputs, and of the video-language models."""
    lines = [
        "# Models",
        "",
        "Names for `load_recogniser` of `jostle.models`. A recogniser turns clips into scores of classes; what it "
        "wants to see comes from its published preset or with its weights. How to bring one that is not here: "
        "[Bring your model](../how-to/bring-your-model.md).",
        "",
        *_table(
            ["name", "is", "clip", "frames resized to", "crops", "views and settings", "weights"],
            [_recogniser(kind) for kind in recognisers.values()],
        ),
        "",
        "*Views* are named ways of looking at a video, `views=published` in Python and after `--input`: the clips and "
        "crops of the published accuracy, or those of a benchmark's own program. Without them the centre is used "
        "once, or as often as the benchmark says. What each changes in the `InputSpec`:",
        "",
        *_table(["views", "of", "change"], _views()),
        "",
        "## Video-language models",
        "",
        "What `--model` takes for `questions` and `moments`, as `jostle names languagemodels` lists it; capitals stand "
        "for names of yours. [Give a video-language model](../how-to/video-language-models.md) has folders, functions "
        "and settings.",
        "",
        *_table(
            ["name", "frames; tasks", "weights"],
            [[f"`{one.name}`", one.sees, one.weights] for one in describe_language_models()],
        ),
    ]
    return "\n".join(lines) + "\n"


def _recogniser(recogniser: RecogniserKind) -> list[str]:
    spec = recogniser.spec
    inputs = ["as its weights say"] * 3
    if spec is not None:
        rate = f" at {spec.fps:g} a second" if spec.fps else ""
        over = f" over {spec.frames * spec.step}" if spec.spread == "span" else ""
        inputs = [f"{spec.frames} frames{over}{rate}", _resized(spec), f"{spec.crops}, {spec.size} × {spec.size}"]
    beside = [f"`views={name}`" for name in recogniser.views] + [
        f"`{name}={not value}`" for name, value in recogniser.options.items()
    ]
    return [
        f"`{recogniser.name}`",
        _first_paragraph(recogniser.load.__doc__),
        *inputs,
        ", ".join(beside),
        recogniser.source,
    ]


def _views() -> list[list[str]]:
    """Return rows of views and their changes; models whose view changes the same share a row."""
    rows: dict[tuple[str, str], list[str]] = {}
    for kind in recognisers.values():
        for name, changes in kind.views.items():
            meaning = ", ".join(
                f"`{field}={value if isinstance(value, str) else json.dumps(value)}`"
                for field, value in changes.items()
            )
            rows.setdefault((name, meaning), []).append(f"`{kind.name}`")
    return [[f"`{name}`", ", ".join(models), meaning] for (name, meaning), models in sorted(rows.items())]


def _resized(spec: InputSpec) -> str:
    size = spec.resize
    return f"{size[1]} × {size[0]}" if isinstance(size, tuple) else f"short side {size}" if size else "as they are"


def _extractor(extractor: ExtractorKind) -> list[str]:
    spec = extractor.spec
    return [
        f"`{extractor.name}`",
        _first_paragraph(extractor.build.__doc__),
        f"{extractor.dim} numbers",
        f"{spec.frames} frames" + (f" at {spec.fps:g} a second" if spec.fps else "") + f", {_lengths(extractor)}",
        f"{spec.stride} frames",
        _resized(spec),
        f"{spec.crops}, {spec.size} × {spec.size}",
        extractor.source,
    ]


def _lengths(extractor: ExtractorKind) -> str:
    return "no other" if extractor.least_frames == extractor.most_frames else f"at least {extractor.least_frames}"


def datasets_page() -> str:
    """Return the page of all registered data sets and their subsets."""
    rows = [
        [f"`{d.name}`", d.summary, d.task or "any", ", ".join(f"`{s}`" for s in d.subsets) or "its own"]
        for d in datasets.values()
    ]
    lines = [
        "# Data sets",
        "",
        "Names for `jostle.load_dataset`. The puppets are made on first use, offline, also by `jostle build --clean`: "
        "[use the puppets](../how-to/use-the-puppets.md) says what is in them. The others are found in your folder: "
        "[get the data](../how-to/get-the-data.md) says where they come from and in which layouts they may lie.",
        "",
        *_table(["name", "is", "for", "subsets"], rows),
    ]
    return "\n".join(lines) + "\n"


def benchmarks_page() -> str:
    """Return the page of all benchmarks, with cells, metrics and notes, and of the keys of a recipe."""
    rows = [
        [
            f"[{b.name}](#{_anchor(b.name)})",
            f"`{b.dataset}`, {b.subset}",
            str(sum(c.counted for c in b.cells)),
            b.measure,
        ]
        for b in benchmarks.values()
    ]
    lines = [
        "# Benchmarks",
        "",
        "A benchmark is a recipe: a data set, the cells in order, and how they are measured. The clean cell is always "
        "the first. Groups marked *beside* are studies that are run on request, and are in no mean over "
        "all cells. The fingerprint changes with anything that decides results. [Write a benchmark]"
        "(../how-to/write-a-benchmark.md) says how to have one of your own.",
        "",
        *_table(["name", "data", "cells that count", "measured by"], rows),
    ]
    for benchmark in benchmarks.values():
        lines += ["", f"## {benchmark.name}", "", *_benchmark(benchmark)]
    lines += ["", "## Keys of a recipe", "", "At the top of the file:", "", *_settings_table(Recipe)]
    lines += ["", "In each `[[groups]]`:", "", *_settings_table(Group)]
    lines += ["", "In `[sampling]`:", "", *_settings_table(Sampling)]
    return "\n".join(lines) + "\n"


def _benchmark(benchmark: Recipe) -> list[str]:
    counted = (
        f" {benchmark.items:,} {'anchors' if benchmark.task == 'frames' else 'videos'}." if benchmark.items else ""
    )
    lines = [
        benchmark.summary,
        "",
        f"{benchmark.title}, version {benchmark.version}. From: {', '.join(map(_citation, benchmark.cites))}.{counted}",
        "",
        f"Measured by {benchmark.measure}{f', by the rules of `{benchmark.protocol}`' if benchmark.protocol else ''}."
        + (f" Input: {_describe_sampling(benchmark.sampling)}." if benchmark.sampling else ""),
        "",
        f"Fingerprint: `{benchmark.fingerprint}`.",
    ]
    rows = []
    for group in benchmark.groups:
        cells = [cell for cell in benchmark.cells if cell.group == group.name]
        name = f"`{group.name}`" + (", beside" if group.beside else "")
        kinds = dict.fromkeys(cell.name.rpartition(":")[0] if "@" not in cell.name else cell.name for cell in cells)
        places = {cell.placement or " ".join(spec.placement for spec in cell.parsed): None for cell in cells}
        rows.append(
            [name, str(len(cells)), ", ".join(f"`{kind}`" for kind in kinds), ", ".join(f"`{p}`" for p in places)]
        )
    if rows:
        lines += ["", *_table(["group", "cells", "corruptions", "placement"], rows)]
    return [*lines, "", *(f"- {note}" for note in benchmark.notes)]


def _describe_sampling(rule: Sampling) -> str:
    frames = f"{rule.frames} frames" if rule.frames else "the model's number of frames"
    how = {
        "stride": f"{rule.clips} evenly spaced clip{'s' if rule.clips > 1 else ''} of {frames}",
        "even": f"{frames} spread evenly over the video",
        "drawn": f"{frames} at the widest whole stride, from a drawn beginning",
    }[rule.spread]
    size = f"{rule.size} by {rule.size} pixels" if rule.size else "the model's size"
    crop = f"the centre of {size}" if rule.crops == "centre" else f"ten crops of {size}"
    return f"{how}; " + (f"short side {rule.short_side}, " if rule.short_side else "") + crop


def published_page() -> str:
    """Return the page of all published tables, and of their figures that do not add up."""
    rows = [
        [
            f"[{t.name}](#{_anchor(t.name)})",
            t.about,
            ", ".join(f"`{name}`" for name in t.benchmarks) or "none",
            t.source,
        ]
        for t in published.values()
    ]
    lines = [
        "# Published figures",
        "",
        "Tables of the papers, figures as they are printed. `jostle names published NAME` and `jostle.published(name)` "
        "give one; `report`, `diff` and `board` show those of a run's benchmark beside it, under a heading of their "
        "own. None of them was measured by jostle.",
        "",
        *_table(["table", "shows", "benchmark", "source"], rows),
        "",
        "## Where they do not add up",
        "",
        "Every mean, ratio, difference and interval that other figures of the paper determine was computed again. "
        "Listed is what rounding cannot explain, and what two tables of a paper print differently.",
        "",
        *slips_table(),
    ]
    for table in published.values():
        lines += ["", f"## {table.name}", "", *_published(table)]
    return "\n".join(lines) + "\n"


def slips_table() -> list[str]:
    """Return a table of the published figures that do not follow from the others."""
    sys.path.insert(0, str(DOCS.parent / "tests"))
    from helpers.published_slips import slips

    rows = []
    for slip in slips():
        benchmark = slip.row.labels.get("benchmark")
        label = f"`{benchmark}`: {slip.row.label}" if benchmark else slip.row.label
        rows.append([slip.table.source, label, slip.column, slip.table.format_value(slip.column, slip.printed),
                     f"{slip.found:g}", slip.why])  # fmt: skip
    return _table(["table", "row", "figure", "printed", "found", "from"], rows)


def _published(table: PublishedTable) -> list[str]:
    several = len(table.benchmarks) > 1
    rows = [
        [f"{row.labels['benchmark']}: {row.label}" if several else row.label,
         *(table.format_value(column, row.values.get(column)) for column in table.columns)]
        for row in table.rows
    ]  # fmt: skip
    unit = ", in percent" if table.unit == "percent" else ""
    return [
        table.about,
        "",
        f"From: {_citation(table.cites)}, table {table.number}. {table.metric}{unit}.",
        "",
        *_table(["", *table.columns], rows),
    ]


def training_page() -> str:
    """Return the page of all tables and keys of a training file."""
    lines = [
        "# Training file",
        "",
        "What `jostle train` reads, table by table. Only `data.features` and `data.truth` must be given. The defaults "
        'are ActionFormer\'s for THUMOS14. TOML has no empty value: write `"none"`. Values in `settings` reach the '
        "detector as they are; leave such a key out there. On the command line a key is "
        "`table.key=value`. [Train a detector](../how-to/train-a-detector.md) shows it at work. A file with "
        '`task = "recognition"` has [other tables](#a-recogniser), which '
        "[Train a recogniser](../how-to/train-a-recogniser.md) shows, one with "
        '`task = "end-to-end"` [those](#a-detector-of-frames) of a detector that looks at frames itself, '
        'and one with `task = "inspection"` [its own](#an-inspector), which '
        "[Find damaged frames](../how-to/mend.md#train-it-for-your-cameras) shows.",
        "",
        "## At the top",
        "",
        *_settings_table(TrainingConfig),
        "",
        "`settings` holds fields of the detector's own settings, listed under [detectors](detectors.md).",
    ]
    for name, kind in training_tables(TrainingConfig).items():
        lines += ["", f"## {name}", "", _first_paragraph(kind.__doc__), "", *_settings_table(kind)]
    lines += ["", "## A detector of frames", "", 'With `task = "end-to-end"`; nothing else must be given.', ""]
    lines += _settings_table(FrameTrainingConfig)
    tables = training_tables(FrameTrainingConfig)
    for name, kind in {"data": tables["data"], "data.drop": ClipDropConfig}.items():
        lines += ["", f"## {name} of frames", "", _first_paragraph(kind.__doc__), "", *_settings_table(kind)]
    lines += ["", "`optimiser` and `consistency` are those [above](#optimiser)."]
    lines += ["", "## A recogniser", "", 'With `task = "recognition"`; nothing else must be given.', ""]
    lines += _settings_table(RecognitionConfig)
    for name, kind in training_tables(RecognitionConfig).items():
        lines += ["", f"## {name} of a recogniser", "", _first_paragraph(kind.__doc__), "", *_settings_table(kind)]
    lines += ["", "## An inspector", "", 'With `task = "inspection"`; only `data.videos` must be given.', ""]
    lines += _settings_table(InspectionConfig)
    for name, kind in training_tables(InspectionConfig).items():
        lines += ["", f"## {name} of an inspector", "", _first_paragraph(kind.__doc__), "", *_settings_table(kind)]
    return "\n".join(lines) + "\n"


def training_tables(settings: type) -> dict[str, type]:
    """Return the classes of the tables of a training file, by name."""
    hints = get_type_hints(settings)
    return {name: kind for name, kind in hints.items() if dataclasses.is_dataclass(kind) and isinstance(kind, type)}


def cli_page() -> str:
    """Return the page of the options of all commands."""
    command: Any = typer.main.get_command(app)
    lines = [
        "# Command line",
        "",
        "`jostle VERB`, or `python -m jostle VERB`. Results go to stdout, remarks and progress to stderr. "
        "`jostle VERB --help` prints the same as this page. [Exit codes](errors.md) are the same for all verbs.",
        "",
        command.help,
        "",
        *_parameters(command.params),
    ]
    for name, verb in command.commands.items():
        arguments = [p.metavar or p.name.upper() for p in verb.params if _is_argument(p)]
        usage = " ".join(["jostle", name, *arguments, "[OPTIONS]"])
        lines += ["", f"## {name}", "", verb.help or "", "", "```text", usage, "```", "", *_parameters(verb.params)]
    return "\n".join(lines) + "\n"


def _is_argument(parameter: Any) -> bool:
    return not parameter.opts[0].startswith("-")


def _parameters(parameters: Iterable[Any]) -> list[str]:
    rows = []
    for parameter in parameters:
        if _is_argument(parameter):
            usage = f"`{parameter.metavar or parameter.name.upper()}`"
        else:
            usage = ", ".join(f"`{flag}`" for flag in parameter.opts)
            if parameter.metavar:
                usage += f" `{parameter.metavar}`"
        choices = getattr(parameter.type, "choices", ())
        if choices:
            usage += f" `{'|'.join(choices)}`"
        default = parameter.default
        silent = default is None or default is False or getattr(parameter, "count", False)
        value = "required" if parameter.required else "" if silent else f"`{default}`"
        rows.append([usage, parameter.help or "", value, f"`{parameter.envvar}`" if parameter.envvar else ""])
    return _table(["argument or option", "meaning", "default", "environment"], rows) if rows else []


def python_page() -> str:
    """Return the page of the public names, each with the first paragraph of its docstring."""
    lines = [
        "# Python",
        "",
        "`import jostle` loads nothing but jostle itself: NumPy, decoders, OpenCV and compiled kernels are imported by "
        "the first verb that needs them. What is promised as public is on [a page of its own](public-api.md). "
        "Signatures and full docstrings are in the built documentation (`make docs`), and in `help(jostle.corrupt)`.",
    ]
    for module in PUBLIC:
        lines += ["", f"## {module}", "", _first_paragraph(importlib.import_module(module).__doc__), ""]
        rows = [[f"`{name}`", _first_paragraph(_doc(thing))] for name, thing in _exports(module)]
        lines += _table(["name", "what it is"], rows)
    return "\n".join(lines) + "\n"


def api_page() -> str:
    """Return the page of the public names with signatures and docstrings, which Sphinx writes when it builds."""
    lines = ["# Python API in full"]
    for module in PUBLIC:
        lines += ["", f"## {module}", "", _first_paragraph(importlib.import_module(module).__doc__)]
        for name, thing in _exports(module):
            if inspect.isclass(thing) or inspect.isfunction(thing):
                lines += ["", f"### {module}.{name}", "", *_object(thing)]
    return "\n".join(lines) + "\n"


def _exports(module: str) -> list[tuple[str, Any]]:
    home = importlib.import_module(module)
    return [(name, getattr(home, name)) for name in home.__all__]


def _doc(thing: Any) -> str:
    """Return an object's own docstring, or the empty string for a plain value or alias."""
    return (thing.__doc__ or "") if inspect.isclass(thing) or inspect.isfunction(thing) else ""


def _object(thing: Any) -> list[str]:
    lines = ["```python", _signature(thing), "```", "", *_docstring(thing)]
    if inspect.isclass(thing):
        for name, member in vars(thing).items():
            inner = member.__func__ if isinstance(member, classmethod) else member
            if name.startswith("_") or not getattr(inner, "__doc__", None):
                continue
            if isinstance(inner, property):
                lines += ["", f"**`.{name}`**: {_first_paragraph(inner.__doc__)}"]
            elif inspect.isfunction(inner):
                lines += ["", f"**`.{name}{_arguments(inner)}`**: {_first_paragraph(inner.__doc__)}"]
    return lines


def _signature(thing: Any) -> str:
    text = f"{thing.__name__}{_arguments(thing)}"
    if len(text) <= 100:
        return text
    inside, _, result = text[len(thing.__name__) + 1 :].rpartition(")")
    return f"{thing.__name__}(\n    " + ",\n    ".join(_split(inside)) + f",\n){result}"


def _arguments(thing: Any) -> str:
    signature = inspect.signature(thing)
    kept = [p for p in signature.parameters.values() if p.name not in ("self", "cls")]
    text = str(signature.replace(parameters=kept))
    return re.sub(r"(:|->) '([^']*)'", r"\1 \2", text).replace("<factory>", "...").removesuffix(" -> None")


def _split(arguments: str) -> list[str]:
    """Split arguments at commas that are not inside brackets."""
    parts, depth = [""], 0
    for character in arguments:
        depth += (character in "([{") - (character in ")]}")
        if character == "," and not depth:
            parts.append("")
        else:
            parts[-1] += character
    return [part.strip() for part in parts]


def errors_page() -> str:
    """Return the page of all exceptions and exit codes."""
    classes = [value for value in vars(errors).values() if inspect.isclass(value)]
    rows = []
    for error in (value for value in classes if issubclass(value, errors.JostleError)):
        bases = ", ".join(f"`{base.__name__}`" for base in error.__bases__ if base is not Exception)
        rows.append([f"`{error.__name__}`", bases, str(error.exit_code), _first_paragraph(error.__doc__)])
    lines = [
        "# Errors and exit codes",
        "",
        "All errors that jostle raises on purpose are in `jostle.errors` and are a `jostle.JostleError`. A message "
        "says what happened, where, and what to do. [When something fails](../how-to/when-something-fails.md) has "
        "more.",
        "",
        *_table(["error", "is also", "exit code", "means"], rows),
        "",
        "## Exit codes",
        "",
        *_table(["code", "means"], [[f"`{code}`", text] for code, text in EXIT_CODES.items()]),
    ]
    return "\n".join(lines) + "\n"


EXIT_CODES = {
    0: "done",
    1: "a bug of ours; the message asks for a report",
    2: "usage: an unknown name, option or value",
    3: "bad input, and nothing was produced",
    4: "finished, with some items set aside; no verb of this version works on several items",
    5: "the disk, the memory, a device or an encoder gave out, or `doctor` found something wrong",
    6: "refused for integrity: the input changed while it was read, or results cannot stand side by side",
    130: "interrupted by Ctrl-C; run the same command again",
    143: "stopped by SIGTERM; run the same command again",
}


def _docstring(thing: Any) -> list[str]:
    """Convert a docstring in Google's style to Markdown: sections become lists, examples code."""
    lines: list[str] = []
    section, example = False, False
    for line in (inspect.getdoc(thing) or "").splitlines():
        if example and not line:
            lines += ["```", ""]
            example = False
        elif line.startswith(">>> ") and not example:
            lines += ["```pycon", line]
            section, example = False, True
        elif match := SECTION.match(line):
            lines += [f"{match[1]}:", ""]
            section = True
        elif section and re.match(r" {4}\S", line):
            name, colon, rest = line.strip().partition(": ")
            lines.append(f"- `{name}`: {rest}" if colon else f"- {line.strip()}")
        elif section and line.startswith("        "):
            lines.append(f"  {line.strip()}")
        else:
            section = section and not line
            lines.append(line)
    return [*lines, "```"] if example else lines


def _first_paragraph(text: str | None) -> str:
    return " ".join(inspect.cleandoc(text or "").split("\n\n")[0].split())


def _module_summary(corruption: Corruption) -> str:
    return _first_paragraph(importlib.import_module(corruption.function.__module__).__doc__)


def _options(function: Callable[..., Any]) -> list[str]:
    parameters = inspect.signature(function).parameters.values()
    return [f"`{p.name}={p.default!r}`" for p in parameters if p.kind is p.KEYWORD_ONLY]


def _value(value: Any) -> str:
    return f"`{value!r}`"


def _citation(key: str) -> str:
    return _bibliography().get(key, "jostle's own")


def _bibliography() -> Mapping[str, str]:
    text = (DOCS / "references.bib").read_text(encoding="utf-8")
    works = {}
    for key, body in re.findall(r"@\w+\{(\w+),(.*?)\n\}", text, re.DOTALL):
        fields = dict(re.findall(r"(\w+) = \{(.*?)\},?\n", body + "\n"))
        people = [person.split(",")[0] for person in fields["author"].split(" and ")]
        first = people[0] if len(people) == 1 else " and ".join(people) if len(people) == 2 else f"{people[0]} et al."
        works[key] = f"{first} ({fields['year']}), *{re.sub('[{}]', '', fields['title'])}*"
    return works


def _anchor(heading: str) -> str:
    return heading.lower().replace("/", "")


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    def line(cells: Sequence[str]) -> str:
        return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"

    return [line(head), line(["---"] * len(head)), *map(line, rows)]


PAGES: dict[str, Callable[[], str]] = {
    "corruptions.md": corruptions_page,
    "profiles.md": profiles_page,
    "placements.md": placements_page,
    "protocols.md": protocols_page,
    "styles.md": styles_page,
    "metrics.md": metrics_page,
    "formats.md": formats_page,
    "detectors.md": detectors_page,
    "extractors.md": extractors_page,
    "models.md": models_page,
    "datasets.md": datasets_page,
    "benchmarks.md": benchmarks_page,
    "published.md": published_page,
    "training.md": training_page,
    "cli.md": cli_page,
    "python.md": python_page,
    "errors.md": errors_page,
    "faults.md": faults_page,
}


if __name__ == "__main__":
    write_pages(Path(sys.argv[1]) if len(sys.argv) > 1 else DOCS / "reference")
