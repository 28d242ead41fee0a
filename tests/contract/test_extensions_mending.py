"""Menders and damage finders of examples/extensions, by command line and by Python in processes of their own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")

import jostle
from helpers.benchmark_files import write_benchmark
from jostle.datasets.puppets.film import untrimmed
from jostle.datasets.puppets.parameters import CASTS
from jostle.io.video.encode import Writer
from jostle.models.checkpoints import read_metadata
from jostle.models.weights.packaged import trained_weights

EXTENSIONS = Path(__file__).resolve().parents[2] / "examples" / "extensions"
BLACK = slice(20, 25)
OWN = """
import numpy as np

BLACK = 0

class Even:
    name, fingerprint = "even", None
    def finder_for(self, clean): return self
    def find_damaged(self, state, origin): return np.arange(len(state)) % 2 == 1

def upside_down(frame, before, t, after): return frame(before)[::-1]
def cropped(frame, before, t, after): return frame(before)[1:]

class Short(Even):
    def find_damaged(self, state, origin): return np.zeros(3, bool)
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of two annotated films, one of them with black frames, and a module of one's own."""
    place = tmp_path_factory.mktemp("extensions")
    (place / "data").mkdir()
    (place / "own.py").write_text(OWN)
    classes = json.loads(read_metadata(trained_weights("temporalmaxer_puppets", "clean"))["classes"])
    database = {}
    for i, name in enumerate(("one", "two")):
        frames = untrimmed(11 + i, "mended", cast=tuple(CASTS["validation"])).draw(200, 248)
        write(frames, place / "data" / f"{name}.mkv")
        actions = [{"label": label, "segment": [0.5, 1.5], "label_id": k} for k, label in enumerate(classes)]
        database[name] = {"subset": "test", "duration": 2.0, "fps": 24.0, "annotations": actions}
    black = np.array(frames)
    black[BLACK] = 0
    write(black, place / "black.mkv")
    (place / "data" / "truth.json").write_text(json.dumps({"database": database}))
    write_benchmark(place, "detection", "thumos14-c/black_frame:3")
    return place


def write(frames: np.ndarray, path: Path) -> None:
    with Writer(path, size=(112, 112), fps=24, codec="ffv1") as writer:
        for frame in frames:
            writer.write(frame)


