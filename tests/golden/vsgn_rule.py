"""Generated inputs of the golden results of VSGN; `detectors2/README.md` describes them."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from golden import by_rule

# First match wins; the last rules are those of the other detectors.
RULE = (
    (r"^(head_\w+ness|bd_\w+\.\w+_conv)\.2\.weight$", 0.0, 0.6),
    (r"^head_(enc|dec)\.cls_logits\.bias$", 0.0, 0.5),
    (r"^bd_(adjust|refine)\.\w+_conv\.2\.bias$", 0.0, 1.0),
    *by_rule.RULE,
)
FORMS = ("thumos", "thumos_plain", "anet")
SEEDS = {"thumos": 7101, "thumos_plain": 7301, "anet": 7201}
DIGESTS = {
    "thumos": "1498fae318c0a37747c833c88a382a78ced9337760df9bffabdf01a3e81b1096",
    "thumos_plain": "6a9b0e4ca93218c9d22cde134e28a95a7c58f88837dded4da7f3823fe8e888e5",
    "anet": "b8fcebfd6ec520e3f546b435be29203df00f41493688af0ece8e2db8cd5ec7db",
}
SMALL: dict[str, Any] = {"input_dim": 32, "dim": 64, "max_length": 256, "neighbours": 4, "reproduce_bugs": True}
SIZES: dict[str, dict[str, Any]] = {
    "thumos": {**SMALL, "classes": 5},
    "thumos_plain": {**SMALL, "classes": 5, "graph": False, "stitch": False},
    "anet": SMALL,
}
NAMES = {"thumos": "vsgn_thumos_tsn", "thumos_plain": "vsgn_thumos_tsn", "anet": "vsgn_anet_i3d"}
VIDEOS = ((400, 301), (100, 302), (282, 311))  # of THUMOS14's form: rows, seed; 20 rows a second
PAIRS = {"v_a": (240, 230, 401), "v_b": (100, 110, 402), "v_c": (300, 290, 403), "v_d": (102, 95, 404)}
DURATIONS = {"v_a": 48.0, "v_b": 20.0, "v_c": 60.0, "v_d": 20.4}


def keys(form: str) -> list[str]:
    """Return names and sizes of the tensors, in their order."""
    return (by_rule.GOLDEN / f"detectors2/vsgn/{form}_keys.txt").read_text().splitlines()


def weights(form: str) -> dict[str, npt.NDArray[Any]]:
    """Generate every tensor of a public checkpoint."""
    tensors = by_rule.weights(keys(form), SEEDS[form], _gain, RULE)
    assert by_rule.digest(tensors.values()) == DIGESTS[form]
    return tensors


def features(video: int) -> npt.NDArray[np.float32]:
    """Generate the features of a video of the THUMOS14 form."""
    rows, seed = VIDEOS[video]
    return by_rule.rows_of(rows, 32, seed)


def _gain(name: str) -> float:
    plain = ("xGPN.", "head_actionness.", "head_startness.", "head_endness.", "bd_")
    return 1.0 if name.startswith(plain) else 1.5
