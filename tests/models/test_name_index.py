"""Names of networks are read off their modules: those of the registries, and of a file that is put beside them."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import jostle
from jostle.models.detection.detector import detectors
from jostle.models.extractors.extractor import extractors
from jostle.models.loading.name_index import own_names
from jostle.models.objects.object_detector import object_detectors
from jostle.models.recognition.recogniser import recognisers

REGISTRIES = (detectors, extractors, recognisers, object_detectors)


@pytest.mark.parametrize("registry", REGISTRIES, ids=lambda registry: registry.plural)
def test_names_in_the_source_are_those_of_the_registry(registry: object) -> None:
    assert own_names()[registry.plural] == [name for name in registry if registry.part(name) is None]


def test_a_detector_that_is_put_beside_the_others_can_be_run(tmp_path: Path) -> None:
    package = Path(jostle.__file__).parent
    copy = shutil.copytree(package, tmp_path / "jostle", ignore=shutil.ignore_patterns("__pycache__", "*.safetensors"))
    (copy / "models" / "detection" / "bare.py").write_text(
        "from jostle.models.detection.detector import detector\n"
        "from jostle.models.detection.temporalmaxer import TemporalMaxer, TemporalMaxerConfig\n\n\n"
        "@detector(TemporalMaxer)\n"
        "def bare() -> TemporalMaxerConfig:\n"
        '    """Networks are found where they are put."""\n'
        "    return TemporalMaxerConfig(input_dim=8, classes=2)\n"
    )
    code = (
        "import jostle, sys; assert 'bare' in jostle.names('detectors')\n"
        "try: jostle.run('puppets-c', model='bare', weights='none.safetensors', out='out')\n"
        "except jostle.JostleError as error: print(jostle.__file__, error)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert str(copy) in done.stdout
    assert "none.safetensors: no such file" in done.stdout
