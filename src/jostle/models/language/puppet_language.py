"""Small model that answers questions about films of puppets and finds sentences in them; its weights are shipped.

Frames are seen by the frozen `puppet_net` and as thumbnails of their colours. Phrases of the question and of its
options are compared with every moment; when, how often and beside what each happens decides between the options.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from jostle.errors import CheckpointError
from jostle.io.video.source import file_fingerprint
from jostle.models.checkpoints import read_metadata, read_note, read_weights
from jostle.models.extractors.puppet_net import FRAME_DIM, SPEC, PuppetNet
from jostle.models.language.interface import Answer, Question, Sentence, Windows
from jostle.models.recognition.recogniser import load_weights
from jostle.models.rows import RowBatches
from jostle.models.weights.packaged import trained_weights, weights_file

NAME = "puppet_language"
FRAMES = 192  # of a video that it is given
AT_ONCE = 32  # frames that the extractor sees together
REMEMBERED = 4096  # frames whose features are kept
LEAST_STEP_S = 0.05  # between two frames
ORDINALS = ("first", "second", "third", "fourth")
LEVELS = (0.3, 0.5, 0.7)  # of the highest probability, above which something happens
MOST = 10  # windows for a sentence
THUMBNAIL = 14  # pixels along each side
WORDS = 12  # of a phrase that are read
PARTS = 3  # of an option, divided by ", then "
DIM = 96
REACHES = (1, 2, 4, 8, 1)  # steps between the moments that a layer joins
DISTANCES = (0.04, 0.12, 0.36)  # shares of a video that count as near
OUTLINE = 5  # numbers that say when a phrase happens
SCORES = 1 + 4 * OUTLINE + PARTS + 2 * len(DISTANCES) + 5 * DIM


class MomentBlock(nn.Module):
    """Residual block that joins each moment with one before and one behind it."""

    def __init__(self, dim: int, reach: int) -> None:
        super().__init__()
        self.reach = reach
        self.norm = nn.LayerNorm(dim)
        self.join = nn.Linear(3 * dim, dim)
        self.mix = nn.Linear(dim, dim)

    def forward(self, moments: Tensor) -> Tensor:
        """Return (B, T, dim) of the same."""
        length = moments.shape[1]
        around = F.pad(self.norm(moments), (0, 0, self.reach, self.reach))
        before, behind = around[:, :length], around[:, 2 * self.reach :]
        joined = self.join(torch.cat([before, around[:, self.reach : self.reach + length], behind], 2))
        output: Tensor = moments + self.mix(F.relu(joined))
        return output


class PuppetLanguageNet(nn.Module):
    """Network over features of frames and bags of words.

    Args:
        words: size of the vocabulary; word 0 is none.
        frame_dim: length of a frame's features.
    """

    def __init__(self, words: int, frame_dim: int = FRAME_DIM) -> None:
        super().__init__()
        self.words = nn.Embedding(words, DIM, padding_idx=0)
        self.phrase = nn.Sequential(nn.Linear(DIM, DIM), nn.ReLU(), nn.Linear(DIM, DIM))
        self.query, self.key = nn.Linear(DIM, DIM), nn.Linear(DIM, DIM)
        self.still, self.moving = nn.BatchNorm1d(frame_dim), nn.BatchNorm1d(frame_dim)
        self.colours = nn.Sequential(nn.Linear(3 * THUMBNAIL**2, 64), nn.ReLU())
        self.frame = nn.Linear(2 * frame_dim + 64 + 1, DIM)
        self.pair = nn.Linear(2 * DIM, DIM)
        self.drop = nn.Dropout(0.1)
        self.blocks = nn.Sequential(*(MomentBlock(DIM, reach) for reach in REACHES))
        self.last = nn.LayerNorm(DIM)
        self.value = nn.Linear(DIM, DIM)
        self.match = nn.Linear(DIM, DIM)
        self.score = nn.Sequential(
            nn.Linear(SCORES, 128), nn.ReLU(), nn.Dropout(0.1), nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, 1)
        )

    def read(self, words: Tensor) -> Tensor:
        """Return (..., DIM) of phrases, (..., WORDS) numbers of words."""
        output: Tensor = self.phrase(self.words(words).sum(-2))
        return output

    def watch(self, features: Tensor, thumbnails: Tensor, step_s: Tensor) -> tuple[Tensor, Tensor]:
        """Return keys and values of moments, each (B, ceil(T / 2), DIM): two frames in their order are one.

        Args:
            features: (B, T, frame_dim) of frames.
            thumbnails: (B, T, 3, THUMBNAIL, THUMBNAIL) from 0 to 1.
            step_s: (B,) seconds from one frame to the next.
        """
        batch, length, dim = features.shape
        still = self.still(features.reshape(-1, dim)).view(features.shape)
        changes = F.pad(features[:, 1:] - features[:, :-1], (0, 0, 1, 0))
        moving = self.moving(changes.reshape(-1, dim)).view(features.shape)
        colours = self.colours(thumbnails.flatten(2) * 4 - 2)
        pace = step_s.log()[:, None, None].expand(batch, length, 1)
        frames = F.relu(self.frame(self.drop(torch.cat([still, moving, colours, pace], 2))))
        if length % 2:
            frames = torch.cat([frames, frames[:, -1:]], 1)
        moments = self.last(self.blocks(self.pair(frames.reshape(batch, -1, 2 * DIM))))
        return self.key(moments), self.value(moments)

    def compare(self, phrases: Tensor, keys: Tensor) -> Tensor:
        """Return (N, P, T) logits that each of the phrases (N, P, DIM) happens at each of the moments (N, T, DIM)."""
        output: Tensor = self.query(phrases) @ keys.transpose(1, 2) / math.sqrt(DIM) - 3
        return output

    def choose(self, question: Tensor, parts: Tensor, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Return (N, O) logits of options, and (N, 1 + O * PARTS, T) logits that question and parts happen.

        Args:
            question: (N, WORDS) words.
            parts: (N, O, PARTS, WORDS) words of the options' parts; 0 where an option has no more.
            keys: (N, T, DIM) of moments; T is 0 without a video.
            values: (N, T, DIM) of moments.
        """
        count, options = parts.shape[:2]
        present = parts[..., 0] > 0
        phrase, pieces = self.read(question), self.read(parts) * present[..., None]
        option = pieces.sum(2) / present.sum(2, keepdim=True).clamp(min=1)  # (N, O, DIM)
        mask = present.float()
        logits = self.compare(torch.cat([phrase[:, None], pieces.flatten(1, 2)], 1), keys)
        if keys.shape[1]:
            outline, happens, place = self._outline(logits)
            value = place @ values
            own, others = value[:, :1], value[:, 1:].view(count, options, PARTS, DIM)
            shared = outline[:, :1].expand(-1, options, -1)
            times = outline[:, 1:].view(count, options, PARTS, OUTLINE) * mask[..., None]
            order = self._order(place[:, 1:].view(count, options, PARTS, -1)) * torch.stack(
                [mask[..., 1], mask[..., 2], mask[..., 2]], 2
            )
            near = self._near(outline[:, 0, 1], happens[:, 1:].view(count, options, PARTS, -1)[:, :, 0])
            video = torch.cat([torch.ones_like(shared[..., :1]), shared, times.flatten(2), order, near], 2)
            scene = torch.cat([own * self.match(option), others[:, :, 0], own.expand(-1, options, -1)], 2)
        else:
            video = option.new_zeros(count, options, SCORES - 5 * DIM)
            scene = option.new_zeros(count, options, 3 * DIM)
        text = torch.cat([phrase[:, None].expand(-1, options, -1), option], 2)
        scores: Tensor = self.score(torch.cat([video, scene, text], 2))[..., 0]
        return scores.masked_fill(~present[..., 0], -torch.inf), logits

    @staticmethod
    def _outline(logits: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return when phrases happen: some numbers, the probability at each moment, and the likeliest moments."""
        happens = logits.sigmoid()
        place = logits.softmax(2)
        times = _times(logits.shape[2], logits)
        middle = place @ times
        spread = (place @ times.square() - middle.square()).clamp(min=0).add(1e-6).sqrt()
        rises = F.relu(happens[..., 1:] - happens[..., :-1]).sum(2) + happens[..., 0]
        outline = torch.stack([logits.amax(2) / 4, middle, spread * 4, rises / 2, happens.mean(2) * 8], 2)
        return outline, happens, place

    @staticmethod
    def _order(place: Tensor) -> Tensor:
        """Return (N, O, 3) probabilities that the first of two parts comes before the second."""
        first, second, third = place.unbind(2)
        early, later = first.cumsum(2), second.cumsum(2)
        return torch.stack([(early * second).sum(2), (later * third).sum(2), (early * third).sum(2)], 2)

    @staticmethod
    def _near(anchor: Tensor, happens: Tensor) -> Tensor:
        """Return (N, O, 6): how near before and behind the moments (N,) something happens, (N, O, T)."""
        offset = (_times(happens.shape[2], happens) - anchor[:, None])[:, None]
        columns = []
        for distance in DISTANCES:
            for side in (-1, 1):
                weight = torch.exp(-(offset * side).clamp(min=0) / distance) * torch.sigmoid(offset * side * 100)
                columns.append((happens * weight).amax(2))
        return torch.stack(columns, 2)


def _times(count: int, like: Tensor) -> Tensor:
    """Return (count,) middles of equal parts of a video, from 0 to 1."""
    return (torch.arange(count, dtype=like.dtype, device=like.device) + 0.5) / count


def split_words(text: str) -> list[str]:
    """Return the words of a phrase.

    >>> split_words("Who kicks?")
    ['who', 'kicks']
    """
    return re.findall(r"[a-z]+", text.lower())


def number_words(text: str, vocabulary: Mapping[str, int]) -> list[int]:
    """Return the numbers of a phrase's words; those that are not in the vocabulary are left out."""
    numbers = [vocabulary[word] for word in split_words(text) if word in vocabulary][:WORDS]
    return numbers + [0] * (WORDS - len(numbers))


def split_option(text: str) -> list[str]:
    """Return the parts of an option.

    >>> split_option("bowing, then kicking")
    ['bowing', 'kicking']
    """
    return text.split(", then ")[:PARTS]


class FrameFeatures:
    """Features of single frames: those of the shipped `puppet_net`, and thumbnails.

    Frames are known by their content: one that a corruption left as it is, or moved to another time, is not seen again.
    """

    def __init__(self) -> None:
        self.network = PuppetNet()
        load_weights("puppet_net", self.network, read_weights(weights_file("puppet_net")))
        self.network.eval()
        self._row_batches = RowBatches(self.network)
        self._known: OrderedDict[bytes, tuple[Tensor, Tensor]] = OrderedDict()

    def __call__(self, frames: npt.NDArray[np.uint8]) -> tuple[Tensor, Tensor]:
        """Return (T, FRAME_DIM) float32 and (T, 3, THUMBNAIL, THUMBNAIL) uint8 of frames (T, H, W, 3)."""
        size = repr(frames.shape[1:]).encode()
        digests = [hashlib.blake2b(frame.tobytes(), digest_size=16, key=size).digest() for frame in frames]
        # Other threads may add frames and drop them meanwhile.
        pairs = {digest: pair for digest in digests if (pair := self._known.get(digest)) is not None}
        new = list({digest: i for i, digest in enumerate(digests) if digest not in pairs}.items())
        at_once = self._frames_at_once(frames[:1])
        for start in range(0, len(new), at_once):
            batch = new[start : start + at_once]
            rows = [row for _, row in batch]
            # Always as many at once, so that what a frame gives does not depend on those beside it.
            features, thumbnails = self._see(frames[rows + rows[-1:] * (at_once - len(rows))])
            pairs |= {digest: (features[i], thumbnails[i]) for i, (digest, _) in enumerate(batch)}
        for digest in digests:
            self._known.pop(digest, None)  # to be the latest
            self._known[digest] = pairs[digest]
        while len(self._known) > REMEMBERED:
            self._known.popitem(last=False)
        return torch.stack([pairs[digest][0] for digest in digests]), torch.stack(
            [pairs[digest][1] for digest in digests]
        )

    @torch.inference_mode()
    def _frames_at_once(self, frame: npt.NDArray[np.uint8]) -> int:
        row = self._scaled(self._pixels(frame))
        return self._row_batches.size("see", self.network.see, row, AT_ONCE)

    @torch.inference_mode()
    def _see(self, frames: npt.NDArray[np.uint8]) -> tuple[Tensor, Tensor]:
        pixels = self._pixels(frames)
        features = self.network.see(self._scaled(pixels))
        return features, F.avg_pool2d(pixels, SPEC.size // THUMBNAIL).round().to(torch.uint8)

    @staticmethod
    def _scaled(pixels: Tensor) -> Tensor:
        return (pixels / 255 - SPEC.mean[0]) / SPEC.std[0]

    @staticmethod
    def _pixels(frames: npt.NDArray[np.uint8]) -> Tensor:
        """Return (T, 3, size, size) values from 0 to 255."""
        pixels = torch.from_numpy(frames).permute(0, 3, 1, 2).float()
        if pixels.shape[2:] == (SPEC.size, SPEC.size):
            return pixels
        return F.interpolate(pixels, (SPEC.size, SPEC.size), mode="bilinear", antialias=True)


class PuppetLanguageModel:
    """Model of questions and of moments for films of puppets.

    Args:
        network: the network that was trained.
        vocabulary: numbers of the words that it knows, from 1.
        treatment: how it was trained, for the record.
    """

    frames = FRAMES

    def __init__(self, network: PuppetLanguageNet, vocabulary: Mapping[str, int], treatment: str) -> None:
        self.network, self.vocabulary, self.treatment = network.eval(), vocabulary, treatment
        self.features = FrameFeatures()

    def describe(self) -> dict[str, object]:
        """Return what goes into the record."""
        extractor = {"extractor": "puppet_net", "extractor_weights": file_fingerprint(weights_file("puppet_net"))}
        size = {"frames": FRAMES, "pixels": [SPEC.size, SPEC.size], "words": len(self.vocabulary)}
        return {"name": NAME, "treatment": self.treatment, **size, **extractor}

    @torch.inference_mode()
    def answer(self, questions: Sequence[Question]) -> list[Answer]:
        """Answer questions; the frames of those about one stretch are seen once."""
        videos: dict[int, tuple[Tensor, Tensor]] = {}
        answers = []
        for question in questions:
            if id(question.frames) not in videos:
                videos[id(question.frames)] = self._watch(question.frames, question.times)
            text, parts = read_question(question.text, question.options, self.vocabulary)
            scores, _ = self.network.choose(text[None], parts[None], *videos[id(question.frames)])
            logs = scores[0].double().log_softmax(0)
            answers.append(Answer(tuple(logs.tolist()), None, int(logs.argmax())))
        return answers

    @torch.inference_mode()
    def locate(self, sentences: Sequence[Sentence]) -> list[Windows]:
        """Find sentences; the frames of one video are seen once."""
        videos: dict[int, Tensor] = {}
        output = []
        for sentence in sentences:
            if id(sentence.frames) not in videos:
                videos[id(sentence.frames)] = self._watch(sentence.frames, sentence.times)[0]
            keys = videos[id(sentence.frames)]
            if not keys.shape[1]:
                output.append(Windows(((0.0, sentence.duration, 0.0),)))
                continue
            plain, ordinal = split_ordinal(sentence.text)
            words = torch.tensor([[number_words(plain, self.vocabulary)]])
            happens = self.network.compare(self.network.read(words), keys)[0, 0].sigmoid()
            output.append(Windows(find_windows(happens.double().numpy(), sentence.duration, ordinal)))
        return output

    def _watch(self, frames: npt.NDArray[np.uint8], times: npt.NDArray[np.float64]) -> tuple[Tensor, Tensor]:
        """Return keys and values of the moments of a video, each (1, ceil(T / 2), DIM)."""
        if not len(frames):
            return torch.zeros(1, 0, DIM), torch.zeros(1, 0, DIM)
        features, thumbnails = self.features(frames)
        step = (float(times[-1]) - float(times[0])) / (len(times) - 1) if len(times) > 1 else 0.0
        return self.network.watch(
            features[None], thumbnails[None].float() / 255, torch.tensor([max(step, LEAST_STEP_S)])
        )


def read_question(text: str, options: Sequence[str], vocabulary: Mapping[str, int]) -> tuple[Tensor, Tensor]:
    """Return a question (WORDS,) and its options (O, PARTS, WORDS) as numbers of words.

    A first part without a known word has the number of the word "a", so that its option can be chosen.
    """
    parts = torch.zeros(len(options), PARTS, WORDS, dtype=torch.int64)
    for i, option in enumerate(options):
        for j, part in enumerate(split_option(option)):
            parts[i, j] = torch.tensor(number_words(part, vocabulary))
    parts[:, 0, 0] = torch.where(parts[:, 0, 0] == 0, vocabulary["a"], parts[:, 0, 0])
    return torch.tensor(number_words(text, vocabulary)), parts


def split_ordinal(sentence: str) -> tuple[str, int | None]:
    """Return a sentence without "for the second time", and which time it is, from 0.

    >>> split_ordinal("A puppet bows for the second time.")
    ('A puppet bows.', 1)
    """
    match = re.search(rf" for the ({'|'.join(ORDINALS)}) time", sentence)
    if match is None:
        return sentence, None
    return sentence[: match.start()] + sentence[match.end() :], ORDINALS.index(match[1])


def find_windows(
    happens: npt.NDArray[np.float64], duration: float, ordinal: int | None = None
) -> tuple[tuple[float, float, float], ...]:
    """Return the stretches in which something is likely, best first, as start, end and score.

    Args:
        happens: probabilities at the middles of equal parts of a video.
        ordinal: which of the likely stretches is meant, from 0; None for the best.
    """
    step = duration / len(happens)
    windows: dict[tuple[float, float], float] = {}
    for level in LEVELS:
        above = np.concatenate([[False], happens >= level * happens.max(), [False]])
        edges = np.flatnonzero(above[1:] != above[:-1]).reshape(-1, 2)
        for number, (first, last) in enumerate(edges.tolist()):
            score = float(happens[first:last].mean() * happens[first:last].max())
            if ordinal is not None:
                score -= abs(number - ordinal)
            window = (first * step, last * step)
            windows[window] = max(windows.get(window, -math.inf), score)
    rows = [(start, end, score) for (start, end), score in windows.items()]
    return tuple(sorted(rows, key=lambda row: (-row[2], row[:2])))[:MOST]


def load_puppet_language(weights: str | Path = "clean") -> PuppetLanguageModel:
    """Load the model with weights `clean` or `robust`, which are shipped, or with those of a file.

    Raises:
        CheckpointError: if the file holds the weights of something else.
    """
    path = trained_weights(NAME, weights)
    words: list[str] = read_note(path, "words", [])
    if not words:
        raise CheckpointError(
            f"{path}: holds no weights of {NAME}; give clean, robust, or what python -m studies.questions wrote",
            fault="F54",
        )
    network = PuppetLanguageNet(len(words) + 1)
    load_weights(NAME, network, read_weights(path))
    return PuppetLanguageModel(
        network, {word: i for i, word in enumerate(words, 1)}, read_metadata(path).get("treatment", "")
    )
