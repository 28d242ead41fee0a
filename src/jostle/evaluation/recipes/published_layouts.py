"""Layouts in which other programs read a set of copies: Hugging Face Hub, WebDataset shards, Croissant metadata."""

from __future__ import annotations

import hashlib
import json
import tarfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from jostle.core.formatting import markdown_escape, yaml_quote
from jostle.core.types.segments import Segments
from jostle.core.types.truth import Truth
from jostle.core.types.video_labels import VideoLabels
from jostle.datasets.dataset import Dataset
from jostle.errors import BadValue, UnknownName
from jostle.evaluation.recipes.building import ABOUT, Copy, plan_build
from jostle.evaluation.recipes.recipe import CLEAN, Recipe, slugify
from jostle.io.files.atomic import write_bytes, write_text
from jostle.io.video.source import sha256_of_file

LAYOUTS = ("hub", "webdataset", "croissant")
METADATA, CARD, CROISSANT = "metadata.jsonl", "README.md", "croissant.json"
SHARDS, SHARD_LIST = "webdataset", "shards.json"
SHARD_BYTES = 512 << 20  # of videos in a shard, after which the next begins
_PIECE = 1 << 20
_BLOCK = tarfile.BLOCKSIZE

Row = dict[str, Any]


def check_layouts(layouts: Iterable[str], data: Dataset) -> tuple[str, ...]:
    """Return the names of layouts if they are known, and can hold these data."""
    names = tuple(dict.fromkeys(layouts))
    for name in names:
        if name not in LAYOUTS:
            raise UnknownName("layout", name, LAYOUTS)
    folders = [name for name, path in data.videos.items() if path.is_dir()]
    if names and folders:
        raise BadValue(
            f"the layouts {', '.join(names)} hold video files, and {folders[0]} is a folder of images, whose copies "
            "are folders too; leave --layout out",
            fault="F186",
        )
    return names


def write_layouts(
    out: Path, layouts: Sequence[str], recipe: Recipe, data: Dataset, *, seed: int, lossless: bool
) -> list[str]:
    """Write the files of some layouts into a finished set; return their paths, relative to the set.

    They describe all copies that the set has, also those of earlier builds.
    """
    files = json.loads((out / ABOUT).read_text(encoding="utf-8"))["files"]
    cells = [cell for cell in recipe.cells if cell.name != CLEAN]
    copies = [
        copy for copy in plan_build(recipe, data, cells, seed=seed, lossless=lossless).copies if copy.name in files
    ]
    notes = _annotations(data)
    rows = [_row(copy, files[copy.name], notes) for copy in sorted(copies, key=lambda copy: copy.name)]
    written: list[str] = []
    if "hub" in layouts or "croissant" in layouts:
        write_text(out / METADATA, (f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows))
        written.append(METADATA)
    if "hub" in layouts:
        if not (out / CARD).exists():  # a card is for people to go on writing
            write_text(out / CARD, [_card(recipe, data, rows, seed)])
        written.append(CARD)
    if "webdataset" in layouts:
        written += _write_shards(out, rows)
    if "croissant" in layouts:
        write_text(out / CROISSANT, [json.dumps(_croissant(out, recipe, data, rows, seed), indent=1), "\n"])
        written.append(CROISSANT)
    return written


def _row(copy: Copy, sha256: str, notes: Mapping[str, Row]) -> Row:
    """Return what is known of a copy; `file_name` is the key that the Hub asks for."""
    severities = [spec.severity for spec in copy.cell.parsed]
    row: Row = {
        "file_name": copy.name,
        "video_id": copy.video_id,
        "cell": copy.cell.name,
        "corruption": "+".join(spec.name for spec in copy.cell.parsed),
        "severity": max(severities),
        "sha256": sha256,
    }
    return row | notes.get(copy.video_id, {})


def _annotations(data: Dataset) -> dict[str, Row]:
    """Return what the annotations say of each video: its class or classes, and its segments."""
    notes: dict[str, Row] = {name: {} for name in data.videos}
    for part in data.annotations:
        if isinstance(part, VideoLabels):
            names: dict[str, list[str]] = {}
            for video, label in zip(part.video.tolist(), part.label.tolist(), strict=True):
                names.setdefault(part.videos[video], []).append(part.classes[label])
            several = any(len(own) > 1 for own in names.values())
            for name in notes:
                own = names.get(name, [])
                notes[name] |= {"labels": own} if several else {"label": own[0] if own else None}
        elif isinstance(part, Truth):
            actions = part.actions
            for name in notes:
                notes[name]["segments"] = _segments(actions[name]) if name in actions else []
    return notes


