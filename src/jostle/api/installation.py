"""A look at what is installed and working, and a self-test of the promises everything else rests on."""

from __future__ import annotations

import ctypes
import importlib.metadata
import os
import platform
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from jostle.core.plugins import Plugin
from jostle.core.plugins import list_plugins as examine_plugins
from jostle.core.results import Result, plain
from jostle.core.tables import Column, Table
from jostle.core.types.clip import Clip
from jostle.corruptions.engine.apply import corrupted_frames
from jostle.corruptions.engine.corruption import corruptions
from jostle.corruptions.engine.spec import Spec, profiles
from jostle.errors import JostleError

CORE = ("numpy", "opencv-python-headless", "numba", "av", "typer", "rich")
OPTIONAL = {
    "jostle-puppets": "puppets",
    "torch": "torch",
    "torchvision": "torchvision",
    "timm": "timm",
    "transformers": "hf",
    "onnxruntime": "onnx",
    "matplotlib": "report",
    "jinja2": "report",
    "fastapi": "view",
    "ray": "ray",
}
# Packages with native code that may be installed and not load, as torchvision beside another build of torch.
IMPORTED = ("torch", "torchvision", "timm", "transformers", "onnxruntime", "ray")
IMPORT_S = 60.0  # after which an import counts as hung
_MARK = "jostle imported "
# Imports packages, and prints a line for each: what native code and the packages themselves print is told apart.
_IMPORTS = f"""
import importlib, sys
for name in sys.argv[1:]:
    try:
        importlib.import_module(name)
        why = ""
    except BaseException as error:
        why = type(error).__name__ + ": " + (str(error).strip().splitlines() or [""])[0][:200]
    print("\\n{_MARK}" + name + " " + why, flush=True)
"""
NEEDED_ENCODERS = ("libx264", "libx265", "ffv1", "mpeg1video", "mpeg2video", "mpeg4")


@dataclass(frozen=True)
class InstallationCheck:
    """One promise and whether it holds here."""

    name: str
    passed: bool
    detail: str


