"""Targets, losses, decoding and suppression of the three detectors, as their original programs compute them.

The originals' suppression is a C++ extension, which needs a compiler. It is written here twice instead: in plain
NumPy, and as the same loops compiled by Numba, which comes closest to the speed of the extension.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from bench.transcriptions.detectors import Original

SoftNms = Callable[[Any, Any, float, float], tuple[Any, Any]]


def assign_targets(points: Tensor, segments: Tensor, labels: Tensor, classes: int) -> tuple[Tensor, Tensor]:
    """Return (P, K) class targets and (P, 2) distances in strides of one video, of the shortest action in range."""
    if not len(segments):
        return points.new_zeros(len(points), classes), points.new_zeros(len(points), 2)
    position, low, high, stride = (column[:, None] for column in points.T)
    start, end = segments.T
    distances = torch.stack([position - start, end - position], -1)  # (P, N, 2)
    centre = (start + end) / 2
    after = position - torch.maximum(centre - 1.5 * stride, start)
    before = torch.minimum(centre + 1.5 * stride, end) - position
    furthest = distances.max(-1).values
    fits = (torch.minimum(after, before) > 0) & (furthest >= low) & (furthest <= high)
    length = (end - start).expand(len(points), -1).masked_fill(~fits, torch.inf)
    shortest, chosen = length.min(1)
    winners = (length <= shortest[:, None] + 1e-3) & (length < torch.inf)
    targets = (winners.float() @ F.one_hot(labels, classes).float()).clamp(max=1)
    return targets, distances[torch.arange(len(points)), chosen] / stride


def focal_loss(logits: Tensor, target: Tensor) -> Tensor:
    """Return the sigmoid focal loss of every logit."""
    p = torch.sigmoid(logits)
    entropy = F.binary_cross_entropy_with_logits(logits, target, reduction="none")
    hit = p * target + (1 - p) * (1 - target)
    return (0.25 * target + 0.75 * (1 - target)) * entropy * (1 - hit) ** 2


def iou_and_distance(offsets: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """Return the IoU of two segments around a point, and the squared distance of their centres over their hull."""
    (left, right), (true_left, true_right) = offsets.unbind(-1), target.unbind(-1)
    inter = torch.minimum(left, true_left) + torch.minimum(right, true_right)
    union = (left + right) + (true_left + true_right) - inter
    hull = torch.maximum(left, true_left) + torch.maximum(right, true_right)
    difference = 0.5 * ((right - left) - (true_right - true_left)) / hull.clamp(min=1e-8)
    return inter / union.clamp(min=1e-8), difference**2


def assign_by_cost(points: Tensor, segments: Tensor, labels: Tensor, logits: Tensor, offsets: Tensor) -> Tensor:
    """Return TemporalMaxer's (P, 2) distance targets: of the surrounding actions, the one with the smallest loss."""
    position, stride = points[:, 0, None], points[:, 3, None]
    distances = torch.stack([position - segments[:, 0], segments[:, 1] - position], -1) / stride[..., None]  # (P, N, 2)
    inside = distances.min(-1).values > 0
    target = F.one_hot(labels, logits.shape[-1]).float()
    cost = focal_loss(logits[:, None].expand(-1, len(labels), -1), target.expand(len(points), -1, -1)).sum(-1)
    iou, distance = iou_and_distance(offsets[:, None].expand(-1, len(labels), -1), distances)
    cost = (cost + 2 * (1 - iou + distance)).masked_fill(~inside, torch.inf)
    return distances[torch.arange(len(points)), cost.argmin(1)]


def compute_losses(
    net: Original, outputs: dict[str, Any], segments: list[Tensor], labels: list[Tensor]
) -> dict[str, Tensor]:
    """Return the classification and regression losses of a batch and their sum, one video and level after another."""
    points = torch.cat(outputs["points"])
    logits, mask = torch.cat(outputs["cls"], 1), torch.cat(outputs["mask"], 1)
    offsets = torch.cat([net.offsets(outputs, level) for level in range(len(outputs["cls"]))], 1)
    targets = [assign_targets(points, s, y, net.sizes.classes) for s, y in zip(segments, labels, strict=True)]
    target, distances = (torch.stack(column) for column in zip(*targets, strict=True))
    if net.name == "temporalmaxer":
        with torch.no_grad():
            distances = torch.stack(
                [
                    assign_by_cost(points, s, y, logits[i], offsets[i])
                    for i, (s, y) in enumerate(zip(segments, labels, strict=True))
                ]
            )
    positive = (target.sum(-1) > 0) & mask
    net.normaliser = 0.9 * net.normaliser + 0.1 * max(int(positive.sum()), 1)
    focal = focal_loss(logits[mask], target[mask])
    if net.name == "tridet":
        pairs = (target > 0) & mask[..., None]
        pair_distances = distances[:, :, None].expand(-1, -1, net.sizes.classes, -1)[pairs]
        iou, distance = iou_and_distance(offsets[pairs], pair_distances)
        weight = torch.ones_like(logits)
        weight[pairs] = iou.clamp(min=1e-8) ** 0.2
        focal = focal * weight[mask]
    else:
        iou, distance = iou_and_distance(offsets[positive], distances[positive])
    cls, reg = focal.sum() / net.normaliser, (1 - iou + distance).sum() / net.normaliser
    return {"cls": cls, "reg": reg, "total": cls + reg}