def start(place: Path, words: list[object], code: int = 0) -> subprocess.CompletedProcess[str]:
    """Run Python with words in a process that can import nothing else of ours than the extensions."""
    command = [sys.executable, *map(str, words)]
    environment = os.environ | {"PYTHONPATH": str(EXTENSIONS)}
    done = subprocess.run(command, cwd=place, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stderr
    return done


def run(place: Path, *words: object, code: int = 0) -> subprocess.CompletedProcess[str]:
    """Run a command of jostle."""
    return start(place, ["-m", "jostle", *words], code)


def expected(place: Path) -> np.ndarray:
    """Return the film with its black frames replaced by the nearest intact ones."""
    frames = np.array(jostle.read(place / "black.mkv").frames)
    frames[BLACK] = frames[[19, 19, 19, 25, 25]]
    return frames


def test_own_mender_and_finder_by_command_line(place: Path) -> None:
    words = ("mend", "black.mkv", "-o", "mended.mkv", "--lossless", "--how", "nearest-good", "--inspector", "darkness")
    done = run(place, *words, "--import", "nearest_good", "--import", "darkness", "--json")
    assert (json.loads(done.stdout)["how"], json.loads(done.stdout)["mended"]) == ("nearest-good", 5)
    assert np.array_equal(jostle.read(place / "mended.mkv").frames, expected(place))
    found = json.loads(
        run(place, "inspect", "black.mkv", "--inspector", "darkness", "--import", "darkness", "--json").stdout
    )
    assert [(one["first"], one["stop"], one["kind"]) for one in found["stretches"]] == [(20, 25, "unknown")]
    assert (found["inspector"], found["fingerprint"][:7]) == ("darkness", "sha256:")


def test_own_mender_and_finder_by_python(place: Path) -> None:
    script = (
        "import numpy, jostle, darkness, nearest_good, own\n"
        "frames = jostle.read('black.mkv').frames\n"
        "finders = 'darkness', 'darkness:Darkness', darkness.Darkness()\n"
        "menders = 'nearest-good', 'nearest_good:nearest_good', nearest_good.nearest_good\n"
        "mended = [jostle.mend(frames, how=how, inspector=one) for one, how in zip(finders, menders)]\n"
        "assert all((one == mended[0]).all() for one in mended)\n"
        "numpy.save('mended.npy', mended[0])\n"
        "assert jostle.mend_file('black.mkv', 'out.mkv', how=own.upside_down, inspector=own.Even()).mended == 24\n"
        "assert jostle.inspect(frames, inspector=own.Even()).tolist() == [0.0, 1.0] * 24\n"
    )
    start(place, ["-c", script])
    assert np.array_equal(np.load(place / "mended.npy"), expected(place))


def test_own_finder_in_a_run_of_two_workers(place: Path) -> None:
    model = ("--model", "temporalmaxer_puppets", "--weights", "clean", "--data", "data", "--device", "cpu", "-j", 2)
    words = ("run", "tiny-c.toml", *model, "--mend", "darkness", "--import", "darkness")
    run(place, *words, "-o", "mended")
    facts = json.loads((place / "mended" / "run.json").read_text())
    assert (facts["mend"], facts["mend_weights"][:7]) == ("darkness", "sha256:")
    assert [(one["shelf"], one["name"]) for one in facts["parts"]] == [("damagefinders", "darkness")]
    events = [json.loads(line) for line in (place / "mended" / "journal.jsonl").read_text().splitlines()]
    found = [event["mended"] for event in events if event.get("mended")]
    assert len(found) == 2
    assert all(cells["clean"]["found"] == [] and cells["thumos14-c/black_frame:3"]["found"] for cells in found)


def test_own_finder_as_an_object_in_a_run_and_a_probe(place: Path) -> None:
    script = (
        "import jostle, darkness\n"
        "words = dict(model='temporalmaxer_puppets', weights='clean', data='data', device='cpu', jobs=1)\n"
        "jostle.run('tiny-c.toml', mend=darkness.Darkness(), out='object', **words)\n"
        "jostle.run('tiny-c.toml', mend='darkness:Darkness', out='path', **words)\n"
        "jostle.probe('tiny-c.toml', mend='darkness', out='probed', **words)\n"
    )
    start(place, ["-c", script])
    facts = {out: json.loads((place / out / "run.json").read_text()) for out in ("object", "path", "probed")}
    assert {one["mend"] for one in facts.values()} == {"darkness"}
    assert len({one["mend_weights"] for one in facts.values()}) == 1
    assert [[part["name"] for part in one["parts"]] for one in facts.values()] == [
        [],
        ["darkness:Darkness"],
        ["darkness"],
    ]
    scores = [(place / out / "scores.json").read_text() for out in ("object", "path")]
    assert scores[0] == scores[1]


def test_own_finder_of_features_and_detections(place: Path) -> None:
    own = ("--device", "cpu", "--mend", "darkness", "--import", "darkness")
    run(place, "extract", "black.mkv", "--extractor", "puppet_net", "-o", "features", *own)
    assert json.loads((place / "features" / "features.json").read_text())["mend"] == "darkness"
    detector = ("--detector", "temporalmaxer_puppets", "--weights", "clean")
    done = run(place, "detect", "black.mkv", *detector, "--json", *own)
    assert json.loads(done.stdout)["external_data"]["mended"]["by"] == "darkness"
    assert "black: 5 of 48 frames are damaged" in done.stderr


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--how nearest-god --import nearest_good", "no mender is called 'nearest-god': did you mean nearest-good"),
        ("--inspector darknes --import darkness", "no damage finder is called 'darknes': did you mean darkness"),
        ("--inspector known", "`known` works only with `run`"),
        ("--how own:cropped --inspector own:Even", "mender own:cropped: returned (111, 112, 3) uint8 for frame 1"),
        ("--inspector own:Short", "damage finder even: found (3,) bool for 48 frames"),
        ("--inspector own:Even --threshold 0.5", "even decides by itself, so it has no threshold"),
        ("--inspector own:BLACK", "own:BLACK: a damage finder has a name"),
        ("--how own:nothing", "--how own:nothing: cannot be imported"),
    ],
)
def test_wrong_names_and_answers(place: Path, options: str, message: str) -> None:
    words = ("mend", "black.mkv", "-o", "wrong.mkv", *options.split())
    assert message in " ".join(run(place, *words, code=2).stderr.split())
    assert not (place / "wrong.mkv").exists()


def test_names_of_runs_and_streams(place: Path) -> None:
    model = ("--model", "temporalmaxer_puppets", "--weights", "clean", "--data", "data", "-o", "none")
    done = run(place, "run", "tiny-c.toml", *model, "--mend", "knwon", code=2)
    assert "no damage finder is called 'knwon': did you mean known" in done.stderr
    done = run(place, "watch", "black.mkv", "--inspector", "darkness", "--import", "darkness", code=2)
    assert "a damage finder needs the whole video" in done.stderr
    done = run(place, "names", "menders", "--origin", "--import", "nearest_good")
    assert "nearest-good" in done.stdout
    with pytest.raises(jostle.JostleError, match="choose one of hold, blend, mark; other menders need the frames of a"):
        jostle.Watcher(mend=True, how="motion")  # type: ignore[arg-type]
