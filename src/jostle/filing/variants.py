"""Ground truths that go by one name and are not one: told apart by their videos, instances and classes."""

from __future__ import annotations

from jostle.types.truth import Truth

# (videos, instances, classes); THUMOS14's 26 instances after their video's end make most of the difference.
_VARIANTS = {
    (213, 3358, 20): "THUMOS14 test, official: 213 videos, 3358 instances",
    (212, 3358, 20): "THUMOS14 test, 212 videos, 3358 instances (26 after the end of their video)",
    (212, 3332, 20): "THUMOS14 test, 212 videos, 3332 instances (without those after the end of their video)",
    (211, 3325, 20): "THUMOS14 test, 211 videos, 3325 instances (also without video_test_0000270)",
    (200, 3003, 20): "THUMOS14 validation, 200 videos, 3003 instances",
    (412, 6335, 20): "THUMOS14 validation and test, 412 videos, 6335 instances",
    (4926, 7654, 200): "ActivityNet 1.3 validation, 4926 videos, 7654 instances",
}
_ACTIVITYNET_AVAILABLE = (4728, 200)


def variant_of(truth: Truth) -> str | None:
    """The known variant of THUMOS14 or ActivityNet that `truth` is, by its numbers, or None.

    >>> variant_of(Truth(("a",), ("Jump",), [0], [1.0], [2.0], [0])) is None
    True
    """
    videos, instances, classes = len(truth.videos), len(truth), len(truth.classes)
    if (videos, classes) == _ACTIVITYNET_AVAILABLE:
        return f"ActivityNet 1.3 validation, the {videos} videos still available, {instances} instances"
    return _VARIANTS.get((videos, instances, classes))