def _segments(actions: Segments) -> list[Row]:
    columns = zip(actions.start.tolist(), actions.end.tolist(), actions.label.tolist(), strict=True)
    return [{"start": start, "end": end, "label": actions.classes[label]} for start, end, label in columns]


def _card(recipe: Recipe, data: Dataset, rows: Sequence[Row], seed: int) -> str:
    suffix = Path(rows[0]["file_name"]).suffix
    category = "video-classification" if "label" in rows[0] else "other"
    patterns = sorted({f"{row['file_name'].partition('/')[0]}/**/*{suffix}" for row in rows})
    paths = "".join(f"\n    - {yaml_quote(pattern)}" for pattern in (METADATA, *patterns))
    cells = sorted({row["cell"] for row in rows})
    return (
        f"---\npretty_name: {yaml_quote(recipe.title)}\ntask_categories:\n- {category}\nconfigs:\n"
        f"- config_name: default\n  data_files:\n  - split: test\n    path:{paths}\n---\n\n"
        f"# {markdown_escape(recipe.title)}\n\n"
        f"{markdown_escape(_origin(recipe, data, seed))} {len(rows)} videos in {len(cells)} cells: "
        f"{markdown_escape(', '.join(cells))}.\n\n"
        f"`{METADATA}` has a line for each file; `{ABOUT}` says how the set was made, with versions and checksums. "
        f"{TERMS}\n"
    )


TERMS = "The copies are under the terms of the data set that they were made from."


def _origin(recipe: Recipe, data: Dataset, seed: int) -> str:
    return (
        f"Corrupted copies of the videos of {data.name} ({data.subset}), made by jostle by the recipe of the benchmark "
        f"{recipe.name} with seed {seed}."
    )


def _write_shards(out: Path, rows: Sequence[Row]) -> list[str]:
    """Write tar files of up to half a gigabyte, each of one cell; those that are there and whole are kept."""
    folder = out / SHARDS
    folder.mkdir(exist_ok=True)
    known = _known_shards(folder)
    shards: dict[str, dict[str, Any]] = {}
    for cell, own in groupby(sorted(rows, key=lambda row: (row["cell"], row["file_name"])), lambda row: row["cell"]):
        for number, members in enumerate(_split(out, list(own))):
            name = f"{slugify(cell)}-{number:06d}.tar"
            samples = [row for _, row in members]
            content = hashlib.sha256(json.dumps(samples, ensure_ascii=False).encode()).hexdigest()
            path = folder / name
            before = known.get(name, {})
            if before.get("content") != content or not path.is_file() or path.stat().st_size != before.get("bytes"):
                write_bytes(path, _tar(out, members))
            shards[name] = {"samples": len(samples), "bytes": path.stat().st_size, "content": content}
    write_text(folder / SHARD_LIST, [json.dumps(shards, indent=1), "\n"])
    for path in folder.glob("*.tar"):
        if path.name not in shards and path.name in known:  # of a set that was cut otherwise
            path.unlink()
    return [f"{SHARDS}/{name}" for name in (*shards, SHARD_LIST)]


