"""A recording's samples, its CTC posteriors and the syllables of interest in; one picture over time out.

From top to bottom: the spectrogram; the recognised syllables; those of the reference that were missed, if
any; the blank. Its width is the recording's time and nothing else, so that a player's position can be drawn
on it. Syllables stand in as few lanes as their names need side by side. Each one's posterior is drawn around
its own time, since another occurrence of the syllable is not meant: as high as the lane is probability 1.
Names can be read at a width of 350 pixels, as on a phone, and don't shout at 1200.
"""

from __future__ import annotations

import io
import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import matplotlib
import numpy as np
from PIL import Image, ImageDraw, ImageFont

from analysis.page.data_urls import PLAYED_RATE, data_address
from utils.features.speech import FeatureConfig, extract_features
from utils.hypotheses.recognition import Inspection

WIDTH = 1200  # pixels, of which a phone shows some 350
SPECTROGRAM_HEIGHT, LANE_HEIGHT, GAP = 240, 40, 4
FONT_SIZE = 30
RIGHT, WRONG, MISSED = "right", "wrong", "missed"
INK = {RIGHT: "#18181b", WRONG: "#9a3412", MISSED: "#5b21b6"}
FILL = {RIGHT: (143, 211, 203), WRONG: (253, 186, 116), MISSED: (196, 181, 253)}
BLANK_FILL, LANE, BETWEEN, BOUND = (212, 212, 216), (255, 255, 255), (161, 161, 170), (228, 228, 231)
# Long frames, in which a voice's harmonics stand apart: their course is the tone.
SPECTROGRAM = FeatureConfig(kind="filter_bank", frame_ms=40.0, window="hamming", normalise="none")
RANGE = np.log(1e6)  # of power: what is 60 dB below the loudest is black
QUALITY = 80  # of WebP: some 30 kB a picture, where PNG takes 200

Span = tuple[int, int]  # pixels from the left, the second not included


@dataclass(frozen=True)
class Shown:
    """A syllable that has a part of a lane.

    Attributes:
        name: as it is written there.
        column: its class among the posteriors; None if the model has no such class.
        start, end: seconds that it is thought to take.
        kind: :data:`RIGHT` or :data:`WRONG` of the output, :data:`MISSED` of the reference.
    """

    name: str
    column: int | None
    start: float
    end: float
    kind: str


def draw_posteriors(
    samples: np.ndarray, inspection: Inspection, heard: Sequence[Shown], missed: Sequence[Shown]
) -> Image.Image:
    """The picture, :data:`WIDTH` wide, as high as it needs.

    Args:
        samples: (samples,) float in [-1, 1] at ``PLAYED_RATE``.
        inspection: what the model made of them.
        heard: recognised syllables, in order of time; their bounds are drawn.
        missed: syllables of the reference that were not recognised, in order of time.
    """
    seconds = len(samples) / PLAYED_RATE
    bounds = sorted({_pixel(edge, seconds) for one in heard for edge in (one.start, one.end)} - {0, WIDTH})
    tracks = [_spectrogram(samples, bounds)]
    names: list[tuple[int, int, Shown]] = []  # left edge, middle from the top, and what to write there
    for group in (heard, missed) if missed else (heard,):
        top = sum(len(track) + GAP for track in tracks)
        track, placed = _lanes(group, inspection, seconds, bounds)
        names += [(left, top + middle, one) for left, middle, one in placed]
        tracks.append(track)
    tracks.append(_lane(bounds))
    _fill(tracks[-1], inspection.posteriors[:, -1], (0, WIDTH), BLANK_FILL, inspection, seconds)
    gap = np.full((GAP, WIDTH, 3), BETWEEN, np.uint8)
    parts = [part for track in tracks for part in (gap, track)][1:]
    picture = Image.fromarray(np.concatenate(parts))
    draw = ImageDraw.Draw(picture)
    for left, middle, one in names:
        draw.text((left, middle), one.name, font=_font(), fill=INK[one.kind], anchor="lm")
    return picture


def picture_address(picture: Image.Image) -> str:
    """A picture as WebP."""
    encoded = io.BytesIO()
    picture.save(encoded, format="WEBP", quality=QUALITY)
    return data_address("image/webp", encoded.getvalue())


def _spectrogram(samples: np.ndarray, bounds: Sequence[int]) -> np.ndarray:
    """Log-mel power in colours, low frequencies at the bottom: (SPECTROGRAM_HEIGHT, WIDTH, 3) uint8."""
    power = extract_features(samples, SPECTROGRAM)  # (T, bins)
    level = np.clip(1 + (power - power.max()) / RANGE, 0, 1)
    middles = np.arange(len(level)) * SPECTROGRAM.hop_samples + SPECTROGRAM.frame_samples / 2
    wanted = (np.arange(WIDTH) + 0.5) / WIDTH * len(samples)  # the sample at each column's middle
    position = np.interp(wanted, middles, np.arange(len(level)))  # in frames, between two of them
    before = position.astype(int)
    after, part = np.minimum(before + 1, len(level) - 1), (position - before)[:, None]
    columns = (1 - part) * level[before] + part * level[after]  # (WIDTH, bins)
    grey = Image.fromarray(np.uint8(255 * columns.T[::-1]))  # (bins, WIDTH)
    grey = grey.resize((WIDTH, SPECTROGRAM_HEIGHT), Image.Resampling.BILINEAR)
    colours = _colours()[np.asarray(grey)]
    colours[:, bounds] = colours[:, bounds] // 2 + 127  # half white
    return colours


