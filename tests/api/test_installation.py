"""Installed packages that cannot be imported are listed with the reason."""

from __future__ import annotations

from pathlib import Path

import pytest

from jostle.api import installation
from jostle.api.installation import Health, import_errors


def test_failing_crashing_and_hanging_imports_are_distinguished(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setattr(installation, "IMPORT_S", 0.5)
    modules = {
        "sound_one": "print('hello')",
        "mismatched": "raise RuntimeError('operator torchvision::nms does not exist\\nand more')",
        "leaves": "raise SystemExit(0)",
        "crashes": "import os; os.abort()",
        "ends": "import os; os._exit(3)",
        "hangs": "import threading; threading.Event().wait()",
        "last": "",
    }
    for name, code in modules.items():
        (tmp_path / f"{name}.py").write_text(code)
    assert import_errors(list(modules)) == {
        "mismatched": "RuntimeError: operator torchvision::nms does not exist",
        "leaves": "SystemExit: 0",
        "crashes": "it ends the process with code -6",
        "ends": "it ends the process with code 3",
        "hangs": "it takes more than 0 s",
    }


def test_report_lists_import_errors() -> None:
    extras = {"torchvision": "0.28.0", "timm": None}
    health = Health({}, {}, extras, {}, {}, {}, (), import_errors={"torchvision": "RuntimeError: no"})
    assert [line.split(None, 1) for line in health.tables()[0].lines()[1:]] == [
        ["torchvision", "0.28.0 DOES NOT IMPORT: RuntimeError: no"],
        ["timm", "not installed (pip install 'jostle[timm]')"],
    ]
    assert health.well
    assert health.to_dict()["import_errors"] == {"torchvision": "RuntimeError: no"}


def test_doctor_names_the_codec_licences(monkeypatch: pytest.MonkeyPatch) -> None:
    licence = installation._builds()["licence of that FFmpeg"]
    assert "libx264 and libx265 in it are GPL version 2 or later (JOSTLE_NO_GPL=1 refuses them)" in licence
    monkeypatch.setenv("JOSTLE_NO_GPL", "1")
    assert "(refused by JOSTLE_NO_GPL)" in installation._builds()["licence of that FFmpeg"]
