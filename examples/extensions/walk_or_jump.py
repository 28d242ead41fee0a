"""A data set of one's own: jostle run recipe.toml --dataset walk-or-jump --data FOLDER --import walk_or_jump

Its videos are NumPy archives, which npz_videos.py opens.
"""

import npz_videos  # noqa: F401

from jostle.extend import Dataset, VideoLabels, dataset


@dataset("walk-or-jump", subsets=("test",), task="recognition", on_disk=True)
def walk_or_jump(request):
    """Two videos of two classes, each in the folder of its class."""
    labels = VideoLabels(("a", "b"), ("walk", "jump"), [0, 1], [1, 0])
    places = {"a": "jump/a.npz", "b": "walk/b.npz"}
    videos = {name: f"{request.root}/test/{place}" for name, place in places.items()}
    return Dataset("walk-or-jump", request.subset, request.root, (labels,), videos)
