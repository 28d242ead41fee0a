"""Specs: read, written, and refused with a hint."""

from __future__ import annotations

import pytest

from jostle.corruptions.engine.corruption import corruption, corruptions
from jostle.corruptions.engine.spec import Spec
from jostle.errors import BadValue, UnknownName


@pytest.mark.parametrize("text", ["fog:3", "imagenet-c/shot_noise:5", "thumos14-c/black_frame:1", "freeze:0"])
def test_written_as_read(text: str) -> None:
    assert str(Spec.parse(text)) == text


def test_the_middle_severity_is_the_default() -> None:
    assert Spec.parse("fog").severity == 3
    assert Spec.parse("thumos14-c/motion_blur").severity == 2


def test_code_names_are_understood() -> None:
    assert str(Spec.parse("thumos14-c/mask:2")) == "thumos14-c/black_frame:2"


def test_the_papers_word_maps_to_ours() -> None:
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
def test_bad_specs_say_what_and_how(text: str, message: str) -> None:
    with pytest.raises((BadValue, UnknownName), match=message):
        Spec.parse(text)


def test_severity_may_be_a_share() -> None:
    shares = [Spec.parse(f"thumos14-c/packet_loss:{s}").placement for s in (1, 2, 3)]
    assert shares == ["centre:1%", "centre:5%", "centre:10%"]
    assert Spec.parse("imagenet-c/fog:3").placement == "everywhere"


def test_what_was_read_before_does_not_hide_what_came_later(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(corruptions, "_entries", dict(corruptions._entries))
    with pytest.raises(UnknownName):
        Spec.parse("haze_of_noon:2")
    corruptions.add("haze_of_noon", corruptions["fog"])
    assert Spec.parse("haze_of_noon:2").value == corruptions["fog"].scale[1]


def test_only_an_index_map_says_that_it_draws_nothing() -> None:
    with pytest.raises(BadValue, match="draws=False is for time-level corruptions only"):
        corruption(level="frame", scale=(1, 2, 3, 4, 5), cites="jostle", draws=False)
