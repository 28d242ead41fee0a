"""Exports of `jostle`, the public Python API, and the module that defines each."""

from jostle.api.benchmarks import build as build
from jostle.api.benchmarks import compare_probes as compare_probes
from jostle.api.benchmarks import probe as probe
from jostle.api.benchmarks import run as run
from jostle.api.catalogue import load_dataset as load_dataset
from jostle.api.catalogue import names as names
from jostle.api.catalogue import published as published
from jostle.api.export import export as export
from jostle.api.models import detect as detect
from jostle.api.models import extract as extract
from jostle.api.models import train as train
from jostle.api.results import board as board
from jostle.api.results import check as check
from jostle.api.results import diff as diff
from jostle.api.results import export_run as export_run
from jostle.api.results import report as report
from jostle.api.results import view as view
from jostle.api.scoring import compare as compare
from jostle.api.scoring import convert as convert
from jostle.api.scoring import diagnose as diagnose
from jostle.api.scoring import load_predictions as load_predictions
from jostle.api.scoring import load_truth as load_truth
from jostle.api.scoring import pm_k as pm_k
from jostle.api.scoring import robustness as robustness
from jostle.api.scoring import score as score
from jostle.api.video import corrupt as corrupt
from jostle.api.video import corrupt_file as corrupt_file
from jostle.api.video import corrupt_frame as corrupt_frame
from jostle.api.video import inspect as inspect
from jostle.api.video import mend as mend
from jostle.api.video import mend_file as mend_file
from jostle.api.video import read as read
from jostle.api.video import sheet as sheet
from jostle.core.types import Clip as Clip
from jostle.core.types import Predictions as Predictions
from jostle.core.types import Segments as Segments
from jostle.core.types import Truth as Truth
from jostle.errors import JostleError as JostleError
from jostle.mending.loading import load_inspector as load_inspector
from jostle.mending.watcher import Watcher as Watcher
from jostle.metrics.streaming import TemporalMeanAP as TemporalMeanAP
from jostle.models.loading.extractor import load_extractor as load_extractor
from jostle.models.loading.models import load_detector as load_detector
from jostle.models.loading.models import load_recogniser as load_recogniser

__version__: str
