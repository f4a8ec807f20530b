"""Draws a recording's spectrogram, its syllables and their CTC posteriors as one picture over time.

From top to bottom: the spectrogram; the recognised syllables; the missed syllables of the reference, if any;
the blank. The width of the picture is exactly the time of the recording, so that the position of a player can
be drawn on it. Syllables are put into as few lanes as their names need. The posterior of each syllable is
drawn only around its own time, because elsewhere it belongs to other occurrences; the height of a lane is
probability 1. Names are readable at a width of 350 pixels (a phone) and at 1200.
"""

import io
import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import matplotlib
import numpy as np
from PIL import Image, ImageDraw, ImageFont

from analysis.page.rendering import PLAYED_RATE, data_address
from utils.features.settings import FeatureConfig
from utils.features.speech import extract_features
from utils.hypotheses.inspection import Inspection

WIDTH = 1200  # pixels; a phone shows about 350
SPECTROGRAM_HEIGHT, LANE_HEIGHT, GAP = 240, 40, 4  # pixels
FONT_SIZE = 30  # pixels
RIGHT, WRONG, MISSED = "right", "wrong", "missed"
INK = {RIGHT: "#18181b", WRONG: "#9a3412", MISSED: "#5b21b6"}
FILL = {RIGHT: (143, 211, 203), WRONG: (253, 186, 116), MISSED: (196, 181, 253)}
BLANK_FILL, LANE, BETWEEN, BOUND = (212, 212, 216), (255, 255, 255), (161, 161, 170), (228, 228, 231)
# Long frames resolve the harmonics of a voice, whose course is the tone.
SPECTROGRAM = FeatureConfig(kind="filter_bank", frame_ms=40.0, window="hamming", normalise="none")
RANGE = np.log(1e6)  # of power: 60 dB below the maximum is black
QUALITY = 80  # of WebP: about 30 kB a picture, compared with 200 kB as PNG

Span = tuple[int, int]  # pixels from the left; the end is exclusive


@dataclass(frozen=True)
class Shown:
    """A syllable in a lane.

    Attributes:
        name: text of the syllable.
        column: class of the syllable in the posteriors; None if the model does not have this class.
        start, end: estimated time of the syllable in seconds.
        kind: :data:`RIGHT` or :data:`WRONG` for the output, :data:`MISSED` for the reference.
    """

    name: str
    column: int | None
    start: float
    end: float
    kind: str


