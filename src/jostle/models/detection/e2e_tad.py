"""E2E-TAD: a video network and a deformable transformer, trained end to end, from frames to a set of segments.

Liu, Bai, Bai: "An Empirical Study of End-to-End Temporal Action Detection", CVPR 2022. Weights under the names of
github.com/xlliu7/E2E-TAD load as they are.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import ClassVar, Literal

import numpy as np
import torch
from torch import Tensor, nn

from jostle.errors import BadValue
from jostle.models.detection.blocks.assignment import Actions
from jostle.models.detection.blocks.e2e_tad import (
    DeformableTransformer,
    DetectorMlp,
    actionness_loss,
    assign_queries,
    ends,
    layer_losses,
    roi_align,
)
from jostle.models.detection.blocks.reach import Reach
from jostle.models.detection.blocks.trunks import ALPHA, FUSED, ShiftTrunk, SlowFastTrunk
from jostle.models.detection.detector import detector_variants
from jostle.models.detection.frame_detector import FrameConfig, ResampledFrameDetector, join_candidates
from jostle.models.detection.nms import overlap_nms
from jostle.models.detection.outputs import Candidates, Losses
from jostle.models.preprocessing.geometry import OddMargin, resize_by_factor

GROUPS = 32  # of the norm before the transformer
PARTS = 16  # parts of a segment that its actionness is computed from
AROUND = 1.5  # region of the actionness, in lengths of the segment
PRIOR = 0.01  # probability with which every class starts
WEIGHTS = {"classification": 2.0, "regression": 5.0, "iou": 2.0, "actionness": 4.0}  # of the losses

Backbone = Literal["slowfast", "tsm18", "tsm50"]


@dataclass(frozen=True, kw_only=True)
class E2eTadConfig(FrameConfig):
    """Settings of E2E-TAD; the defaults are those published for THUMOS14 with SlowFast.

    Attributes:
        dim: width of the transformer.
        levels: 1; there is no pyramid.
        min_probability: candidates must exceed it.
        max_segments: how many segments are kept; the program has no limit.
        top_candidates: how many pairs of segment and class are kept of each clip.
        threshold: least IoU at which the weaker of two segments goes, where clips overlap.
        backbone: `slowfast`, whose steps are four frames, or `tsm18` or `tsm50`, whose steps are one.
        backbone_width: share of its channels.
        heads: of attention.
        points: places that a head looks at.
        encoder_layers: in which every step looks around itself.
        decoder_layers: in which queries become segments.
        mlp_dim: width within a layer.
        queries: how many segments are found in a clip.
        dropout: in training.
        reproduce_bugs: repeat what the released program does wrong: actionness learned from the actions of other
            videos of the batch, and segments that reach into two overlaps of clips found twice.
    """

    dim: int = 256
    max_length: int = 256
    levels: int = 1
    min_probability: float = 0.0
    max_segments: int = 100_000
    frame_size: int = 110
    clip_stride: int = 192
    top_candidates: int = 100
    threshold: float = 0.4
    backbone: Backbone = "slowfast"
    backbone_width: float = 1.0
    heads: int = 8
    points: int = 4
    encoder_layers: int = 4
    decoder_layers: int = 4
    mlp_dim: int = 1024
    queries: int = 40
    dropout: float = 0.1
    reproduce_bugs: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        self._need_counts("top_candidates", "heads", "points", "encoder_layers", "decoder_layers")
        self._need_counts("mlp_dim", "queries")
        self._need_one_of("backbone", "slowfast", "tsm18", "tsm50")
        if self.input_dim != 3:
            raise BadValue(f"E2E-TAD: it looks at frames of 3 colours, not {self.input_dim}")
        if self.levels != 1:
            raise BadValue(f"E2E-TAD: it has no pyramid, so levels is 1, not {self.levels}")
        if self.dim % GROUPS or self.dim % self.heads:
            raise BadValue(f"E2E-TAD: dim {self.dim} does not divide into {GROUPS} groups and {self.heads} heads")
        if self.backbone == "slowfast" and self.max_length % ALPHA:
            raise BadValue(f"E2E-TAD: SlowFast needs a max_length that is a multiple of {ALPHA}, not {self.max_length}")
        if self.clip_stride > self.max_length:
            raise BadValue(f"E2E-TAD: clip_stride {self.clip_stride} leaves out frames between clips")
        self._need_shares("E2E-TAD", "backbone_width", "threshold")
        if not 0 <= self.dropout < 1:
            raise BadValue(f"E2E-TAD: dropout is from 0 and below 1, not {self.dropout}")

    @property
    def frames_a_step(self) -> int:
        """Number of frames per step of the features."""
        return FUSED if self.backbone == "slowfast" else 1


@dataclass(frozen=True)
class E2eTadOutputs:
    """Raw outputs of the queries after every layer of the decoder."""

    logits: Tensor  # (B, layers, Q, K)
    segments: Tensor  # (B, layers, Q, 2) centre and width, as shares of the clip
    actionness: Tensor  # (B, Q) probability that the last segment is an action


class E2ETAD(ResampledFrameDetector[E2eTadConfig]):
    """E2E-TAD detector, for clips of a fixed length, trained end to end from pixels."""

    filler: ClassVar[float | None] = 128.0
    odd_margin: ClassVar[OddMargin] = "even"

    def __init__(self, config: E2eTadConfig) -> None:
        super().__init__(config)
        dim, width = config.dim, config.backbone_width
        self.transformer = DeformableTransformer(
            dim,
            heads=config.heads,
            points=config.points,
            depths=(config.encoder_layers, config.decoder_layers),
            mlp_dim=config.mlp_dim,
            dropout=config.dropout,
        )
        self.class_embed = nn.ModuleList(nn.Linear(dim, config.classes) for _ in range(config.decoder_layers))
        self.segment_embed = nn.ModuleList(DetectorMlp(dim, 2) for _ in range(config.decoder_layers))
        self.query_embed = nn.Embedding(config.queries, 2 * dim)
        trunk: SlowFastTrunk | ShiftTrunk
        if config.backbone == "slowfast":
            trunk = SlowFastTrunk(width, fixed_norms=config.fixed_norms)
        else:
            trunk = ShiftTrunk(18 if config.backbone == "tsm18" else 50, width, fixed_norms=config.fixed_norms)
        self.input_proj = nn.ModuleList([nn.Sequential(nn.Conv1d(trunk.out, dim, 1), nn.GroupNorm(GROUPS, dim))])
        self.backbone = nn.ModuleDict({"backbone": trunk})
        self.actionness_pred = nn.Sequential(
            nn.Linear(PARTS * dim, dim), nn.ReLU(), nn.Linear(dim, dim), nn.ReLU(), nn.Linear(dim, 1), nn.Sigmoid()
        )
        self._start()

    @torch.no_grad()
    def _start(self) -> None:
        projection = self.get_submodule("input_proj.0.0")
        assert isinstance(projection, nn.Conv1d)
        assert projection.bias is not None
        nn.init.xavier_uniform_(projection.weight)
        nn.init.zeros_(projection.bias)
        for number in range(self.config.decoder_layers):
            self.get_parameter(f"class_embed.{number}.bias").fill_(-math.log((1 - PRIOR) / PRIOR))
            self.get_parameter(f"segment_embed.{number}.layers.2.weight").zero_()
            bias = self.get_parameter(f"segment_embed.{number}.layers.2.bias").zero_()
            if number == 0:
                bias[1] = -2.0  # an eighth of the clip

    @classmethod
    def own_names(cls, weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Drop the second copy of the segment embedding."""
        return {key: value for key, value in weights.items() if not key.startswith("transformer.decoder.segment_embed")}

    def features_of(self, clips: Tensor) -> Tensor:
        """Return the (B, T, D) input of the transformer."""
        return self._projected(self.backbone["backbone"](clips))

    def _projected(self, encodings: Tensor) -> Tensor:
        """Return (B, T, D) of what the backbone makes of clips."""
        with torch.autocast(encodings.device.type, enabled=False):
            output: Tensor = self.input_proj[0](
                encodings.float() if encodings.dtype in (torch.bfloat16, torch.float16) else encodings
            )
        return output.transpose(1, 2)

    def forward(self, clips: Tensor, padded: Tensor | None = None) -> E2eTadOutputs:
        """Return the raw outputs of clips.

        Args:
            clips: (B, 3, T, crop, crop) in the scale of the network.
            padded: (B, T) frames that hold nothing, in clips of several lengths; None if all frames count.
        """
        features = self.features_of(clips)
        if padded is not None:
            padded = padded[:, :: self.config.frames_a_step]
        # A hundredth of the work, and places want their digits.
        with torch.autocast(clips.device.type, enabled=False):
            return self.answers(self.transformer.encode(features, padded), padded)

    def see(self, pictures: Tensor) -> Tensor:
        """Return (N, ...): TSM's stem sees each frame by itself; SlowFast mixes them from its first layer on."""
        trunk = self.backbone["backbone"]
        return trunk.stem(pictures) if isinstance(trunk, ShiftTrunk) else pictures

    @property
    def layers(self) -> Sequence[Reach]:
        """Blocks of TSM, which mix neighbouring frames; none of SlowFast, which reaches further."""
        trunk = self.backbone["backbone"]
        return [Reach()] * len(trunk.near) if isinstance(trunk, ShiftTrunk) else []

    def layer(self, number: int, near: Tensor) -> Tensor:
        """Return (N, c, h, w) of (N, 3, C, H, W)."""
        trunk = self.backbone["backbone"]
        assert isinstance(trunk, ShiftTrunk)
        return trunk.layer(number, near)

    def finish(self, rows: Sequence[Tensor]) -> E2eTadOutputs:
        """Return the raw outputs of clips whose frames passed all blocks of TSM, or of pictures for SlowFast."""
        (maps,) = rows
        if not self.layers:
            return self.forward(maps.transpose(1, 2))
        features = self._projected(maps.mean((3, 4)).transpose(1, 2))
        with torch.autocast(maps.device.type, enabled=False):
            return self.answers(self.transformer.encode(features, None), None)

    def answers(self, memory: Tensor, padded: Tensor | None) -> E2eTadOutputs:
        """Return the raw outputs for the encoder's memory (B, T, D) with padded steps (B, T)."""
        queries, segments = self.transformer.decode(memory, padded, self.query_embed.weight, self.segment_embed)
        logits = [linear(queries[:, number]) for number, linear in enumerate(self.class_embed)]
        pooled = roi_align(memory, self.regions(segments[:, -1], memory.shape[1]), PARTS)  # (B, Q, D, parts)
        return E2eTadOutputs(torch.stack(logits, 1), segments, self.actionness_pred(pooled.flatten(2))[..., 0])

    def regions(self, segments: Tensor, steps: int) -> Tensor:
        """Return (B, Q, 2) start and end, in steps, of the actionness regions of (B, Q, 2) centres and widths."""
        wider = segments.detach() * segments.new_tensor([1.0, AROUND])
        return (ends(wider) * steps).clamp(0, steps).nan_to_num(0.0)  # if numbers are lost, the memory's are

    def shrunk(self, frames: Tensor) -> Tensor:
        """Return (T, 3, h, w) values from 0 to 255: frames whose short side is brought to a length."""
        return resize_by_factor(frames, self.config.frame_size / min(frames.shape[-2:]))

    def output_segments(self, outputs: E2eTadOutputs) -> Tensor:
        """Return (B, Q, 2) the segments of the queries after the last layer, in frames of the clip."""
        return ends(outputs.segments[:, -1]) * self.config.max_length

    def match_actions(self, outputs: E2eTadOutputs, actions: Actions) -> tuple[Tensor, Tensor]:
        """Return (B, Q) whether a last-layer query has an action, and (B, Q) the row of that action."""
        shares = replace(actions, segments=actions.segments / self.config.max_length)
        number = assign_queries(outputs.logits[:, -1:], outputs.segments[:, -1:], shares)[:, 0]
        return number >= 0, number.clamp(min=0)

    @property
    def counts_positives(self) -> bool:
        """Whether losses are normalised by the actions of all processes."""
        return True

    def loss(self, outputs: E2eTadOutputs, actions: Actions) -> Losses:
        """Compute the losses of classes, boundaries and overlaps of every layer, and of actionness.

        Args:
            actions: in frames of the clip.
        """
        shares = replace(actions, segments=actions.segments.to(outputs.segments.dtype) / self.config.max_length)
        predictions = outputs.logits, outputs.segments
        terms = layer_losses(*predictions, assign_queries(*predictions, shares), shares, self.counted)
        aware = actionness_loss(
            outputs.actionness, outputs.segments[:, -1], shares, self.counted, reproduce_bugs=self.config.reproduce_bugs
        )
        names = ("classification", "regression", "iou")
        total = WEIGHTS["actionness"] * aware
        total = total + sum(WEIGHTS[name] * term.sum() for name, term in zip(names, terms, strict=True))
        others = {"iou": terms[2][-1], "actionness": aware}
        for number in range(self.config.decoder_layers - 1):
            others |= {f"{name}_{number}": term[number] for name, term in zip(names, terms, strict=True)}
        return Losses(total, terms[0][-1], terms[1][-1], actions.present.sum(), others)

    def decode(self, outputs: E2eTadOutputs) -> list[Candidates]:
        """Return the likeliest segments of each clip, in frames, by falling score."""
        config = self.config
        likely = outputs.logits[:, -1].sigmoid() * outputs.actionness[..., None]
        segments = ends(outputs.segments[:, -1]) * config.max_length
        decoded = []
        for i in range(len(likely)):
            score, pair = likely[i].flatten().sort(descending=True, stable=True)
            above = (score > config.min_probability)[: config.top_candidates]
            score, pair = score[: len(above)][above], pair[: len(above)][above]
            decoded.append(Candidates.of(segments[i, pair // config.classes], score, pair % config.classes))
        return decoded

    def merge_clips(self, parts: Sequence[tuple[int, Candidates]], count: int) -> Candidates:
        """Merge the candidates of all clips, suppressing duplicates where two clips overlap."""
        candidates, length = join_candidates(parts), self.config.max_length
        firsts = [first for first, _ in parts]
        overlaps = [(later, first + length) for first, later in pairwise(firsts)]
        config = self.config
        return candidates.take(
            overlap_nms(*candidates.columns, overlaps, threshold=config.threshold, reproduce_bugs=config.reproduce_bugs)
        )

    def suppress(self, candidates: Candidates) -> Candidates:
        """Return all candidates by falling score: set predictions need no suppression."""
        return candidates.take(np.argsort(-candidates.scores, kind="stable")[: self.config.max_segments])


_PUPPETS = E2eTadConfig(
    dim=64, classes=16, max_length=96, fps=6.0, frame_size=112, crop=96, clip_stride=72, max_segments=200,
    backbone="tsm18", backbone_width=0.25, fixed_norms=False,  # nobody has learned them before
    encoder_layers=2, decoder_layers=3, mlp_dim=128, queries=24,
)  # fmt: skip

VARIANTS = {
    "e2e_tad": ("E2E-TAD with settings of your own, from those for THUMOS14 with SlowFast.", E2eTadConfig()),
    "e2e_tad_thumos_slowfast": (
        "E2E-TAD for THUMOS14 with SlowFast, as published: ten frames a second, in clips of 256.",
        E2eTadConfig(),
    ),
    "e2e_tad_thumos_tsm18": (
        "E2E-TAD for THUMOS14 with TSM of 18 layers: 96 frames of the same 25.6 seconds; the rate is jostle's own.",
        E2eTadConfig(backbone="tsm18", max_length=96, fps=3.75, clip_stride=72),
    ),
    "e2e_tad_thumos_tsm50": (
        "E2E-TAD for THUMOS14 with TSM of 50 layers: 96 frames of the same 25.6 seconds; the rate is jostle's own.",
        E2eTadConfig(backbone="tsm50", max_length=96, fps=3.75, clip_stride=72),
    ),
    "e2e_tad_anet_slowfast": (
        "E2E-TAD for ActivityNet with SlowFast, as far as it is published: a video in a clip of 384 frames.",
        E2eTadConfig(classes=200, max_length=384, fps=None, clip_stride=384),
    ),
    "e2e_tad_anet_tsm50": (
        "E2E-TAD for ActivityNet with TSM of 50 layers, as far as it is published: a video in a clip of 96 frames.",
        E2eTadConfig(classes=200, max_length=96, fps=None, clip_stride=96, backbone="tsm50"),
    ),
    "e2e_tad_puppets": ("E2E-TAD in a small size for videos of puppets; jostle's own.", _PUPPETS),
}
detector_variants(E2ETAD, VARIANTS)
