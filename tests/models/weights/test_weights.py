"""Weights by name: downloaded once, verified on every use, refused when the file has changed."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
import torch
from torch import nn
from typer.testing import CliRunner

import jostle.api.catalogue  # before a test replaces what it imports
from helpers.refusals import refused
from jostle.cli import app
from jostle.errors import BadValue, CheckpointError, JostleError, Tampered, UnknownName
from jostle.models.checkpoints import write_weights
from jostle.models.input_spec import InputSpec
from jostle.models.loading.name_index import own_names
from jostle.models.recognition.recogniser import RecogniserKind, changed, recognisers, with_weights
from jostle.models.weights import sources
from jostle.models.weights.resolve import cached_file, weights_path
from jostle.models.weights.sources import WeightSource, is_fetched

SPEC = InputSpec(frames=2, stride=2, resize=8, size=8)


def network(classes: int) -> nn.Module:
    return nn.Sequential(nn.AdaptiveAvgPool3d(1), nn.Flatten(), nn.Linear(3, classes))


def load(weights, changes):
    return with_weights("fetched_net", network, changed("fetched_net", SPEC, changes), weights, head="2.bias")


@pytest.fixture
def source(file_server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> WeightSource:
    """Weights of `network` on the server, registered as "fetched_net", and an empty cache."""
    monkeypatch.setitem(recognisers._entries, "fetched_net", RecogniserKind("fetched_net", load, "the test", SPEC))
    monkeypatch.setenv("JOSTLE_CACHE", str(tmp_path / "cache"))
    path = tmp_path / "made.safetensors"
    write_weights({"2.weight": torch.ones(4, 3), "2.bias": torch.arange(4.0)}, path)
    file_server.files["/nets/net.safetensors"] = path.read_bytes()
    weight_source = WeightSource(f"{file_server.url}/nets/net.safetensors", has=("2.weight", "2.bias"))
    monkeypatch.setattr(
        sources, "read_sources", lambda: {"models": {"fetched_net": weight_source}, "extractors": {}, "detectors": {}}
    )
    return weight_source


def test_public_weights_are_downloaded_once(file_server, source: WeightSource) -> None:
    model = jostle.load_recogniser("fetched_net", weights="public")
    assert model.network[2].bias.tolist() == [0, 1, 2, 3]
    jostle.load_recogniser("fetched_net", weights="public")
    assert len(file_server.requests) == 1
    note = json.loads(Path(f"{cached_file(source)}.json").read_text())
    assert note["url"] == source.url
    assert note["bytes"] == cached_file(source).stat().st_size


def test_fetch_weights_downloads_without_loading(
    file_server, source: WeightSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "jostle.models.loading.names.names_of", lambda registry: ["fetched_net"] if registry == "models" else []
    )
    path = jostle.api.fetch_weights("models", "fetched_net")
    assert path == cached_file(source) == jostle.api.fetch_weights("extractors", "fetched_net")
    assert len(file_server.requests) == 1
    for wrong in ("fetched_nut", "r3d_18"):
        with pytest.raises(UnknownName):
            jostle.api.fetch_weights("extractors", wrong)
    with pytest.raises(BadValue, match="are fetched by public"):
        jostle.api.fetch_weights("models", "fetched_net", "clean")


@pytest.mark.parametrize(
    ("benchmark", "model", "registry"),
    [("puppets-c", "tridet_puppets", "detectors"), ("puppets-boxes", "detr", "objectdetectors")],
)
def test_run_fetches_weights_from_the_registry_of_the_model(
    benchmark: str, model: str, registry: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    requests = []

    def fetch_weights(kind: str, name: str, weights: str, **_: object) -> None:
        requests.append((kind, name, weights))
        raise BadValue("that was all")

    monkeypatch.setattr("jostle.api.fetch_weights", fetch_weights)
    words = ["run", benchmark, "--model", model, "--weights", "public", "--out", str(tmp_path / "run")]
    assert "that was all" in str(CliRunner().invoke(app, words).exception)
    assert requests == [(registry, model, "public")]


def test_nothing_is_downloaded_unless_requested(file_server, source: WeightSource) -> None:
    with pytest.raises(BadValue, match="give its weights"):
        jostle.load_recogniser("fetched_net")
    with pytest.raises(JostleError):
        jostle.load_recogniser("fetched_net", weights=source.url)
    assert file_server.requests == []


def test_manually_placed_file_is_used(file_server, source: WeightSource) -> None:
    target = cached_file(source)
    target.parent.mkdir(parents=True)
    target.write_bytes(file_server.files["/nets/net.safetensors"])
    assert weights_path("models", "fetched_net", "public") == target
    assert file_server.requests == []


def test_file_changed_in_the_cache_is_refused(source: WeightSource) -> None:
    target = weights_path("models", "fetched_net", "public")
    damaged = bytearray(target.read_bytes())
    damaged[-1] ^= 1
    target.write_bytes(damaged)
    with pytest.raises(Tampered, match=r"the file first fetched from .* had [0-9a-f]{64}; delete .*fetched again"):
        weights_path("models", "fetched_net", "public")


def test_file_changed_on_the_server_is_refused(file_server, source: WeightSource, tmp_path: Path) -> None:
    target = weights_path("models", "fetched_net", "public")
    target.unlink()
    other = tmp_path / "other.safetensors"
    write_weights({"2.weight": torch.zeros(4, 3), "2.bias": torch.zeros(4)}, other)
    file_server.files["/nets/net.safetensors"] = other.read_bytes()
    with pytest.raises(Tampered, match=r"delete .*net\.safetensors\.json too"):
        weights_path("models", "fetched_net", "public")
    assert not target.exists()
    Path(f"{target}.json").unlink()
    assert weights_path("models", "fetched_net", "public").read_bytes() == other.read_bytes()


@pytest.mark.fault("F137")
@pytest.mark.parametrize("record", [b"[" * 100_000, b"{}", b"\xff", b"pipe", b" " * 2**17])
def test_f137_damaged_download_record_is_reported(source: WeightSource, record: bytes) -> None:
    note = Path(f"{weights_path('models', 'fetched_net', 'public')}.json")
    note.unlink()
    if record == b"pipe":
        os.mkfifo(note)
    else:
        note.write_bytes(record)
    with refused("F137", Tampered, match=r"net\.safetensors\.json: is damaged; delete it"):
        weights_path("models", "fetched_net", "public")


def test_published_checksum_is_verified(file_server, source: WeightSource, monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = WeightSource(source.url, has=source.has, sha256="0123abcd")
    monkeypatch.setattr(sources, "read_sources", lambda: {"models": {"fetched_net": wrong}})
    with pytest.raises(Tampered, match="published one 0123abcd"):
        weights_path("models", "fetched_net", "public")
    assert not cached_file(source).exists()


def test_weights_of_another_network_are_recognised_by_tensor_names(
    file_server, source: WeightSource, tmp_path: Path
) -> None:
    other = tmp_path / "other.safetensors"
    write_weights({"stem.weight": torch.zeros(2)}, other)
    file_server.files["/nets/net.safetensors"] = other.read_bytes()
    with pytest.raises(CheckpointError, match=r"not the weights of fetched_net: it has no 2\.weight, .*stem\.weight"):
        weights_path("models", "fetched_net", "public")
    assert not cached_file(source).exists()
    assert not Path(f"{cached_file(source)}.json").exists()


def test_web_page_instead_of_weights_is_reported(file_server, source: WeightSource) -> None:
    file_server.files["/nets/net.safetensors"] = b"<!doctype html><title>Log in</title>"
    with pytest.raises(CheckpointError, match="it looks like a web page"):
        weights_path("models", "fetched_net", "public")
    assert not cached_file(source).exists()


def test_too_short_content_length_is_refused(file_server, source: WeightSource) -> None:
    file_server.content_length = len(file_server.files["/nets/net.safetensors"]) - 5
    with pytest.raises(CheckpointError, match="not a whole safetensors file"):
        weights_path("models", "fetched_net", "public")
    assert not cached_file(source).exists()


def test_pickle_with_code_is_not_executed(file_server, source: WeightSource, tmp_path: Path) -> None:
    file_server.files["/nets/net.safetensors"] = b"\x80\x02cos\nsystem\nX\x04\x00\x00\x00trueq\x00\x85R."
    with refused("F52", CheckpointError, match="refused, nothing in it was run"):
        weights_path("models", "fetched_net", "public")
    assert not cached_file(source).exists()


@pytest.mark.parametrize(
    ("registry", "name", "weights", "message"),
    [
        ("detectors", "actionformer_thumos_i3d", "public", "have to be got by hand: .*actionformer_release"),
        ("models", "onnx", "public", "not known where public weights"),
        ("models", "r3d_18", "https://example.org/a.pth", "fetch this yourself"),
        ("models", "r3d_18", "hf:just-a-name", "hf:ORG/NAME/file"),
        ("models", "r3d_18", "hf:a/../b", "hf:ORG/NAME/file"),
    ],
)
def test_unavailable_weights_raise_with_a_reason(registry: str, name: str, weights: str, message: str) -> None:
    with pytest.raises(BadValue, match=message):
        weights_path(registry, name, weights)


def test_paths_and_shipped_weights_are_resolved_without_download(tmp_path: Path) -> None:
    assert weights_path("models", "r3d_18", tmp_path / "a.pth") == tmp_path / "a.pth"
    assert weights_path("models", "puppet_frames", "robust").name == "puppet_frames-robust.safetensors"
    with pytest.raises(UnknownName):
        weights_path("models", "r3d_18", "clean")
    assert not any(map(is_fetched, (None, "clean", "a/public", tmp_path / "public.pth")))


def test_every_weight_source_belongs_to_a_registered_network() -> None:
    for registry, rows in sources.read_sources().items():
        assert set(rows) <= set(own_names()[registry]), registry


def test_describe_lists_input_and_weights_of_every_network() -> None:
    for registry in ("models", "extractors", "detectors", "objectdetectors"):
        names = own_names()[registry]
        descriptions = {description.name: description for description in jostle.api.describe(registry)}
        assert set(names) <= set(descriptions)
        assert all(description.sees and description.weights for description in descriptions.values())
    descriptions = {description.name: description for description in jostle.api.describe("detectors")}
    assert descriptions["actionformer_thumos_i3d"].sees == "features of 2048, 2304 steps; 20 classes"
    assert descriptions["afsd_puppets"].sees == "128 frames at 8 a second, 96x96; 16 classes"
    assert descriptions["e2e_tad_anet_tsm50"].sees == "96 frames over the whole video, 96x96; 200 classes"
    descriptions = {description.name: description for description in jostle.api.describe("models")}
    assert descriptions["r3d_18"].sees == "16 frames at 15 a second, 112x112"
    assert descriptions["r3d_18"].weights.endswith("r3d_18-b3b3357e.pth (127 MiB)")
    descriptions = {description.name: description for description in jostle.api.describe("objectdetectors")}
    assert descriptions["puppet_boxes"].weights == "clean: with jostle"
    assert descriptions["fcos_resnet50_fpn"].weights.endswith("fcos_resnet50_fpn_coco-99b0c9b7.pth (124 MiB)")
    assert descriptions["rt_detr"].weights == "public: hf:PekingU/rtdetr_r50vd"


def test_invalid_weight_sources_are_refused() -> None:
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


def test_missing_weights_error_suggests_public() -> None:
    for load, name in ((jostle.load_recogniser, "r3d_18"), (jostle.load_extractor, "i3d_rgb")):
        with pytest.raises(BadValue, match="or say 'public', and they are fetched"):
            load(name)
    with pytest.raises(BadValue, match=r"first output are logits$"):
        jostle.load_recogniser("onnx")


def test_registry_lists_models_that_take_a_folder() -> None:
    assert {name for name in recognisers if recognisers[name].takes == "folder"} >= {"videomae", "vivit"}


def test_multi_part_weights_are_downloaded_into_one_folder(
    file_server, source: WeightSource, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every part has its own weight source; the weights are the folder that contains them."""
    rows = {}
    for name in ("rgb", "flow"):
        file_server.files[f"/nets/{name}_imagenet.pt"] = file_server.files["/nets/net.safetensors"]
        rows[f"i3d_{name}"] = WeightSource(f"{file_server.url}/nets/{name}_imagenet.pt", has=("2.bias",))
    rows["i3d_two_stream"] = WeightSource(parts=("i3d_rgb", "i3d_flow"))
    monkeypatch.setattr(sources, "read_sources", lambda: {"models": {}, "extractors": rows, "detectors": {}})
    folder = jostle.api.fetch_weights("extractors", "i3d_two_stream")
    assert sorted(path.name for path in folder.glob("*.pt")) == ["flow_imagenet.pt", "rgb_imagenet.pt"]
    assert len(file_server.requests) == 2
    with pytest.raises(CheckpointError, match="belong to another network"):
        jostle.load_extractor("i3d_two_stream", weights="public")
    assert len(file_server.requests) == 2
    with pytest.raises(BadValue, match="one of the three"):
        WeightSource(parts=("a",), by_hand="ask")