def draw_posteriors(
    samples: np.ndarray, inspection: Inspection, recognised: Sequence[Shown], missed: Sequence[Shown]
) -> Image.Image:
    """Draw the picture, :data:`WIDTH` pixels wide.

    Args:
        samples: (samples,) float in [-1, 1] at ``PLAYED_RATE``.
        inspection: posteriors of the model.
        recognised: syllables of the output in order of time; their bounds are drawn.
        missed: syllables of the reference that were not recognised, in order of time.
    """
    seconds = len(samples) / PLAYED_RATE
    bounds = sorted(
        {_pixel(edge, seconds) for syllable in recognised for edge in (syllable.start, syllable.end)}
        - {0, WIDTH}
    )
    tracks = [_spectrogram(samples, bounds)]
    names: list[tuple[int, int, Shown]] = []  # left edge, middle from the top, syllable
    for group in (recognised, missed) if missed else (recognised,):
        top = sum(len(track) + GAP for track in tracks)
        track, placed = _lanes(group, inspection, seconds, bounds)
        names += [(left, top + middle, syllable) for left, middle, syllable in placed]
        tracks.append(track)
    tracks.append(_lane(bounds))
    _fill(tracks[-1], inspection.posteriors[:, -1], (0, WIDTH), BLANK_FILL, inspection, seconds)
    gap = np.full((GAP, WIDTH, 3), BETWEEN, np.uint8)
    parts = [part for track in tracks for part in (gap, track)][1:]
    picture = Image.fromarray(np.concatenate(parts))
    draw = ImageDraw.Draw(picture)
    for left, middle, syllable in names:
        draw.text((left, middle), syllable.name, font=_font(), fill=INK[syllable.kind], anchor="lm")
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
    column_middles = (np.arange(WIDTH) + 0.5) / WIDTH * len(samples)  # in samples
    position = np.interp(column_middles, middles, np.arange(len(level)))  # in frames, between two of them
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
    """The lanes of one track, and the positions of the names: left edge, middle from the track's top."""
    spans = [_span(syllable, seconds) for syllable in group]
    numbers = first_free(spans)
    track = np.concatenate([_lane(bounds) for _ in range(max(numbers, default=0) + 1)])
    for number in set(numbers):
        members = [i for i, other in enumerate(numbers) if other == number]
        meeting = [(spans[i][1] + spans[j][0]) // 2 for i, j in itertools.pairwise(members)]
        lane = track[number * LANE_HEIGHT : (number + 1) * LANE_HEIGHT]
        for i, (left, right) in zip(members, itertools.pairwise([0, *meeting, WIDTH]), strict=True):
            syllable = group[i]
            if syllable.column is not None:
                start, end = (_pixel(edge, seconds) for edge in around(syllable, inspection))
                part, posterior = (
                    (max(left, start), min(right, end)),
                    inspection.posteriors[:, syllable.column],
                )
                _fill(lane, posterior, part, FILL[syllable.kind], inspection, seconds)
        lane[:, bounds] = BOUND  # drawn last, to separate neighbours
    middles = [number * LANE_HEIGHT + LANE_HEIGHT // 2 for number in numbers]
    lefts = [_left(syllable, seconds) for syllable in group]
    return track, list(zip(lefts, middles, group, strict=True))


def around(syllable: Shown, inspection: Inspection) -> tuple[float, float]:
    """(start, end) in seconds of the posterior of a syllable: its time with a frame on each side.

    The peak of a missed syllable may lie just outside the bounds of its substitute.
    """
    return syllable.start - inspection.frame_seconds, syllable.end + inspection.frame_seconds


def first_free(spans: Sequence[Span]) -> list[int]:
    """For each span, the first lane in which it overlaps no earlier span; spans are ordered by start."""
    ends: list[int] = []
    numbers = []
    for start, end in spans:
        number = next((i for i, taken in enumerate(ends) if taken <= start), len(ends))
        ends[number : number + 1] = [end]
        numbers.append(number)
    return numbers


def _span(syllable: Shown, seconds: float) -> Span:
    """The part of a lane that a syllable needs for its time and its name."""
    left = _left(syllable, seconds)
    end = max(left + _name_width(syllable), _pixel(syllable.end, seconds))
    return min(left, _pixel(syllable.start, seconds)), end


def _left(syllable: Shown, seconds: float) -> int:
    """The left edge of the name: the start of the syllable, moved into the picture if necessary."""
    return max(0, min(_pixel(syllable.start, seconds) + GAP, WIDTH - _name_width(syllable)))


def _name_width(syllable: Shown) -> int:
    return int(_font().getlength(syllable.name)) + 2 * GAP


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
    """Fill a part of a lane up to the height of the posterior (T',)."""
    start, end = part
    times = (np.arange(start, end) + 0.5) / WIDTH * seconds
    heights = np.rint(posterior[inspection.frames(times)] * LANE_HEIGHT)  # (end - start,)
    coloured = LANE_HEIGHT - np.arange(LANE_HEIGHT)[:, None] <= heights
    lane[:, start:end][coloured] = colour


def _pixel(time: float, seconds: float) -> int:
    return round(min(max(time / seconds, 0.0), 1.0) * WIDTH)


@lru_cache(maxsize=1)
def _font() -> ImageFont.FreeTypeFont:
    """The font of matplotlib, which has all letters of pinyin with tone marks."""
    return ImageFont.truetype(
        Path(matplotlib.get_data_path()) / "fonts" / "ttf" / "DejaVuSans.ttf", FONT_SIZE
    )


@lru_cache(maxsize=1)
def _colours() -> np.ndarray:
    """A colour for each of 256 levels, perceptually uniform: (256, 3) uint8."""
    return (255 * matplotlib.colormaps["magma"](np.arange(256))[:, :3]).astype(np.uint8)
