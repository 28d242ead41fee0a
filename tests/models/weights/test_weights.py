"""Weights by name: which file is meant, fetched once, compared from then on, and refused when it is another."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
import torch
from torch import nn

import jostle.api
from jostle.cli.benchmarks import run
from jostle.errors import BadValue, CheckpointError, JostleError, Tampered, UnknownName
from jostle.models.checkpoints import write_weights
from jostle.models.input_spec import InputSpec
from jostle.models.recognition.recogniser import RecogniserKind, changed, recognisers, with_weights
from jostle.models.weights.resolve import cached_file, weights_path
from jostle.models.weights.shipped import index_of_names, sources
from jostle.models.weights.shipped.sources import WeightSource, is_fetched

SPEC = InputSpec(frames=2, stride=2, resize=8, size=8)


def network(classes: int) -> nn.Module:
    return nn.Sequential(nn.AdaptiveAvgPool3d(1), nn.Flatten(), nn.Linear(3, classes))


def load(weights, changes):
    return with_weights("fetched_net", network, changed("fetched_net", SPEC, changes), weights, head="2.bias")


@pytest.fixture
def place(files, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> WeightSource:
    """Weights of that network on the server, and a cache of this test's own."""
    monkeypatch.setitem(recognisers._entries, "fetched_net", RecogniserKind("fetched_net", load, "the test", SPEC))
    monkeypatch.setenv("JOSTLE_CACHE", str(tmp_path / "cache"))
    path = tmp_path / "made.safetensors"
    write_weights({"2.weight": torch.ones(4, 3), "2.bias": torch.arange(4.0)}, path)
    files.held["/nets/net.safetensors"] = path.read_bytes()
    made = WeightSource(f"{files.url}/nets/net.safetensors", has=("2.weight", "2.bias"))
    monkeypatch.setattr(
        sources, "read_sources", lambda: {"models": {"fetched_net": made}, "extractors": {}, "detectors": {}}
    )
    return made


def test_public_weights_are_fetched_once_and_give_the_network(files, place: WeightSource) -> None:
    model = jostle.load_recogniser("fetched_net", weights="public")
    assert model.network[2].bias.tolist() == [0, 1, 2, 3]
    jostle.load_recogniser("fetched_net", weights="public")
    assert len(files.asked) == 1
    note = json.loads(Path(f"{cached_file(place)}.json").read_text())
    assert note["url"] == place.url
    assert note["bytes"] == cached_file(place).stat().st_size


def test_weights_can_be_fetched_beforehand(files, place: WeightSource, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "jostle.models.loading.names.names_of", lambda shelf: ["fetched_net"] if shelf == "models" else []
    )
    found = jostle.api.fetch_weights("models", "fetched_net")
    assert found == cached_file(place) == jostle.api.fetch_weights("extractors", "fetched_net")
    assert len(files.asked) == 1
    for wrong in ("fetched_nut", "r3d_18"):
        with pytest.raises(UnknownName):
            jostle.api.fetch_weights("extractors", wrong)
    with pytest.raises(BadValue, match="are fetched by public"):
        jostle.api.fetch_weights("models", "fetched_net", "clean")


