"""ImageNet-Vid-Robust and YTBB-Robust (Shankar et al., 2021): pm-k over sets of similar frames.

Nothing is corrupted here: the video itself is the perturbation, so the clean cell is the only one.
"""

from __future__ import annotations

from functools import partial

from jostle.evaluation.recipes.recipe import Group, benchmark

_stability = partial(benchmark, version=1, subset="test", task="frames", metric="pm_k", k=10, cites=("shankar2021",))
_OPEN = "The paper leaves open whether the anchor is part of its own set; as in the program, it is."


@_stability(
    "imagenet-vid-robust",
    title="ImageNet-Vid-Robust",
    dataset="imagenet-vid-robust",
    labels_of="own",
    items=1109,
    notes=(_OPEN, "The program holds a frame to its own labels; the formula of the paper holds it to its anchor's."),
)
def imagenet_vid_robust() -> tuple[Group, ...]:
    """Stability of a frame classifier on 1,109 anchors of ImageNet-Vid and the frames around them that look alike."""
    return ()


@_stability("ytbb-robust", title="YTBB-Robust", dataset="ytbb-robust", labels_of="anchor", items=2030, notes=(_OPEN,))
def ytbb_robust() -> tuple[Group, ...]:
    """Stability of a frame classifier on 2,030 anchors of YouTube-BB and the frames around them that look alike."""
    return ()


@benchmark(
    "imagenet-vid-robust-boxes",
    version=1,
    title="ImageNet-Vid-Robust, boxes",
    task="objects",
    metric="pm_k_map",
    k=10,
    dataset="imagenet-vid-robust-boxes",
    subset="test",
    items=1109,
    cites=("shankar2021",),
    notes=(
        "The program is not public; what the paper leaves open is settled as the page on frame stability says.",
        "A detector is measured on the classes it knows; one trained on COCO knows 16 of the 30.",
    ),
)
def imagenet_vid_robust_boxes() -> tuple[Group, ...]:
    """Stability of an object detector on 1,109 anchors of ImageNet-Vid and the frames around them that look alike."""
    return ()