@dataclass(frozen=True)
class Health(Result):
    """Report of `jostle doctor`."""

    versions: dict[str, str]
    packages: dict[str, str | None]
    extras: dict[str, str | None]
    builds: dict[str, str]
    encoders: dict[str, bool]
    devices: dict[str, str]
    checks: tuple[InstallationCheck, ...]
    plugins: tuple[Plugin, ...] = ()
    import_errors: dict[str, str] = field(default_factory=dict)

    @property
    def well(self) -> bool:
        """Whether every check passed and every core package is installed."""
        return all(check.passed for check in self.checks) and None not in self.packages.values()

    def tables(self) -> tuple[Table, ...]:
        """Return what is installed, the plugins, and the checks."""
        parts = [*self.versions.items()]
        parts += [(name, version or "MISSING: pip install jostle") for name, version in self.packages.items()]
        for name, version in self.extras.items():
            hint = f"not installed (pip install 'jostle[{OPTIONAL[name]}]')"
            fails = f" DOES NOT IMPORT: {self.import_errors[name]}" if name in self.import_errors else ""
            parts.append((name, f"{version or hint}{fails}"))
        parts += self.builds.items()
        parts += [(f"encoder {name}", "yes" if there else "no") for name, there in self.encoders.items()]
        parts += self.devices.items()
        for plugin in self.plugins:
            names = ", ".join(part.name for part in plugin.parts) or "no parts"
            parts.append((f"plugin {plugin.name}", f"FAILS: {plugin.failure}" if plugin.failure else names))
        checks = [("ok" if one.passed else "FAIL", one.name, one.detail) for one in self.checks]
        return (
            Table("", (Column("part"), Column("version")), tuple(parts)),
            Table("", (Column(""), Column("check"), Column("detail")), tuple(checks)),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the report as plain values for JSON."""
        plugins = [
            {
                "name": plugin.name,
                "modules": list(plugin.modules),
                "parts": [f"{part.registry}/{part.name}" for part in plugin.parts],
                "failure": plugin.failure or None,
            }
            for plugin in self.plugins
        ]
        return {"format": 1, "well": self.well, **plain(vars(self) | {"plugins": plugins})}


def examine() -> Health:
    """Look at this machine and test it."""
    encoders = _encoders()
    plugins = tuple(examine_plugins())
    extras = {name: _version(name) or _version(f"{name}-gpu") for name in OPTIONAL}
    return Health(
        versions={
            "jostle": _version("jostle") or "not installed",
            "python": platform.python_version(),
            "machine": platform.machine(),
        },
        packages={name: _version(name) for name in CORE},
        extras=extras,
        builds=_builds(),
        encoders=encoders,
        devices=_devices(),
        checks=(
            _check("encoders", lambda: _complete(encoders)),
            _check("severity 0 equals clean", _severity_zero),
            _check("same seed, same bytes", _repeatable),
            _check("a lossless file returns every pixel", _round_trip),
        ),
        plugins=plugins,
        import_errors=import_errors([name for name in IMPORTED if extras[name] is not None]),
    )


def import_errors(names: Sequence[str]) -> dict[str, str]:
    """Import packages in another process, which may crash or hang, and return why each fails that does."""
    errors, left = {}, list(names)
    while left:
        command = [sys.executable, "-c", _IMPORTS, *left]
        with subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        ) as process:
            try:
                output, _ = process.communicate(timeout=IMPORT_S)
                ending = f"it ends the process with code {process.returncode}"
            except subprocess.TimeoutExpired:
                process.kill()
                output, _ = process.communicate()
                ending = f"it takes more than {IMPORT_S:.0f} s"
        lines = [line for line in output.decode(errors="replace").splitlines() if line.startswith(_MARK)]
        for line in lines:
            name, _, why = line.removeprefix(_MARK).partition(" ")
            left.remove(name)
            if why:
                errors[name] = why
        if left and process.returncode:  # it did not come to the end: by the first that it says nothing of
            errors[left.pop(0)] = ending
    return errors


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _builds() -> dict[str, str]:
    import cv2

    builds = {}
    found = [line.strip() for line in cv2.getBuildInformation().splitlines() if "avcodec:" in line]
    builds["FFmpeg in OpenCV"] = found[0].split(":", 1)[1].strip() if found else "none"
    if _version("av"):
        import av

        builds["FFmpeg in PyAV"] = ", ".join(
            f"{name} {'.'.join(map(str, number))}" for name, number in sorted(av.library_versions.items())
        )
        builds["licence of that FFmpeg"] = _ffmpeg_licence(av.__file__)
    return builds


def _ffmpeg_licence(package: str) -> str:
    """Return the licence that FFmpeg was built under, and that of the GPL encoders beside it."""
    from jostle.core.environment import refuses_gpl
    from jostle.io.video.encoders import GPL, encoders

    licence = "not known"
    for library in sorted(Path(package).parent.parent.glob("av.libs/libavcodec*")):  # as wheels have it
        try:
            function = ctypes.CDLL(str(library)).avcodec_license
        except (OSError, AttributeError):
            continue
        function.restype = ctypes.c_char_p
        licence = function().decode(errors="replace")
    there = [name for name in GPL if encoders()[name]]
    if not there:
        return licence
    choice = "refused by JOSTLE_NO_GPL" if refuses_gpl() else "JOSTLE_NO_GPL=1 refuses them"
    return f"{licence}; {' and '.join(there)} in it are GPL version 2 or later ({choice})"


def _encoders() -> dict[str, bool]:
    from jostle.io.video.encoders import encoders

    return encoders()


def _devices() -> dict[str, str]:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    devices = {"cores": str(cores)}
    # Importing torch takes seconds; it is queried only if it is loaded already.
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available():
        devices["cuda"] = torch.cuda.get_device_name()
    elif os.path.exists("/dev/nvidia0"):
        devices["cuda"] = "an NVIDIA device is there"
    else:
        devices["cuda"] = "none"
    return devices


def _check(name: str, test: Callable[[], str]) -> InstallationCheck:
    try:
        return InstallationCheck(name, True, test())
    except (AssertionError, JostleError, OSError) as error:
        return InstallationCheck(name, False, str(error))


def _complete(encoders: dict[str, bool]) -> str:
    missing = [name for name in NEEDED_ENCODERS if not encoders.get(name)]
    assert not missing, f"missing: {', '.join(missing)}; install PyAV's own wheel: pip install av"
    return "all that the codec corruptions need"


def _sample() -> Clip:
    rng = np.random.default_rng(0)
    return Clip.at_rate(rng.integers(0, 256, (12, 48, 64, 3), dtype=np.uint8), 24)


def _severity_zero() -> str:
    clip = _sample()
    specs = [f"{name}:0" for name in corruptions]
    for table in profiles.values():
        specs += [f"{table.name}/{name}:0" for name in table.entries]
    for spec in specs:
        same = np.array_equal(corrupted_frames(clip, [Spec.parse(spec)]), clip.frames)
        assert same, f"{spec} changes the clip"
    return f"{len(specs)} specs"


def _repeatable() -> str:
    clip = _sample()
    spec = [Spec.parse("gaussian_noise:3")]
    first, again = (corrupted_frames(clip, spec, seed=1, video_id="a") for _ in range(2))
    assert np.array_equal(first, again), "two runs differ"
    assert not np.array_equal(first, corrupted_frames(clip, spec, seed=2, video_id="a")), "the seed does nothing"
    return "noise repeats, and follows the seed"


def _round_trip() -> str:
    import tempfile

    from jostle.io.video.decode import read
    from jostle.io.video.encode import Writer

    clip = _sample()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "sample.mkv"
        with Writer(path, size=clip.size, fps=clip.fps, codec="ffv1") as writer:
            for tick, frame in enumerate(clip.frames):
                writer.write(frame, tick)
        assert np.array_equal(read(path).frames, clip.frames), "pixels changed on the way through FFV1"
    return "FFV1"