def _known_shards(folder: Path) -> Mapping[str, Mapping[str, Any]]:
    try:
        known = json.loads((folder / SHARD_LIST).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return known if isinstance(known, dict) and all(isinstance(one, dict) for one in known.values()) else {}


def _split(out: Path, rows: Sequence[Row]) -> Iterator[list[tuple[int, Row]]]:
    """Split the samples of a cell, with their numbers, into shards."""
    shard: list[tuple[int, Row]] = []
    total = 0
    for number, row in enumerate(rows):
        size = (out / row["file_name"]).stat().st_size
        if shard and total + size > SHARD_BYTES:
            yield shard
            shard, total = [], 0
        shard.append((number, row))
        total += size
    if shard:
        yield shard


def _tar(out: Path, members: Sequence[tuple[int, Row]]) -> Iterator[bytes]:
    """Yield the bytes of a tar file: a video and its JSON for each sample, without times or owners."""
    for number, row in members:
        source = out / row["file_name"]
        # Numbers, because a key ends at its first dot, which ids may have.
        key = f"{slugify(row['cell'])}/{number:06d}"
        yield from _member(f"{key}{source.suffix}", source.stat().st_size, _pieces(source))
        text = json.dumps(row, ensure_ascii=False).encode()
        yield from _member(f"{key}.json", len(text), [text])
    yield bytes(2 * _BLOCK)


def _member(name: str, size: int, pieces: Iterable[bytes]) -> Iterator[bytes]:
    info = tarfile.TarInfo(name)
    info.size = size
    yield info.tobuf(tarfile.PAX_FORMAT)
    yield from pieces
    yield bytes(-size % _BLOCK)


def _pieces(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while piece := file.read(_PIECE):
            yield piece


_CONTEXT = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "sc": "https://schema.org/",
    "cr": "http://mlcommons.org/croissant/",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "dct": "http://purl.org/dc/terms/",
    "conformsTo": "dct:conformsTo",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "examples": {"@id": "cr:examples", "@type": "@json"},
} | {
    name: f"cr:{name}"
    for name in (
        *("citeAs", "column", "equivalentProperty", "extract", "field", "fileObject", "fileProperty", "fileSet"),
        *("format", "includes", "isLiveDataset", "jsonPath", "key", "md5", "parentField", "path", "recordSet"),
        *("references", "regex", "repeated", "replace", "samplingRate", "separator", "source", "subField", "transform"),
    )
}
_TYPES = {str: "sc:Text", int: "sc:Integer"}
_MIME = {".mp4": "video/mp4", ".mkv": "video/x-matroska"}


def _croissant(out: Path, recipe: Recipe, data: Dataset, rows: Sequence[Row], seed: int) -> dict[str, Any]:
    """Return Croissant 1.1 metadata with the fields of its responsible-AI vocabulary that jostle can answer for."""
    suffix = Path(rows[0]["file_name"]).suffix
    folders = sorted({row["file_name"].partition("/")[0] for row in rows})
    kinds = ", ".join(sorted({row["corruption"] for row in rows}))
    severities = sorted({row["severity"] for row in rows})
    return {
        "@context": _CONTEXT,
        "@type": "sc:Dataset",
        "name": f"{recipe.name}-{slugify(data.subset)}" if data.subset else recipe.name,
        "description": _origin(recipe, data, seed),
        "conformsTo": ["http://mlcommons.org/croissant/1.1", "http://mlcommons.org/croissant/RAI/1.0"],
        "url": ABOUT,
        "license": TERMS,
        "version": f"{recipe.version}.0.0",
        "isBasedOn": data.name,
        "rai:dataCollection": f"Nothing was collected: videos of {data.name} were read, corrupted and encoded again.",
        "rai:dataCollectionType": ["Software Collection", "Secondary Data Analysis"],
        "rai:dataCollectionMissingData": f"{len(data.missing)} annotated videos of the source were not there.",
        "rai:dataPreprocessingProtocol": [
            "Videos were decoded to 8-bit RGB; frame times are those of the source.",
            "Copies are FFV1, which is lossless." if suffix == ".mkv" else "Copies are H.264 of constant quantiser.",
        ],
        "rai:dataManipulationProtocol": f"Corruptions {kinds} at severities {', '.join(map(str, severities))}; every "
        f"draw is keyed by seed {seed}, video, corruption and frame.",
        "rai:dataAnnotationProtocol": "Annotations are those of the source, unchanged.",
        "rai:dataLimitations": [
            "Corruptions are synthetic. They stand for faults of cameras, light, weather and transmission, and do not "
            "cover them.",
            "For evaluation of robustness; a model trained on these corruptions has to be evaluated on others.",
        ],
        "rai:dataBiases": f"Those of {data.name}; corruptions neither add nor remove people, places or classes.",
        "rai:dataUseCases": ["Testing", "Validation"],
        "rai:personalSensitiveInformation": f"As in {data.name}; corruption does not make people in a video anonymous.",
        "rai:dataSocialImpact": "Models that fail on damaged video can be found before they are relied on.",
        "rai:dataReleaseMaintenancePlan": f"Recipe, seed and versions, which {ABOUT} lists, give the same files again.",
        "distribution": [
            {
                "@type": "cr:FileObject",
                "@id": METADATA,
                "name": METADATA,
                "contentUrl": METADATA,
                "encodingFormat": "application/jsonlines",
                "sha256": sha256_of_file(out / METADATA),
            },
            {
                "@type": "cr:FileSet",
                "@id": "video-files",
                "name": "video-files",
                "encodingFormat": _MIME[suffix],
                "includes": [f"{folder}/**/*{suffix}" for folder in folders],
            },
        ],
        "recordSet": [
            {
                "@type": "cr:RecordSet",
                "@id": "videos",
                "name": "videos",
                "description": f"A record for each video; {METADATA} has their segments too, where they have some.",
                "key": {"@id": "videos/file_name"},
                "field": [
                    {
                        "@type": "cr:Field",
                        "@id": f"videos/{key}",
                        "name": key,
                        "dataType": _TYPES[type(value)],
                        "source": {"fileObject": {"@id": METADATA}, "extract": {"column": key}},
                    }
                    for key, value in rows[0].items()
                    if type(value) in _TYPES
                ],
            }
        ],
    }
