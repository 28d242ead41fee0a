"""Page on a collection of videos: how damaged each is, and its worst stretches as pictures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from jostle.core.formatting import percent, time_of
from jostle.mending.collection import InspectedFile
from jostle.reporting.html.templates import inline_assets, templates

MOST_PICTURES = 60  # stretches on the page, the longest first
MOST_ROWS = 2000


def collection_page(files: Sequence[InspectedFile], title: str, false_alarms: str) -> str:
    """Return the page as one self-contained HTML text."""
    read = [one for one in files if not one.error]
    kinds: Counter[str] = Counter()
    for one in read:
        kinds.update(one.kinds or {})
    frames = sum(one.frames for one in read)
    ranked = sorted(files, key=lambda one: (-one.share, one.video))
    worst = sorted(
        ((one, stretch) for one in read for stretch in one.worst), key=lambda pair: pair[1].first - pair[1].stop
    )
    return str(
        templates()
        .get_template("collection.html.jinja")
        .render(
            title=title,
            **inline_assets(("collection.css",)),
            files=ranked[:MOST_ROWS],
            more=max(len(ranked) - MOST_ROWS, 0),
            count=len(files),
            damaged=sum(one.damaged > 0 for one in read),
            unread=len(files) - len(read),
            share=sum(kinds.values()) / frames if frames else 0.0,
            length=time_of(sum(one.seconds for one in read)),
            kinds=[(kind, count / frames) for kind, count in kinds.most_common()],
            worst=worst[:MOST_PICTURES],
            left_out=max(len(worst) - MOST_PICTURES, 0),
            false_alarms=false_alarms,
            percent=percent,
        )
    )