def decode_candidates(net: Original, outputs: dict[str, Any], video: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return segments on the grid, scores and labels of a video before suppression, one level after another."""
    levels: list[tuple[Tensor, Tensor, Tensor]] = []
    for level, logits in enumerate(outputs["cls"]):
        points, offsets = outputs["points"][level], net.offsets(outputs, level)[video]
        probability = (torch.sigmoid(logits[video]) * outputs["mask"][level][video][:, None]).flatten()
        above = (probability > 0.001).nonzero()[:, 0]
        scores, order = probability[above].sort(descending=True)
        scores, order = scores[:2000], above[order[:2000]]
        point, label = torch.div(order, net.sizes.classes, rounding_mode="floor"), order % net.sizes.classes
        distance = offsets[point, label] if net.name == "tridet" else offsets[point]
        position, stride = points[point, 0], points[point, 3]
        segments = torch.stack([position - distance[:, 0] * stride, position + distance[:, 1] * stride], -1)
        long = segments[:, 1] - segments[:, 0] > 0.05
        levels.append((segments[long], scores[long], label[long]))
    segments, scores, labels = (torch.cat(column) for column in zip(*levels, strict=True))
    return segments, scores, labels


def soft_nms_numpy(segments: Any, scores: Any, sigma: float, min_score: float) -> tuple[Any, Any]:
    """Suppress the segments of one class: take the best, lower the scores of the others, drop the low ones.

    Returns:
        Rows by falling score, and their scores.
    """
    rows, left = np.arange(len(scores)), scores.copy()
    selection, values = [], []
    while len(rows):
        best = int(left.argmax())
        start, end = segments[rows[best]]
        selection.append(rows[best])
        values.append(left[best])
        rows, left = np.delete(rows, best), np.delete(left, best)
        inter = np.maximum(np.minimum(end, segments[rows, 1]) - np.maximum(start, segments[rows, 0]), 0)
        lengths = (end - start + np.float32(1e-6)) + (segments[rows, 1] - segments[rows, 0] + np.float32(1e-6))
        iou = inter / (lengths - inter)
        left = left * np.exp(-(iou * iou) / np.float32(sigma))
        stay = left >= min_score
        rows, left = rows[stay], left[stay]
    return np.array(selection, np.int64), np.array(values, np.float32)


@numba.njit(nogil=True)
def soft_nms_compiled(segments: Any, scores: Any, sigma: float, min_score: float) -> tuple[Any, Any]:
    """Suppress as `soft_nms_numpy` does, with the loops of the extension: scan for the best, swap to drop."""
    sigma = np.float32(sigma)
    start, end, left = segments[:, 0].copy(), segments[:, 1].copy(), scores.copy()
    length = end - start + np.float32(1e-6)
    rows = np.arange(len(scores))
    n, i = len(scores), 0
    while i < n:
        best = i
        for j in range(i + 1, n):
            if left[j] > left[best]:
                best = j
        for column in (start, end, left, length):
            column[i], column[best] = column[best], column[i]
        rows[i], rows[best] = rows[best], rows[i]
        j = i + 1
        while j < n:
            inter = max(np.float32(0), min(end[i], end[j]) - max(start[i], start[j]))
            iou = inter / (length[i] + length[j] - inter)
            left[j] *= np.exp(-(iou * iou) / sigma)
            if left[j] < min_score:
                n -= 1
                for column in (start, end, left, length):
                    column[j], column[n] = column[n], column[j]
                rows[j], rows[n] = rows[n], rows[j]
            else:
                j += 1
        i += 1
    return rows[:n], left[:n]


def suppress_candidates(
    candidates: tuple[Tensor, Tensor, Tensor], max_segments: int, soft_nms: SoftNms = soft_nms_numpy
) -> tuple[Any, Any, Any]:
    """Return segments, scores and labels after suppression class by class, by falling score."""
    segments, scores, labels = (column.detach().cpu().numpy() for column in candidates)
    class_rows, class_scores = [], []
    for label in np.unique(labels):
        own = np.flatnonzero(labels == label)
        rows, values = soft_nms(segments[own], scores[own], 0.5, 0.001)
        class_rows.append(own[rows][:max_segments])
        class_scores.append(values[:max_segments])
    if not class_rows:
        return segments, scores, labels
    rows, values = np.concatenate(class_rows), np.concatenate(class_scores)
    order = np.argsort(-values, kind="stable")[:max_segments]
    return segments[rows[order]], values[order], labels[rows[order]]
