"""Colours of pages and their charts on light and on dark ground, and the style sheet that declares them.

Those of runs and of kinds of error are after Okabe and Ito (2008), distinct for the colour-blind. The steps of what is
lost of the clean score go from pale to deep on light ground, and from dull to bright on dark ground.
"""

from __future__ import annotations

from collections.abc import Mapping

Colours = Mapping[str, tuple[str, str]]  # light and dark, by name

# What is lost of the clean score, for report, leaderboard and viewer; `loss_steps` has the steps.
LOSSES: Colours = {
    "h0": ("#f6f1e7", "#262a31"),
    "h1": ("#f7e3c6", "#3d332c"),
    "h2": ("#f8cf9c", "#583c2b"),
    "h3": ("#f3b173", "#7a482b"),
    "h4": ("#e68d52", "#9d562d"),
    "h5": ("#bf5530", "#c26a36"),
    "h6": ("#9f3b2c", "#e08a4e"),
    "h7": ("#7a2629", "#f3b27c"),
    "h8": ("#4f1723", "#fbdcb4"),
    "above": ("#b5d8ef", "#1f4f73"),
}
LOSS_INKS: Colours = {
    "h-ink": ("#1d2026", "#f2f2f3"),
    "h-deep-ink": ("#ffffff", "#16181c"),  # on h5 and what is deeper
}

PAGE: Colours = {
    "paper": ("#ffffff", "#14161a"),
    "raised": ("#f6f6f4", "#1d2026"),
    "ink": ("#1d2026", "#e9eaed"),
    "pale": ("#5d636d", "#a2a8b3"),
    "line": ("#dddfe3", "#353941"),
    "link": ("#0b5cad", "#8ec5f5"),
    "truth": ("#8a8f98", "#8a8f98"),
    "corrupted-span": ("#b9bcc2", "#565b66"),
    "bar-ink": ("#ffffff", "#0e1013"),
}

# What a shape stands for: a side, a run, or a kind of error in the words of DETAD.
SERIES: Colours = {
    "clean": ("#0072b2", "#56b4e9"),
    "corrupted": ("#c24e00", "#f0924a"),
    "run0": ("#0072b2", "#56b4e9"),
    "run1": ("#c24e00", "#f0924a"),
    "run2": ("#00785a", "#3ec79d"),
    "run3": ("#a8487e", "#e39bc3"),
    "run4": ("#806000", "#e3c24a"),
    "run5": ("#4b4f58", "#c0c4cc"),
    "true_positive": ("#00916a", "#2bbd93"),
    "double_detection": ("#8fcdf0", "#a9dcf7"),
    "wrong_label": ("#0072b2", "#3b9bd6"),
    "localization": ("#e69f00", "#e69f00"),
    "confusion": ("#cc79a7", "#d98fb6"),
    "background": ("#c3c6cb", "#6d727c"),
}

INKS: Colours = {  # of what is written on kinds of error
    "on-true_positive": ("#ffffff", "#10120f"),
    "on-double_detection": ("#1d2026", "#1d2026"),
    "on-wrong_label": ("#ffffff", "#0c1116"),
    "on-localization": ("#1d2026", "#1d2026"),
    "on-confusion": ("#1d2026", "#1d2026"),
    "on-background": ("#1d2026", "#ffffff"),
}


def declared(colours: Colours) -> str:
    """Return a style sheet with the colours as variables, dark ones for readers who like it dark.

    >>> print(declared({"ink": ("#000000", "#ffffff")}))
    :root { --ink: #000000; }
    @media (prefers-color-scheme: dark) { :root:not([data-light]) { --ink: #ffffff; } }
    """
    light, dark = (" ".join(f"--{name}: {both[side]};" for name, both in colours.items()) for side in (0, 1))
    return f":root {{ {light} }}\n@media (prefers-color-scheme: dark) {{ :root:not([data-light]) {{ {dark} }} }}"


def owned(colours: Colours) -> str:
    """Return a style sheet by which a shape of a class has the colour of that name as its own.

    >>> print(owned(dict.fromkeys(["h0", "above"], ("#000000", "#ffffff"))))
    .h0 { --own: var(--h0); } .above { --own: var(--above); }
    """
    return " ".join(f".{name} {{ --own: var(--{name}); }}" for name in colours)


def loss_colours() -> str:
    """Return the style sheet of squares and of what is written on them."""
    return f"{declared({**LOSSES, **LOSS_INKS})}\n{owned(LOSSES)}\n"


def all_colours() -> str:
    """Return the style sheet that pages and their charts begin with."""
    return f"{loss_colours()}{declared({**PAGE, **SERIES, **INKS})}\n{owned({**SERIES, **INKS})}"