@pytest.mark.parametrize(
    ("benchmark", "model", "shelf"),
    [("puppets-c", "tridet_puppets", "detectors"), ("puppets-boxes", "detr", "objectdetectors")],
)
def test_a_run_looks_for_weights_on_the_shelf_of_its_model(
    benchmark: str, model: str, shelf: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    asked = []

    def fetch_weights(kind: str, name: str, weights: str, **_: object) -> None:
        asked.append((kind, name, weights))
        raise BadValue("that was all")

    monkeypatch.setattr("jostle.api.fetch_weights", fetch_weights)
    with pytest.raises(BadValue, match="that was all"):
        run(benchmark, model=[model], weights="public", out=tmp_path / "run")
    assert asked == [(shelf, model, "public")]


def test_nothing_is_fetched_unless_it_is_said(files, place: WeightSource) -> None:
    with pytest.raises(BadValue, match="give its weights"):
        jostle.load_recogniser("fetched_net")
    with pytest.raises(JostleError):
        jostle.load_recogniser("fetched_net", weights=place.url)
    assert files.asked == []


def test_a_file_put_there_by_hand_will_do(files, place: WeightSource) -> None:
    target = cached_file(place)
    target.parent.mkdir(parents=True)
    target.write_bytes(files.held["/nets/net.safetensors"])
    assert weights_path("models", "fetched_net", "public") == target
    assert files.asked == []


def test_a_file_that_changed_here_is_refused(place: WeightSource) -> None:
    target = weights_path("models", "fetched_net", "public")
    damaged = bytearray(target.read_bytes())
    damaged[-1] ^= 1
    target.write_bytes(damaged)
    with pytest.raises(Tampered, match=r"the file first fetched from .* had [0-9a-f]{64}; delete .*fetched again"):
        weights_path("models", "fetched_net", "public")


def test_a_file_that_changed_there_is_refused(files, place: WeightSource, tmp_path: Path) -> None:
    target = weights_path("models", "fetched_net", "public")
    target.unlink()
    other = tmp_path / "other.safetensors"
    write_weights({"2.weight": torch.zeros(4, 3), "2.bias": torch.zeros(4)}, other)
    files.held["/nets/net.safetensors"] = other.read_bytes()
    with pytest.raises(Tampered, match=r"delete .*net\.safetensors\.json too"):
        weights_path("models", "fetched_net", "public")
    assert not target.exists()
    Path(f"{target}.json").unlink()
    assert weights_path("models", "fetched_net", "public").read_bytes() == other.read_bytes()


@pytest.mark.fault("F137")
@pytest.mark.parametrize("record", [b"[" * 100_000, b"{}", b"\xff", b"pipe", b" " * 2**17])
def test_f137_a_damaged_record_is_told(place: WeightSource, record: bytes) -> None:
    note = Path(f"{weights_path('models', 'fetched_net', 'public')}.json")
    note.unlink()
    if record == b"pipe":
        os.mkfifo(note)
    else:
        note.write_bytes(record)
    with pytest.raises(Tampered, match=r"net\.safetensors\.json: is damaged; delete it") as caught:
        weights_path("models", "fetched_net", "public")
    assert caught.value.fault == "F137"


def test_a_published_checksum_is_held_to(files, place: WeightSource, monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = WeightSource(place.url, has=place.has, sha256="0123abcd")
    monkeypatch.setattr(sources, "read_sources", lambda: {"models": {"fetched_net": wrong}})
    with pytest.raises(Tampered, match="published one 0123abcd"):
        weights_path("models", "fetched_net", "public")
    assert not cached_file(place).exists()


def test_weights_of_another_network_are_told_by_their_names(files, place: WeightSource, tmp_path: Path) -> None:
    other = tmp_path / "other.safetensors"
    write_weights({"stem.weight": torch.zeros(2)}, other)
    files.held["/nets/net.safetensors"] = other.read_bytes()
    with pytest.raises(CheckpointError, match=r"not the weights of fetched_net: it has no 2\.weight, .*stem\.weight"):
        weights_path("models", "fetched_net", "public")
    assert not cached_file(place).exists()
    assert not Path(f"{cached_file(place)}.json").exists()


def test_a_page_instead_of_the_file_is_told(files, place: WeightSource) -> None:
    files.held["/nets/net.safetensors"] = b"<!doctype html><title>Log in</title>"
    with pytest.raises(CheckpointError, match="it looks like a web page"):
        weights_path("models", "fetched_net", "public")
    assert not cached_file(place).exists()


def test_a_server_that_claims_less_than_there_is_gives_no_weights(files, place: WeightSource) -> None:
    files.claims = len(files.held["/nets/net.safetensors"]) - 5
    with pytest.raises(CheckpointError, match="not a whole safetensors file"):
        weights_path("models", "fetched_net", "public")
    assert not cached_file(place).exists()


def test_a_pickle_that_asks_for_code_is_not_run(files, place: WeightSource, tmp_path: Path) -> None:
    files.held["/nets/net.safetensors"] = b"\x80\x02cos\nsystem\nX\x04\x00\x00\x00trueq\x00\x85R."
    with pytest.raises(CheckpointError, match="refused, nothing in it was run") as told:
        weights_path("models", "fetched_net", "public")
    assert told.value.fault == "F52"
    assert not cached_file(place).exists()


@pytest.mark.parametrize(
    ("shelf", "name", "weights", "said"),
    [
        ("detectors", "actionformer_thumos_i3d", "public", "have to be got by hand: .*actionformer_release"),
        ("models", "onnx", "public", "not known where public weights"),
        ("models", "r3d_18", "https://example.org/a.pth", "fetch this yourself"),
        ("models", "r3d_18", "hf:just-a-name", "hf:ORG/NAME/file"),
        ("models", "r3d_18", "hf:a/../b", "hf:ORG/NAME/file"),
    ],
)
def test_what_cannot_be_fetched_is_said(shelf: str, name: str, weights: str, said: str) -> None:
    with pytest.raises(BadValue, match=said):
        weights_path(shelf, name, weights)


def test_paths_and_shipped_weights_are_what_they_were(tmp_path: Path) -> None:
    assert weights_path("models", "r3d_18", tmp_path / "a.pth") == tmp_path / "a.pth"
    assert weights_path("models", "puppet_frames", "robust").name == "puppet_frames-robust.safetensors"
    with pytest.raises(UnknownName):
        weights_path("models", "r3d_18", "clean")
    assert not any(map(is_fetched, (None, "clean", "a/public", tmp_path / "public.pth")))


def test_every_row_is_that_of_a_network_on_its_shelf() -> None:
    for shelf, rows in sources.read_sources().items():
        assert set(rows) <= set(index_of_names()[shelf]), shelf


def test_every_network_says_what_it_sees_and_where_its_weights_are() -> None:
    for shelf in ("models", "extractors", "detectors", "objectdetectors"):
        names = index_of_names()[shelf]
        told = {one.name: one for one in jostle.api.describe(shelf)}
        assert set(names) <= set(told)
        assert all(one.sees and one.weights for one in told.values())
    told = {one.name: one for one in jostle.api.describe("detectors")}
    assert told["actionformer_thumos_i3d"].sees == "features of 2048, 2304 steps; 20 classes"
    assert told["afsd_puppets"].sees == "128 frames at 8 a second, 96x96; 16 classes"
    assert told["e2e_tad_anet_tsm50"].sees == "96 frames over the whole video, 96x96; 200 classes"
    told = {one.name: one for one in jostle.api.describe("models")}
    assert told["r3d_18"].sees == "16 frames at 15 a second, 112x112"
    assert told["r3d_18"].weights.endswith("r3d_18-b3b3357e.pth (127 MiB)")
    told = {one.name: one for one in jostle.api.describe("objectdetectors")}
    assert told["puppet_boxes"].weights == "clean: with jostle"
    assert told["fcos_resnet50_fpn"].weights.endswith("fcos_resnet50_fpn_coco-99b0c9b7.pth (124 MiB)")
    assert told["rt_detr"].weights == "public: hf:PekingU/rtdetr_r50vd"


def test_rows_that_no_fetch_could_honour_are_refused() -> None:
    for wrong in (
        {"url": "http://example.org/a.pth"},
        {"url": "https:///a.pth"},
        {"url": "https://example.org/../a"},
        {},
        {"url": "https://example.org/a", "by_hand": "ask"},
        {"url": "https://example.org/a", "sha256": "abc"},
    ):
        with pytest.raises(BadValue):
            WeightSource(**wrong)


def test_who_gives_no_weights_is_told_of_those_that_can_be_fetched() -> None:
    for load, name in ((jostle.load_recogniser, "r3d_18"), (jostle.load_extractor, "i3d_rgb")):
        with pytest.raises(BadValue, match="or say 'public', and they are fetched"):
            load(name)
    with pytest.raises(BadValue, match=r"first output are logits$"):
        jostle.load_recogniser("onnx")


def test_the_shelf_knows_who_wants_a_folder() -> None:
    assert {name for name in recognisers if recognisers[name].takes == "folder"} >= {"videomae", "vivit"}


def test_weights_in_parts_are_fetched_into_one_folder(
    files, place: WeightSource, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each part by its own row of the table; the weights are the folder that they come to lie in."""
    rows = {}
    for name in ("rgb", "flow"):
        files.held[f"/nets/{name}_imagenet.pt"] = files.held["/nets/net.safetensors"]
        rows[f"i3d_{name}"] = WeightSource(f"{files.url}/nets/{name}_imagenet.pt", has=("2.bias",))
    rows["i3d_two_stream"] = WeightSource(parts=("i3d_rgb", "i3d_flow"))
    monkeypatch.setattr(sources, "read_sources", lambda: {"models": {}, "extractors": rows, "detectors": {}})
    found = jostle.api.fetch_weights("extractors", "i3d_two_stream")
    assert sorted(path.name for path in found.glob("*.pt")) == ["flow_imagenet.pt", "rgb_imagenet.pt"]
    assert len(files.asked) == 2
    with pytest.raises(CheckpointError, match="belong to another network"):
        jostle.load_extractor("i3d_two_stream", weights="public")
    assert len(files.asked) == 2
    with pytest.raises(BadValue, match="one of the three"):
        WeightSource(parts=("a",), by_hand="ask")
