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
    "h-ink": ("#1d2026", "#f2f2f3"),
    "h-deep-ink": ("#ffffff", "#16181c"),  # on h5 and what is deeper
    "above": ("#b5d8ef", "#1f4f73"),
}

PAGE: Colours = {
    "paper": ("#ffffff", "#14161a"),
    "raised": ("#f6f6f4", "#1d2026"),
    "ink": ("#1d2026", "#e9eaed"),
    "pale": ("#5d636d", "#a2a8b3"),
    "line": ("#dddfe3", "#353941"),
    "link": ("#0b5cad", "#8ec5f5"),
    "clean": ("#0072b2", "#56b4e9"),
    "corrupted": ("#c24e00", "#f0924a"),
    "truth": ("#8a8f98", "#8a8f98"),
    "corrupted-span": ("#b9bcc2", "#565b66"),
    "bar-ink": ("#ffffff", "#0e1013"),
    "run0": ("#0072b2", "#56b4e9"),
    "run1": ("#c24e00", "#f0924a"),
    "run2": ("#00785a", "#3ec79d"),
    "run3": ("#a8487e", "#e39bc3"),
    "run4": ("#806000", "#e3c24a"),
    "run5": ("#4b4f58", "#c0c4cc"),
    # Kinds of error in the order of DETAD, and what is written on them
    "k0": ("#00916a", "#2bbd93"),
    "k1": ("#8fcdf0", "#a9dcf7"),
    "k2": ("#0072b2", "#3b9bd6"),
    "k3": ("#e69f00", "#e69f00"),
    "k4": ("#cc79a7", "#d98fb6"),
    "k5": ("#c3c6cb", "#6d727c"),
    "k0-ink": ("#ffffff", "#10120f"),
    "k1-ink": ("#1d2026", "#1d2026"),
    "k2-ink": ("#ffffff", "#0c1116"),
    "k3-ink": ("#1d2026", "#1d2026"),
    "k4-ink": ("#1d2026", "#1d2026"),
    "k5-ink": ("#1d2026", "#ffffff"),
}


def declared(colours: Colours) -> str:
    """Return a style sheet with the colours as variables, dark ones for readers who like it dark.

    >>> print(declared({"ink": ("#000000", "#ffffff")}))
    :root { --ink: #000000; }
    @media (prefers-color-scheme: dark) { :root:not([data-light]) { --ink: #ffffff; } }
    """
    light, dark = (" ".join(f"--{name}: {both[side]};" for name, both in colours.items()) for side in (0, 1))
    return f":root {{ {light} }}\n@media (prefers-color-scheme: dark) {{ :root:not([data-light]) {{ {dark} }} }}"
