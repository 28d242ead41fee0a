"""Extractors adapted to the windows of a video: extracted features are those of the adapted network."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from helpers.numpy_extractor import TwoParts
from helpers.small_adaptation import SPEC, small_network, tensors
from helpers.small_run import RECIPE, TRUTH, Leaning, write_videos
from jostle.datasets.dataset import Dataset
from jostle.errors import BadValue
from jostle.evaluation.inference.benchmark_model import BenchmarkModel
from jostle.evaluation.inference.detection import FeatureDetectionPredictor
from jostle.evaluation.recipes.selection import select_cells
from jostle.evaluation.runner.runner import run_benchmark
from jostle.evaluation.runner.source_statistics import CleanVideos
from jostle.evaluation.runner.treatments import add_adaptation
from jostle.models.adaptation.adapted_models import AdaptedExtractor
from jostle.models.adaptation.method import AdaptationOptions
from jostle.models.extractors.extractor import Extractor, as_extractor
from jostle.models.loading.extractors import load_extractor
from jostle.models.recognition.recogniser import Recogniser


@pytest.fixture(scope="module")
def extractor() -> Extractor:
    loaded = load_extractor("puppet_net")
    assert isinstance(loaded, Extractor)
    return loaded


def test_features_are_those_of_the_adapted_network(extractor: Extractor) -> None:
    windows = np.random.default_rng(0).integers(0, 256, (3, 16, 40, 48, 3)).astype(np.uint8)
    before, plain = tensors(extractor.network), extractor(windows)
    adapted = AdaptedExtractor(extractor, AdaptationOptions("bn"))
    with adapted.adapter.state(None):
        blended = adapted.adapter.adapt(adapted.prepare(windows), 48).numpy()
        features = extractor(windows)  # the default path folds the statistics into the weights
    np.testing.assert_allclose(features, blended, rtol=1e-3, atol=1e-3)
    assert np.abs(features - plain).max() > 0.1
    assert np.array_equal(extractor(windows), plain)
    assert all(torch.equal(value, before[name]) for name, value in extractor.network.state_dict().items())


@pytest.mark.parametrize("method", ["bn", "vitta"])
def test_detection_run_adapts_the_extractor(tmp_path: Path, method: str) -> None:
    """The extractor processes whole windows: a recogniser without its last layer."""
    extractor = as_extractor(Recogniser(small_network(3), SPEC, head="8", name="small"))
    videos, before = write_videos(tmp_path), tensors(extractor.network)
    plain = BenchmarkModel(partial(FeatureDetectionPredictor, extractor, Leaning()), model="leaning", extractor="small")
    clean = CleanVideos("clean", lambda: videos)
    options = AdaptationOptions(method, "online", {"lr": 1e-3} if method == "vitta" else {})
    data = Dataset("folder", "test", Path("data"), (TRUTH,), videos)
    cells = select_cells(RECIPE, ["thumos14-c/black_frame:1"])
    for name, model in {"plain": plain, "adapted": add_adaptation(plain, options, clean_videos=clean)}.items():
        run = run_benchmark(RECIPE, data, model, tmp_path / name, cells=cells)
    assert run.adaptation is not None
    assert run.adaptation.plain == 8
    assert run.adaptation.backward == (8 if method == "vitta" else 0)
    files = [(tmp_path / name / "predictions" / "clean.json").read_bytes() for name in ("plain", "adapted")]
    assert files[0] != files[1]
    assert all(torch.equal(value, before[name]) for name, value in extractor.network.state_dict().items())


def test_unsupported_models_are_refused(extractor: Extractor) -> None:
    with pytest.raises(BadValue, match="tent needs class scores, and puppet_net computes features; take bn or vitta"):
        AdaptedExtractor(extractor, AdaptationOptions("tent"))
    with pytest.raises(BadValue, match="layers of a torch network, and the extractor is a TwoParts"):
        AdaptedExtractor(TwoParts(8, 2), AdaptationOptions("bn"))
    with pytest.raises(BadValue, match="this detector processes frames itself"):
        add_adaptation(BenchmarkModel(lambda: lambda job: job, model="frames"), AdaptationOptions("bn"))
