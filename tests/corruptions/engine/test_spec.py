"""Specs: parsing, formatting, and errors with hints."""

from __future__ import annotations

import pytest

from jostle.corruptions.engine.corruption import corruption, corruptions
from jostle.corruptions.engine.spec import Spec
from jostle.errors import BadValue, UnknownName


@pytest.mark.parametrize("text", ["fog:3", "imagenet-c/shot_noise:5", "thumos14-c/black_frame:1", "freeze:0"])
def test_specs_round_trip(text: str) -> None:
    assert str(Spec.parse(text)) == text


def test_the_middle_severity_is_the_default() -> None:
    assert Spec.parse("fog").severity == 3
    assert Spec.parse("thumos14-c/motion_blur").severity == 2


def test_aliases_of_published_code_are_understood() -> None:
    assert str(Spec.parse("thumos14-c/mask:2")) == "thumos14-c/black_frame:2"


def test_names_of_papers_map_to_corruptions() -> None:
    assert Spec.parse("kinetics-c/motion_blur:2").corruption.name == "frame_average"
    assert Spec.parse("imagenet-c/motion_blur:2").corruption.name == "motion_blur"
    assert Spec.parse("ucf101-p/mpeg1:2").corruption.name == "mpeg2"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("gausian_noise:3", "no corruption is called 'gausian_noise': did you mean gaussian_noise"),
        ("imagenet/fog:3", "no profile is called 'imagenet': did you mean imagenet-c"),
        ("imagenet-c/rain:3", "no corruption of profile imagenet-c is called 'rain'"),
        ("fog:6", "severity must be a whole number from 0 [(]clean[)] to 5, got '6'"),
        ("fog:-1", "severity must be a whole number"),
        ("fog:high", "severity must be a whole number"),
        ("thumos14-c/black_frame:4", "to 3, got '4'"),
        ("a/b/c", "is not a spec"),
        ("", "is not a spec"),
    ],
)
def test_invalid_specs_are_refused_with_a_hint(text: str, message: str) -> None:
    with pytest.raises((BadValue, UnknownName), match=message):
        Spec.parse(text)


def test_severity_may_be_a_share() -> None:
    shares = [Spec.parse(f"thumos14-c/packet_loss:{s}").placement for s in (1, 2, 3)]
    assert shares == ["centre:1%", "centre:5%", "centre:10%"]
    assert Spec.parse("imagenet-c/fog:3").placement == "everywhere"


def test_the_spec_cache_does_not_hide_later_registrations(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(corruptions, "_entries", dict(corruptions._entries))
    with pytest.raises(UnknownName):
        Spec.parse("haze_of_noon:2")
    corruptions.add("haze_of_noon", corruptions["fog"])
    assert Spec.parse("haze_of_noon:2").value == corruptions["fog"].scale[1]


def test_draws_false_is_for_time_level_corruptions_only() -> None:
    with pytest.raises(BadValue, match="draws=False is for time-level corruptions only"):
        corruption(level="frame", scale=(1, 2, 3, 4, 5), cites="jostle", draws=False)
