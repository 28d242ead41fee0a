"""Video-language models of transformers: tiny, with random weights; most processors need torchvision."""

from __future__ import annotations

import functools
import importlib.util
import json
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from helpers.refusals import refused
from helpers.tiny_language import KINDS, save_tiny, tiny_network
from jostle.errors import BadValue, CheckpointError, DataError, NonFiniteOutput, ResourceError
from jostle.models.language import prefix_cache, vision_cache
from jostle.models.language.interface import Answer, Question
from jostle.models.language.loading import load_question_model
from jostle.models.language.preparation import OWN, LibraryPreparation, PreparedOnce, QwenPreparation
from jostle.models.language.qwen_preparation import QwenFrames, changed_parts
from jostle.models.language.transformers_model import FAMILIES, TransformersModel, letter_tokens

needs_transformers = pytest.mark.skipif(
    importlib.util.find_spec("transformers") is None, reason="transformers is not installed"
)
without_torchvision = pytest.mark.skipif(
    importlib.util.find_spec("torchvision") is not None, reason="torchvision is installed"
)
FRAMES = np.random.default_rng(0).integers(0, 256, (4, 48, 64, 3), np.uint8)
TIMES = np.array([0.6, 2.9, 5.2, 7.4])
QUESTION = Question(FRAMES, TIMES, "What is shown?", ("cat", "dog", "cow"))


def load(folder: Path, name: str = "", **rest: object) -> TransformersModel:
    model = load_question_model(f"{folder}{name}", **rest)  # type: ignore[arg-type]
    assert isinstance(model, TransformersModel)
    return model


def truncated_question(frames: int) -> Question:
    return Question(FRAMES[:frames], TIMES[:frames], QUESTION.text, QUESTION.options)


@pytest.mark.usefixtures("torchvision_processors")
@pytest.mark.parametrize("kind", sorted(FAMILIES))
def test_transformers_families_answer_from_end_to_end_with_torchvision(kind: str, tmp_path: Path) -> None:
    save_tiny(kind, tmp_path)
    model = load(tmp_path, frames=4)
    assert isinstance(model.preparation, LibraryPreparation)
    answers = model.answer([QUESTION, truncated_question(3), truncated_question(1), truncated_question(0), QUESTION])
    for answer in answers:
        assert answer.log_probs is not None
        assert np.exp(answer.log_probs).sum() == pytest.approx(1)
        assert answer.choice == int(np.argmax(answer.log_probs))
    assert answers[0] == answers[4]
    assert len({answer.log_probs for answer in answers}) == 4  # the answers depend on the frames
    other = Question(FRAMES[::-1].copy(), TIMES, QUESTION.text, QUESTION.options)
    assert model.answer([other])[0].log_probs != answers[0].log_probs
    record = json.loads(json.dumps(model.describe()))
    assert record["family"] == kind
    assert record["example"]["tokens"] > 40
    assert "Q?\nA. one" in record["example"]["prompt"]
    assert record["preparation"]["video_processor"]["do_sample_frames"] is False
    assert record["precision"] == "float32"
    model.answers = "text"
    (text_answer,) = model.answer([QUESTION])
    assert text_answer.log_probs is None
    assert isinstance(text_answer.text, str)


