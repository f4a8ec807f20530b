"""A number in, a made-up voice out: a variant file of espeak-ng whose every part is drawn by chance.

The synthesiser has some 90 usable voices of its own, and a model that heard 60 of them errs four times as
often on the odd ones among the others as on the plain, most of all on those that speak fast and high. Made
voices fill the space between and around them: other heads, throats, registers and speeds, and the buzzing and
echoing of the odd ones. The ranges below are those of
the variants that come with espeak-ng 1.52, without the values that take a voice its tones.
"""

from __future__ import annotations

import numpy as np

_BASE_HZ = (60.0, 260.0)  # of the pitch
_MOVES = (1.25, 1.65)  # highest pitch over lowest: tones need room
_HEAD = (0.86, 1.2)  # all formants together, against the plain voice
_KLATT_MODELS = 6  # the synthesiser's other ways to make a voiced sound
_HASTY_MS = (10.0, 150.0)  # syllables of those: they say up to six a second where the usual voices say four
_HASTY, _KLATT, _ROUGH, _ECHO, _BREATHY, _FILTERED = 0.5, 0.3, 0.35, 0.3, 0.15, 0.5  # how often
_FORMANTS = (
    # Frequency beside the head's, height, width; formant 0 is the hum below the first.
    ((0.85, 1.15), (80, 200), (80, 140)),
    ((0.88, 1.14), (60, 150), (75, 165)),
    ((0.88, 1.14), (55, 130), (70, 165)),
    ((0.86, 1.14), (50, 120), (70, 150)),
    ((0.8, 1.2), (40, 120), (70, 130)),
    ((0.85, 1.2), (30, 120), (70, 130)),
    ((0.85, 1.15), (20, 100), (65, 130)),
    ((0.85, 1.15), (0, 110), (90, 150)),
    ((0.85, 1.15), (0, 110), (90, 150)),
)


def made_voice(rng: np.random.Generator) -> str:
    """Lines of a variant file; equal generators give equal voices."""
    base = np.exp(rng.uniform(*np.log(_BASE_HZ)))
    # High voices come from small heads, mostly.
    head = float(np.clip((base / 120.0) ** 0.15 * rng.uniform(0.9, 1.12), *_HEAD))
    lines = ["language variant", f"pitch {base:.0f} {base * rng.uniform(*_MOVES):.0f}"]
    if rng.random() < _HASTY:
        length = rng.uniform(*_HASTY_MS)
        lines.append(f"stressLength {' '.join(f'{length * rng.uniform(0.9, 1.1):.0f}' for _ in range(8))}")
    if rng.random() < _KLATT:
        lines.append(f"klatt {rng.integers(1, _KLATT_MODELS + 1)}")
    for number, (frequency, height, width) in enumerate(_FORMANTS):
        at = 100 * rng.uniform(*frequency) * (head if number else 1.0)
        lines.append(f"formant {number} {at:.0f} {rng.uniform(*height):.0f} {rng.uniform(*width):.0f}")
    lines.append(f"flutter {rng.integers(0, 8)}")
    lines.append(f"voicing {rng.uniform(30, 150):.0f}")
    lines.append(f"consonants {rng.uniform(50, 150):.0f} {rng.uniform(40, 150):.0f}")
    if rng.random() < _ROUGH:
        lines.append(f"roughness {rng.integers(1, 8)}")
    if rng.random() < _ECHO:
        lines.append(f"echo {rng.integers(8, 60)} {np.exp(rng.uniform(np.log(30), np.log(10_000))):.0f}")
    if rng.random() < _BREATHY:
        lines.append(f"breath {' '.join(str(rng.integers(0, 12)) for _ in range(8))}")
    if rng.random() < _FILTERED:
        lines.append(f"tone {_filter(rng)}")
    return "\n".join(lines) + "\n"


def _filter(rng: np.random.Generator) -> str:
    """Frequency and amplitude (0 to 255) of some points, ascending; straight between them."""
    frequencies = np.sort(rng.uniform(100, 3_500, rng.integers(2, 6)))
    return " ".join(f"{frequency:.0f} {rng.uniform(30, 255):.0f}" for frequency in frequencies)