def _lanes(
    group: Sequence[Shown], inspection: Inspection, seconds: float, bounds: Sequence[int]
) -> tuple[np.ndarray, list[tuple[int, int, Shown]]]:
    """The lanes of one track, and where the names belong: left edge, middle from the track's top."""
    spans = [_span(one, seconds) for one in group]
    numbers = first_free(spans)
    track = np.concatenate([_lane(bounds) for _ in range(max(numbers, default=0) + 1)])
    for number in set(numbers):
        members = [i for i, other in enumerate(numbers) if other == number]
        meeting = [(spans[i][1] + spans[j][0]) // 2 for i, j in itertools.pairwise(members)]
        lane = track[number * LANE_HEIGHT : (number + 1) * LANE_HEIGHT]
        for i, (left, right) in zip(members, itertools.pairwise([0, *meeting, WIDTH]), strict=True):
            one = group[i]
            if one.column is not None:
                start, end = (_pixel(edge, seconds) for edge in around(one, inspection))
                part = max(left, start), min(right, end)
                _fill(lane, inspection.posteriors[:, one.column], part, FILL[one.kind], inspection, seconds)
        lane[:, bounds] = BOUND  # also through what is filled: it parts neighbours
    middles = [number * LANE_HEIGHT + LANE_HEIGHT // 2 for number in numbers]
    lefts = [_left(one, seconds) for one in group]
    return track, list(zip(lefts, middles, group, strict=True))


def around(one: Shown, inspection: Inspection) -> tuple[float, float]:
    """The seconds in which a syllable's posterior says something of it: its own and a frame before and after.

    What was missed may have had its peak just beyond the bounds of what was heard instead.
    """
    return one.start - inspection.frame_seconds, one.end + inspection.frame_seconds


def first_free(spans: Sequence[Span]) -> list[int]:
    """The number of the first lane in which each span touches none before it; spans by ascending start."""
    ends: list[int] = []
    numbers = []
    for start, end in spans:
        number = next((i for i, taken in enumerate(ends) if taken <= start), len(ends))
        ends[number : number + 1] = [end]
        numbers.append(number)
    return numbers


def _span(one: Shown, seconds: float) -> Span:
    """What a syllable needs of its lane: its time and its name."""
    left = _left(one, seconds)
    return min(left, _pixel(one.start, seconds)), max(left + _name_width(one), _pixel(one.end, seconds))


def _left(one: Shown, seconds: float) -> int:
    """Where the name begins: with the syllable, unless it would leave the picture."""
    return max(0, min(_pixel(one.start, seconds) + GAP, WIDTH - _name_width(one)))


def _name_width(one: Shown) -> int:
    return int(_font().getlength(one.name)) + 2 * GAP


def _lane(bounds: Sequence[int]) -> np.ndarray:
    """An empty lane with the bounds of syllables: (LANE_HEIGHT, WIDTH, 3) uint8."""
    lane = np.full((LANE_HEIGHT, WIDTH, 3), LANE, np.uint8)
    lane[:, bounds] = BOUND
    return lane


def _fill(
    lane: np.ndarray,
    posterior: np.ndarray,
    part: Span,
    colour: tuple[int, int, int],
    inspection: Inspection,
    seconds: float,
) -> None:
    """Colour a part of a lane as high as the posterior (T',) is there."""
    start, end = part
    times = (np.arange(start, end) + 0.5) / WIDTH * seconds
    frames = np.minimum((times / inspection.frame_seconds).astype(int), len(posterior) - 1)
    heights = np.rint(posterior[frames] * LANE_HEIGHT)  # (end - start,)
    coloured = LANE_HEIGHT - np.arange(LANE_HEIGHT)[:, None] <= heights
    lane[:, start:end][coloured] = colour


def _pixel(time: float, seconds: float) -> int:
    return round(min(max(time / seconds, 0.0), 1.0) * WIDTH)


@lru_cache(maxsize=1)
def _font() -> ImageFont.FreeTypeFont:
    """The font that comes with matplotlib: it has all letters of pinyin with tone marks."""
    return ImageFont.truetype(
        Path(matplotlib.get_data_path()) / "fonts" / "ttf" / "DejaVuSans.ttf", FONT_SIZE
    )


@lru_cache(maxsize=1)
def _colours() -> np.ndarray:
    """A colour for each of 256 levels, evenly brighter to the eye: (256, 3) uint8."""
    return np.uint8(255 * matplotlib.colormaps["magma"](np.arange(256))[:, :3])
