"""Zero-shot recognisers CLIP, SigLIP, SigLIP 2 and X-CLIP, tiny and with random weights."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from helpers.refusals import refused
from jostle.errors import BadValue, CheckpointError, UnknownName
from jostle.models.loading.recognisers import load_recogniser
from jostle.models.recognition.recogniser import find_kind
from jostle.models.recognition.zero_shot import FAMILIES, ZeroShotRecogniser, class_words, write_prompts

needs_transformers = pytest.mark.skipif(
    importlib.util.find_spec("transformers") is None, reason="transformers is not installed"
)
CLASSES = ("JumpRope", "tai_chi", "playing piano")
CLIPS = np.random.default_rng(0).integers(0, 256, (3, 4, 40, 48, 3), np.uint8)


def load(kind: str, folder: Path, **changes: object) -> ZeroShotRecogniser:
    model = load_recogniser(f"zeroshot/{kind}", weights=folder, **changes)
    assert isinstance(model, ZeroShotRecogniser)
    return model


@needs_transformers
@pytest.mark.parametrize("kind", sorted(FAMILIES))
def test_every_family_scores_named_classes_transformers(kind: str, tmp_path: Path) -> None:
    from helpers.tiny_zero_shot import save_zero_shot

    save_zero_shot(kind, tmp_path)
    model = load(kind, tmp_path)
    assert model.spec is not None
    assert (model.spec.spread, model.spec.clips, model.spec.size) == ("even", 1, 32)
    classifier = model.for_classes(CLASSES)
    scores = classifier(CLIPS)
    assert scores.shape == (3, 3)
    assert scores.sum(1) == pytest.approx(1, abs=1e-5)
    assert np.array_equal(classifier(CLIPS[1:2])[0], scores[1])
    assert not np.array_equal(scores[0], scores[1])
    swapped = model.for_classes(CLASSES[::-1])(CLIPS)
    assert swapped[:, ::-1] == pytest.approx(scores, abs=1e-6)  # scores do not depend on the order of the classes
    with pytest.raises(BadValue, match="for_classes"):
        model(CLIPS)


@needs_transformers
def test_clip_scores_equal_the_library_transformers(tmp_path: Path) -> None:
    from helpers.tiny_zero_shot import save_zero_shot

    network = save_zero_shot("clip", tmp_path)
    classifier = load("clip", tmp_path, template="a photo of {}.").for_classes(CLASSES)
    assert classifier.spec is not None
    frames = classifier.spec.prepare(CLIPS[0])[0]
    prompts = [f"a photo of {name}." for name in ("jump rope", "tai chi", "playing piano")]
    texts = classifier.tokenizer(prompts, padding=True, return_tensors="pt")
    texts = {name: texts[name] for name in ("input_ids", "attention_mask")}
    with torch.inference_mode():
        logits = network(pixel_values=frames, **texts).logits_per_image
    assert classifier(CLIPS[:1])[0] == pytest.approx(logits.mean(0).softmax(0).numpy(), abs=1e-5)


@needs_transformers
@pytest.mark.parametrize("kind", ["siglip", "siglip2"])
def test_siglip_texts_are_padded_as_in_training_transformers(kind: str, tmp_path: Path) -> None:
    from helpers.tiny_zero_shot import LENGTH, save_zero_shot

    network = save_zero_shot(kind, tmp_path)
    classifier = load(kind, tmp_path).for_classes(CLASSES)
    prompts = [f"a video of {class_words(name)}." for name in CLASSES]
    texts = classifier.tokenizer(prompts, padding="max_length", max_length=LENGTH, return_tensors="pt")
    inputs = {name: texts[name] for name in ("input_ids", "attention_mask")}
    with torch.inference_mode():
        embedded = network.get_text_features(**inputs).pooler_output
    assert torch.allclose(classifier.network.texts, embedded / embedded.norm(dim=-1, keepdim=True), atol=1e-6)


@needs_transformers
def test_x_clip_scores_equal_the_library_transformers(tmp_path: Path) -> None:
    from helpers.tiny_zero_shot import save_zero_shot

    network = save_zero_shot("xclip", tmp_path)
    classifier = load("xclip", tmp_path).for_classes(CLASSES)
    assert classifier.spec is not None
    assert classifier.spec.frames == 4
    texts = classifier.tokenizer([class_words(name) for name in CLASSES], padding=True, return_tensors="pt")
    texts = {name: texts[name] for name in ("input_ids", "attention_mask")}
    with torch.inference_mode():
        logits = network(pixel_values=classifier.spec.prepare(CLIPS[0]), **texts).logits_per_video
    assert classifier(CLIPS[:1]) == pytest.approx(logits.softmax(1).numpy(), abs=1e-5)


@needs_transformers
@pytest.mark.fault("F177")
def test_F177_x_clip_of_transformers_needs_its_number_of_frames(tmp_path: Path) -> None:
    from helpers.tiny_zero_shot import save_zero_shot

    save_zero_shot("xclip", tmp_path)
    with refused("F177", BadValue, match="clips of 4 frames, not of 8"):
        load("xclip", tmp_path, frames=8)
    with refused("F177", BadValue, match="clips of 4 frames"):
        load("xclip", tmp_path).for_classes(CLASSES)(CLIPS[:, :3])


@needs_transformers
@pytest.mark.fault("F178")
def test_F178_prompts_that_transformers_would_truncate_are_refused(tmp_path: Path) -> None:
    from helpers.tiny_zero_shot import save_zero_shot

    save_zero_shot("clip", tmp_path)
    with refused("F178", BadValue, match="shorter template"):
        load("clip", tmp_path, template="a very long video of somebody who shows {} to us.").for_classes(CLASSES)


@pytest.mark.fault("F178")
@pytest.mark.parametrize("classes", [("run", "12"), ("JumpRope", "jump_rope"), ()])
def test_F178_classes_without_distinct_words_are_refused(classes: tuple[str, ...]) -> None:
    with refused("F178", BadValue, match="needs classes in words"):
        write_prompts("a video of {}.", classes, "zeroshot/clip")


@needs_transformers
def test_templates_are_averaged_transformers(tmp_path: Path) -> None:
    from helpers.tiny_zero_shot import save_zero_shot

    save_zero_shot("clip", tmp_path)
    one, two, both = (
        load("clip", tmp_path, template=text).for_classes(CLASSES) for text in ("{}", "the {}", "{} | the {}")
    )
    assert both.network.prompts[0] == ("jump rope", "the jump rope")
    assert torch.allclose(both.network.texts, (one.network.texts + two.network.texts) / 2)
    save_zero_shot("xclip", tmp_path / "x")
    with pytest.raises(BadValue, match="takes one template"):
        load("xclip", tmp_path / "x", template="{}|the {}")
    for wrong in ("video", "{} {}", "{}|video"):
        with pytest.raises(BadValue, match="a template holds"):
            load("clip", tmp_path, template=wrong)


@needs_transformers
@pytest.mark.parametrize(
    ("kind", "settings"),
    [("clip", {"size": {"shortest_edge": 32}, "crop_size": {"height": 32, "width": 32}}),
     ("siglip", {"size": {"height": 32, "width": 32}}), ("siglip2", {"max_num_patches": 16, "patch_size": 8})],
)  # fmt: skip
def test_preprocessing_equals_the_library_transformers(kind: str, settings: dict[str, object], tmp_path: Path) -> None:
    from helpers.tiny_zero_shot import save_zero_shot

    save_zero_shot(kind, tmp_path, **settings)
    spec = load(kind, tmp_path).spec
    assert spec is not None
    library = importlib.import_module("transformers")
    stem = FAMILIES[kind].network.removesuffix("Model")
    processor = getattr(library, f"{stem}ImageProcessorPil")(**settings)
    frames = CLIPS[0] if kind != "siglip2" else CLIPS[0][:, :, :40]  # square, so that the shape is kept
    expected = processor(list(frames), return_tensors="pt")["pixel_values"]
    pixels = spec.prepare(frames)[0]
    if kind == "siglip2":
        from jostle.models.recognition.zero_shot import _patches

        pixels = _patches(pixels, 8)["pixel_values"]
    assert torch.allclose(pixels, expected, atol=1e-5)


@needs_transformers
def test_folder_of_another_family_is_refused_transformers(tmp_path: Path) -> None:
    from helpers.tiny_zero_shot import save_zero_shot

    save_zero_shot("siglip", tmp_path)
    assert load("siglip2", tmp_path).kind == "siglip"  # fixed-size SigLIP 2 checkpoints are published as "siglip"
    with pytest.raises(CheckpointError, match="holds a 'siglip', not a 'clip'"):
        load("clip", tmp_path)


def test_model_names_resolve_to_weight_sources() -> None:
    source = find_kind("zeroshot/clip-vit-base-patch32").place
    assert source is not None
    assert source.url == "hf:openai/clip-vit-base-patch32"
    assert find_kind("zeroshot/siglip2-base-patch16-224").place.url == "hf:google/siglip2-base-patch16-224"  # type: ignore[union-attr]
    assert find_kind("zeroshot/xclip").place is None
    with pytest.raises(UnknownName, match="zeroshot/clip"):
        find_kind("zeroshot/clop")
    with pytest.raises(BadValue, match="weights are a folder"):
        load_recogniser("zeroshot/clip", weights="random")
    with pytest.raises(BadValue, match="mean nothing"):
        load_recogniser("zeroshot/clip")


@needs_transformers
def test_puppet_benchmark_prompts_use_class_names_transformers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import jostle
    from helpers import tiny_sets
    from helpers.tiny_zero_shot import save_zero_shot

    assert tiny_sets  # importing it registers the dataset
    monkeypatch.setenv("JOSTLE_CACHE", str(tmp_path / "cache"))
    save_zero_shot("clip", tmp_path / "clip")
    run = jostle.run(
        "puppets-p", model="zeroshot/clip", weights=tmp_path / "clip", dataset="few-clips",
        out=tmp_path / "run",        cells=["kinetics-c/contrast:5"], jobs=1, device="cpu",
    )  # fmt: skip
    record = json.loads((tmp_path / "run" / "run.json").read_text())
    assert record["shown"]["network"] == {"template": "a video of {}."}
    assert ["a video of pick up."] in record["shown"]["prompts"]
    assert len(record["shown"]["prompts"]) == 16
    assert [cell["cell"] for cell in run.scores["cells"]] == ["kinetics-c/contrast:5"]
    assert not (tmp_path / "run" / "failures.jsonl").read_text()