@pytest.mark.usefixtures("torchvision_processors")
@pytest.mark.parametrize("at_once", [1, 3])
@pytest.mark.parametrize("kind", sorted(FAMILIES))
def test_vision_features_of_unchanged_frames_are_reused_by_transformers_with_torchvision(
    kind: str, at_once: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vision_cache, "_pictures_at_once", lambda *_: at_once)
    save_tiny(kind, tmp_path)
    changed = FRAMES.copy()
    changed[2] = 0
    questions = [QUESTION, Question(changed, TIMES, QUESTION.text, QUESTION.options), QUESTION]
    model = load(tmp_path, frames=4)
    answers = model.answer(questions)
    assert model._vision is not None
    frames_per_image = {"qwen2_vl": 2, "qwen2_5_vl": 2, "qwen3_vl": 2}.get(kind, 1)  # frames per image
    assert (model._vision.computed, model._vision.reused) == (
        4 // frames_per_image + 1,
        2 * (4 // frames_per_image) - 1,
    )
    uncached = [load(tmp_path, frames=4).answer([question])[0] for question in questions[:2]]
    assert answers[:2] == uncached  # to the bit
    assert answers[2] == answers[0]
    monkeypatch.setattr("jostle.models.language.transformers_model.attach_vision_cache", lambda *_: None)
    for answer, uncached_answer in zip(answers, load(tmp_path, frames=4).answer(questions), strict=True):
        assert answer.log_probs == pytest.approx(uncached_answer.log_probs, abs=1e-5)


@needs_transformers
@without_torchvision
@pytest.mark.parametrize("grid", [(4, 6), (6, 4)])
def test_tower_of_transformers_equals_itself_with_places_that_are_known(grid: tuple[int, int]) -> None:
    tower = tiny_network("qwen2_vl")[0].model.visual
    grids = torch.tensor([[1, *grid]] * 3)
    pixels = torch.randn(3 * grid[0] * grid[1], 3 * 2 * 14 * 14, generator=torch.Generator().manual_seed(0))
    places = vision_cache._places_of(tower, {"grid_thw": grids})
    with torch.inference_mode():
        expected, output = tower(pixels, grids), tower(pixels, grids, **places)
        turned = tower(pixels, grids[:, [0, 2, 1]])
    assert torch.equal(output.pooler_output, expected.pooler_output)
    assert not torch.equal(turned.pooler_output, expected.pooler_output)


@pytest.mark.usefixtures("torchvision_processors")
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@pytest.mark.parametrize("kind", vision_cache.REPLAYED)
def test_towers_replayed_on_a_gpu_equal_eager_ones_with_torchvision(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save_tiny(kind, tmp_path)
    questions = [Question(np.roll(FRAMES, i, 1), TIMES, QUESTION.text, QUESTION.options) for i in range(6)]
    replayed = load(tmp_path, frames=4, device="cuda")
    answers = replayed.answer(questions)
    assert replayed._vision is not None
    assert replayed._vision._replays is not None
    assert len(replayed._vision._replays._graphs) == 1
    monkeypatch.setattr(vision_cache, "BATCH_VALUES", vision_cache.REPLAYED_VALUES)
    monkeypatch.setattr(vision_cache, "REPLAYED", ())
    monkeypatch.setattr("jostle.models.language.transformers_model.pool_in_channels_last", lambda _: None)
    assert load(tmp_path, frames=4, device="cuda").answer(questions) == answers


@pytest.mark.usefixtures("torchvision_processors")
@pytest.mark.parametrize("kind", sorted(FAMILIES))
def test_tokens_before_a_difference_are_read_once_by_transformers_with_torchvision(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prefix_cache, "CPU_TOKENS", 4)
    save_tiny(kind, tmp_path)
    changed = FRAMES.copy()
    changed[3] = 0
    corrupted = Question(changed, TIMES, QUESTION.text, QUESTION.options)
    other = Question(FRAMES, TIMES, "Who is there?", ("cat", "dog"))
    questions = [QUESTION, corrupted, other, QUESTION]
    model = load(tmp_path, frames=4)
    assert model._prefixes is not None
    answers, counts = [], []
    for question in questions:
        answers += model.answer([question])
        counts.append((model._prefixes.computed, model._prefixes.reused))
    first = counts[0][0]
    assert first > 3
    assert counts[0][1] == 0
    assert 0 < counts[1][1] < first  # up to the last frame or pair of frames
    assert counts[2][1] > 2 * counts[1][1]  # all frames
    assert counts[3] == (counts[2][0], counts[2][1] + first)
    for question, answer in zip(questions[:3], answers, strict=False):
        assert load(tmp_path, frames=4).answer([question])[0] == answer  # to the bit
    assert answers[3] == answers[0]
    monkeypatch.setattr("jostle.models.language.transformers_model.attach_prefix_cache", lambda *_: None)
    for answer, whole in zip(answers, load(tmp_path, frames=4).answer(questions), strict=True):
        assert answer.log_probs == pytest.approx(whole.log_probs, abs=1e-5)


@pytest.mark.usefixtures("torchvision_processors")
@pytest.mark.parametrize("kind", ["qwen3_vl", "llava_onevision"])
def test_frames_of_several_questions_are_prepared_once_by_transformers_with_torchvision(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save_tiny(kind, tmp_path)
    model = load(tmp_path, frames=4)
    processor_class = type(model.preparation.processor.video_processor._processor)  # type: ignore[attr-defined]
    original, calls = processor_class._preprocess, []
    monkeypatch.setattr(
        processor_class, "_preprocess", lambda *args, **rest: calls.append(1) or original(*args, **rest)
    )
    other = Question(FRAMES, TIMES, "Who is there?", ("cat", "dog"))
    answers = model.answer([QUESTION, other])
    assert len(calls) == 1
    assert answers[1] == load(tmp_path, frames=4).answer([other])[0]
    moved = Question(FRAMES, TIMES + 1, "Who is there?", ("cat", "dog"))
    before = len(calls)
    model.answer([moved])
    assert len(calls) == before + 1


@pytest.mark.usefixtures("torchvision_processors")
@pytest.mark.parametrize("count", [4, 5])
@pytest.mark.parametrize("kind", sorted(FAMILIES))
def test_only_changed_frames_are_prepared_again_by_transformers_with_torchvision(
    kind: str, count: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save_tiny(kind, tmp_path)
    updated, update = [], PreparedOnce._update
    monkeypatch.setattr(PreparedOnce, "_update", lambda *args: updated.append(update(*args)) or updated[-1])
    frames = np.random.default_rng(1).integers(0, 256, (count, 48, 64, 3), np.uint8)
    changed = frames.copy()
    changed[[1, count - 1]] = 9
    times = np.arange(count) + 0.5
    known, fresh = load(tmp_path, frames=count).preparation, load(tmp_path, frames=count).preparation
    questions = [Question(some, times.copy(), "What?", ("cat", "dog")) for some in (frames, changed, changed.copy())]
    for question in questions:
        inputs, expected = known.inputs(question), fresh.inputs(question)
        assert inputs.keys() == expected.keys()
        for name, value in inputs.items():
            assert torch.equal(value, expected[name]), name
        fresh.processor.video_processor._last = None  # type: ignore[attr-defined]
    # SmolVLM marks pixels that are no picture, and VideoLLaMA 3 what does not change.
    assert [one is not None for one in updated] == ([] if kind in ("smolvlm", "video_llama_3") else [True, True])


@pytest.mark.usefixtures("torchvision_processors")
@pytest.mark.parametrize(
    ("kind", "time_text"),
    [("qwen3_vl", "<1.8 seconds>"), ("video_llama_3", "Time 5.2s:"), ("smolvlm", "Frame from 00:07:")],
)
def test_transformers_prompt_has_the_true_frame_times_with_torchvision(
    kind: str, time_text: str, tmp_path: Path
) -> None:
    save_tiny(kind, tmp_path)
    model = load(tmp_path)
    assert time_text in model.preparation.tokenizer.decode(model.preparation.inputs(QUESTION)["input_ids"][0])


@pytest.mark.usefixtures("torchvision_processors")
@pytest.mark.parametrize("kind", OWN)
@pytest.mark.parametrize("shape", [(4, 48, 64), (3, 90, 37), (1, 20, 200), (6, 240, 320)])
def test_own_preparation_equals_that_of_transformers_with_torchvision(
    kind: str, shape: tuple[int, int, int], tmp_path: Path
) -> None:
    save_tiny(kind, tmp_path)
    model = load(tmp_path)
    frames = np.random.default_rng(1).integers(0, 256, (*shape, 3), np.uint8)
    question = Question(frames, np.arange(len(frames)) * 2.5 + 1.25, QUESTION.text, QUESTION.options)
    expected = model.preparation.inputs(question)
    tokenizer, template = model.preparation.tokenizer, model.preparation.processor.chat_template  # type: ignore[attr-defined]
    settings = QwenFrames.read(tmp_path)
    own = QwenPreparation(tokenizer, template, settings, "<|video_pad|>", timed=kind == "qwen2_5_vl").inputs(question)
    assert own.keys() == expected.keys()
    for name, value in expected.items():
        assert torch.equal(own[name], value), name
    blind_question = truncated_question(0)
    for name, value in model.preparation.inputs(blind_question).items():
        assert torch.equal(
            QwenPreparation(tokenizer, template, settings, "<|video_pad|>", True).inputs(blind_question)[name], value
        )


@pytest.mark.usefixtures("torchvision_processors")
def test_pixel_limits_equal_those_of_transformers_with_torchvision() -> None:
    library = importlib.import_module("transformers")
    ours, theirs = QwenFrames(), library.Qwen2VLVideoProcessor()
    for shape in ((2, 360, 640), (3, 1080, 1920), (2, 64, 48), (1500, 72, 128)):
        frames = torch.zeros((shape[0], 3, *shape[1:]), dtype=torch.uint8)
        grid = theirs([frames[:2]], cap_pixels_per_frame=True, return_tensors="pt")["video_grid_thw"][0].tolist()
        assert [n // 14 for n in ours.resized_to(*shape[1:], count=2)] == grid[1:]


@pytest.mark.usefixtures("torchvision_processors")
@pytest.mark.fault("F173")
def test_F173_transformers_that_resample_frames_raise_with_torchvision(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save_tiny("qwen3_vl", tmp_path)
    model = load(tmp_path)
    longer_question = Question(np.repeat(FRAMES, 2, 0), np.arange(8.0), QUESTION.text, QUESTION.options)
    model.answer([longer_question])
    # The default settings and the default frame rate of the library.
    monkeypatch.setattr(LibraryPreparation, "_settings", lambda self: {"do_sample_frames": True})
    monkeypatch.setattr("jostle.models.language.preparation.video_metadata", lambda times: {"total_num_frames": 8})
    with refused("F173", DataError, match="4 of 8 frames"):
        model.answer([longer_question])


@needs_transformers
@without_torchvision
@pytest.mark.parametrize("kind", OWN)
def test_transformers_answer_without_torchvision(kind: str, tmp_path: Path) -> None:
    save_tiny(kind, tmp_path, processor=False)
    model = load(tmp_path, frames=4)
    assert isinstance(model.preparation, QwenPreparation)
    answers = model.answer([QUESTION, truncated_question(1), truncated_question(0), QUESTION])
    assert answers[0] == answers[3]
    assert len({answer.log_probs for answer in answers}) == 3
    assert json.loads(json.dumps(model.describe()))["preparation"]["processor"] == "jostle"


@needs_transformers
@without_torchvision
@pytest.mark.parametrize("kind", ["qwen3_vl", "llava_onevision"])
def test_transformers_families_without_torchvision_raise(kind: str, tmp_path: Path) -> None:
    save_tiny(kind, tmp_path, processor=False)
    with pytest.raises(ResourceError, match="pip install torchvision"):
        load(tmp_path)


@pytest.mark.parametrize("count", [1, 4, 5])
@pytest.mark.parametrize("changed", [(), (0,), (2, 3), (4,)])
def test_preparing_only_changed_frames_is_bit_exact(count: int, changed: tuple[int, ...]) -> None:
    settings = QwenFrames(shortest_edge=28 * 28, longest_edge=28 * 28 * 16)
    before = np.random.default_rng(3).integers(0, 256, (count, 90, 61, 3), np.uint8)
    frames = before.copy()
    frames[[i for i in changed if i < count]] = 7
    preparation = QwenPreparation(None, "", settings, "", timed=False)
    for video in (before, frames):
        patches, grid = preparation._prepare(video, torch.device("cpu"), torch.float32)
        expected_patches, expected_grid = settings.prepare(video)
        assert torch.equal(patches, expected_patches)
        assert torch.equal(grid, expected_grid)
    assert changed_parts(frames, before, 2) == sorted({i // 2 for i in changed if i < count})


@pytest.fixture
def tiny(tmp_path: Path) -> TransformersModel:
    """Tiny Qwen2.5-VL model with the own preparation, which needs no torchvision."""
    pytest.importorskip("transformers")
    from jostle.models.language.preparation import _own_preparation
    from jostle.models.transformers_folder import pretrained

    save_tiny("qwen2_5_vl", tmp_path, processor=False)
    network = pretrained(tmp_path, "tiny", "AutoModelForImageTextToText", "head", dtype=torch.float32).eval()
    return TransformersModel("tiny", "qwen2_5_vl", network, _own_preparation(tmp_path, "qwen2_5_vl"), 4)


def test_scores_are_those_of_the_first_generated_token_transformers(tiny: TransformersModel) -> None:
    with torch.inference_mode():
        inputs = tiny._inputs(QUESTION)
        logits = tiny.network.generate(
            **inputs, max_new_tokens=1, do_sample=False, output_logits=True, return_dict_in_generate=True
        ).logits[0][0]
    ids = [tiny.preparation.tokenizer.convert_tokens_to_ids(letter) for letter in "ABC"]
    (answer,) = tiny.answer([QUESTION])
    assert answer.log_probs == pytest.approx(logits[ids].log_softmax(0).tolist(), abs=1e-5)


@pytest.fixture
def small_pieces(tiny: TransformersModel) -> prefix_cache.PrefixCache:
    """The prefix cache of `tiny`, with pieces of 16 tokens."""
    assert tiny._prefixes is not None
    tiny._prefixes._tokens = 16
    return tiny._prefixes


def test_memory_for_prefixes_of_transformers_is_bounded(
    tiny: TransformersModel, small_pieces: prefix_cache.PrefixCache
) -> None:
    questions = [Question(np.roll(FRAMES, i, 1), TIMES, QUESTION.text, QUESTION.options) for i in range(4)]
    expected = tiny.answer(questions)
    assert sum(known.nbytes for known in small_pieces._known.values()) == small_pieces._bytes
    each = small_pieces._bytes // len(small_pieces._known)
    small_pieces._kept_bytes = 3 * each
    assert tiny.answer(questions + questions) == expected + expected
    assert small_pieces._bytes <= 3 * each
    assert sum(known.nbytes for known in small_pieces._known.values()) == small_pieces._bytes
    # What is left is the beginning of the last prompt, which can be found.
    before = small_pieces.reused
    assert tiny.answer(questions[3:]) == expected[3:]
    assert small_pieces.reused == before + len(small_pieces._known)


@pytest.mark.fault("F192")
def test_F192_threads_that_share_a_model_of_transformers_get_their_own_answers(
    tiny: TransformersModel, small_pieces: prefix_cache.PrefixCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a GPU several threads serve a model; its preparation and caches remember the question before."""
    questions = [Question(np.roll(FRAMES, i, 1), TIMES, QUESTION.text, QUESTION.options) for i in range(12)]

    def answer_all(threads: int) -> list[list[Answer]]:
        # One thread for each operation: MKL takes fewer where others compute, and the last digits change.
        with ThreadPoolExecutor(threads, initializer=torch.set_num_threads, initargs=(1,)) as pool:
            return list(pool.map(lambda question: tiny.answer([question]), questions))

    expected = answer_all(1)
    at_once = {"prepared": [0, 0], "computed": [0, 0]}  # now, and at most

    def count(name: str, method: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(method)  # with its signature, which says what the network takes
        def counted(*args: Any, **arguments: Any) -> Any:
            at_once[name][0] += 1
            at_once[name][1] = max(at_once[name])
            time.sleep(0.002)
            result = method(*args, **arguments)
            at_once[name][0] -= 1
            return result

        return counted

    monkeypatch.setattr(tiny.preparation, "inputs", count("prepared", tiny.preparation.inputs))
    monkeypatch.setattr(tiny.network, "forward", count("computed", tiny.network.forward))
    assert answer_all(3) == expected
    assert at_once == {"prepared": [0, 1], "computed": [0, 1]}


def test_equal_checksums_of_other_tokens_reuse_nothing_of_transformers(
    tiny: TransformersModel, small_pieces: prefix_cache.PrefixCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prefix_cache, "checksum", lambda values: torch.zeros(()))
    turned = Question(FRAMES[::-1].copy(), TIMES, QUESTION.text, QUESTION.options)
    answers = tiny.answer([QUESTION, turned, QUESTION])
    monkeypatch.undo()
    small_pieces._known.clear()
    assert tiny.answer([QUESTION]) == answers[:1] == answers[2:]
    small_pieces._known.clear()
    assert tiny.answer([turned]) == answers[1:2] != answers[:1]


def test_generated_text_of_transformers_does_not_depend_on_prefixes(
    tiny: TransformersModel, small_pieces: prefix_cache.PrefixCache
) -> None:
    tiny.answers = "text"
    texts = tiny.answer([QUESTION, QUESTION])
    assert small_pieces.reused > 0
    small_pieces._tokens = 10**6
    assert tiny.answer([QUESTION]) == texts[:1] == texts[1:]


def test_layers_that_see_part_of_the_tokens_keep_no_prefixes_of_transformers(tiny: TransformersModel) -> None:
    tiny.network.model.language_model.config.layer_types = ["full_attention", "sliding_attention"]
    assert prefix_cache.attach_prefix_cache(tiny.network) is None


@pytest.mark.fault("F175")
def test_F175_transformers_inputs_without_token_types_are_refused(
    tiny: TransformersModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    inputs = tiny.preparation.inputs(QUESTION)
    bare = {name: value for name, value in inputs.items() if name != "mm_token_type_ids"}
    with torch.inference_mode():
        right, wrong = tiny.network(**inputs).logits[0, -1], tiny.network(**bare).logits[0, -1]
    assert not torch.allclose(right, wrong, atol=1e-5)  # the library raises no error
    monkeypatch.setattr(tiny.preparation, "inputs", lambda *_: bare)
    with refused("F175", DataError):
        tiny.answer([QUESTION])


@pytest.mark.fault("F174")
@pytest.mark.parametrize("text", ["Is <|video_pad|> shown?", "<|im_end|>"])
def test_F174_transformers_questions_with_placeholder_tokens_are_refused(tiny: TransformersModel, text: str) -> None:
    for question in (Question(FRAMES, TIMES, text, ("a", "b")), Question(FRAMES, TIMES, "Which?", ("a", text))):
        with refused("F174", DataError, match="stands for something else"):
            tiny.answer([question])


@pytest.mark.fault("F176")
def test_F176_transformers_inputs_beyond_the_position_limit_are_refused(tiny: TransformersModel) -> None:
    tiny.network.config.text_config.max_position_embeddings = 50
    with refused("F176", DataError, match="show fewer frames"):
        tiny.answer([QUESTION])


@pytest.mark.fault("F172")
def test_F172_letter_without_a_token_is_refused_transformers(tiny: TransformersModel) -> None:
    assert all(len(ids) == 1 for ids in letter_tokens(tiny.preparation.tokenizer).values())
    tiny._letters["B"] = []
    with refused("F172", BadValue, match="no token for B"):
        tiny.answer([QUESTION])
    tiny.answers = "text"
    assert tiny.answer([QUESTION])[0].log_probs is None


def test_token_probabilities_of_one_letter_are_summed_transformers(tiny: TransformersModel) -> None:
    (before,) = tiny.answer([QUESTION])
    tiny._letters["A"] *= 2
    (after,) = tiny.answer([QUESTION])
    assert before.log_probs is not None
    assert after.log_probs is not None
    assert after.log_probs[0] - after.log_probs[1] == pytest.approx(
        before.log_probs[0] - before.log_probs[1] + np.log(2), abs=1e-5
    )


@pytest.mark.fault("F121")
def test_nan_output_of_transformers_raises(tiny: TransformersModel) -> None:
    with torch.no_grad():
        tiny.network.lm_head.weight[7] = torch.nan
    with refused("F121", NonFiniteOutput):
        tiny.answer([QUESTION])


@needs_transformers
@without_torchvision
@pytest.mark.fault("F120")
def test_nan_weights_of_transformers_are_refused(tmp_path: Path) -> None:
    from safetensors.torch import load_file, save_file

    save_tiny("qwen2_vl", tmp_path, processor=False)
    tensors = load_file(tmp_path / "model.safetensors")
    tensors["lm_head.weight"][0, 0] = torch.inf
    save_file(tensors, tmp_path / "model.safetensors", metadata={"format": "pt"})
    with refused("F120", CheckpointError, match=r"lm_head\.weight"):
        load(tmp_path)


@needs_transformers
@without_torchvision
def test_half_precision_keeps_times_and_rotary_embeddings_of_transformers_in_float32(tmp_path: Path) -> None:
    save_tiny("qwen2_5_vl", tmp_path, processor=False)
    model = load(tmp_path, precision="bfloat16")
    inputs = model._inputs(QUESTION)
    assert (inputs["pixel_values_videos"].dtype, inputs["second_per_grid_ts"].dtype) == (torch.bfloat16, torch.float32)
    dtypes = [buffer.dtype for name, buffer in model.network.named_buffers() if "inv_freq" in name]
    assert set(dtypes) == {torch.float32}
    assert model.describe()["precision"] == "bfloat16"
    with pytest.raises(BadValue, match="tf32"):
        load(tmp_path, precision="tf32")


@pytest.mark.parametrize(
    ("text", "kind", "message"),
    [('{"model_type": "llama"}', CheckpointError, "openai:URL#MODEL"), ("{", CheckpointError, "not JSON")],
)
def test_unsupported_folder_is_refused(text: str, kind: type[Exception], message: str, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(text)
    with pytest.raises(kind, match=message):
        load(tmp_path)
    with pytest.raises(BadValue, match="no setting 'answer'"):
        load(tmp_path, "?answer=text")


def test_every_family_has_a_tiny_model() -> None:
    assert set(KINDS) == set(FAMILIES)
