"""Chooses the voices of synthetic speech, espeak-ng's own and generated ones, for train, dev and test.

No voice is in two splits, and neither are similar voices. The synthesiser has about 90 usable voices
of its own. A model trained on 60 of them makes four times as many errors on the unusual ones among the
others, mostly on high and fast voices. Generated voices fill the space between and around them: other heads,
throats, registers and speeds, and the roughness and echo of the unusual ones. Their ranges are those of the
variants of espeak-ng 1.52, without the values that destroy the tones.
"""

from dataclasses import dataclass

import numpy as np

from data.manifest import SPLITS
from utils.errors import CorpusError, require

# Variants of espeak-ng's Mandarin voice (_ for a blank) by pitch; similar ones are joined by + and stay in
# one split. The position of a variant in the list is the speaker's number. Of the 104 variants of espeak-ng
# 1.52 these are left out, after measuring 46 syllables of each:
# - no voiced sound, so no tones: whisper, whisperf, caleb;
# - a pitch that hardly moves, or moves the wrong way: Alex, AnxiousAndy, aunty, robosoft6, robosoft8;
# - more than a quarter of the syllables are closer to another syllable of the mean voice than to the same
#   one: Alicia, Annie, Demonic, Lee, ian, kaukovalta, norbert, shelby, zac;
# - crashes occasionally: rob (and Demonic);
# The variants in _NEAR_DUPLICATES are nearly the same as the one before the colon and add little: they are
# used only if more voices are requested than there are distinct ones, and only in the train split.
_LOW = """
    Andy Denis Diogo Gene Jacky Marco Mario Michael Mike Mr_serious Nguyen
    Reed+adam+benjamin+edward+klatt+klatt3+klatt4 RicishayMax+RicishayMax2+RicishayMax3 Storm Tweaky
    UniRobot announcer antonio boris croak david ed fast+john+m6 grandpa gustave iven+iven2+iven4 m1
    m2 m3 m4 m5 m7 m8 marcelo max mike2 pablo paul pedro quincy robert
    robosoft+robosoft2+robosoft4+robosoft7 sandro travis victor
"""
_HIGH = """
    Andrea anika+anikaRobot belinda f1 f2+f5 f3 f4 grandma linda steph
"""
_REGISTERS = tuple(
    tuple(tuple(name.replace("_", " ") for name in family.split("+")) for family in names.split())
    for names in (_LOW, _HIGH)
)
_NEAR_DUPLICATES = {
    "Diogo": ("Henrique", "Hugo", "michel", "miguel"),
    "adam": ("Gene2", "klatt2", "klatt5", "klatt6"),
    "benjamin": ("edward2",),
    "iven": ("iven3",),
    "robosoft": ("robosoft3", "robosoft5"),
    "steph": ("steph2", "steph3"),
}
DISTINCT_VOICES = tuple(voice for families in _REGISTERS for family in families for voice in family)
VOICES = DISTINCT_VOICES + tuple(voice for voices in _NEAR_DUPLICATES.values() for voice in voices)

_DEV_FRACTION, _TEST_FRACTION = 1 / 12, 1 / 6  # of the voices
_GENERATED_KEY, _ASSIGNMENT_KEY = 5, 6  # purposes of random generators

_BASE_HZ = (60.0, 260.0)  # range of the lowest pitch of a voice
_PITCH_RATIO = (1.25, 1.65)  # highest pitch over lowest: tones need a wide range
_HEAD = (0.86, 1.2)  # range of the factor for all formants, relative to espeak-ng's default voice
_KLATT_MODELS = 6  # the synthesiser's alternative models of voiced sound
_FAST_MS = (10.0, 150.0)  # syllable lengths of fast voices: up to six syllables a second instead of four
_FAST, _KLATT, _ROUGH, _ECHO, _BREATHY, _FILTERED = 0.5, 0.3, 0.35, 0.3, 0.15, 0.5  # probabilities
_FORMANTS = (
    # Ranges of relative frequency, height and width; formant 0 is the hum below the first formant.
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


@dataclass(frozen=True, slots=True)
class Voice:
    """A speaker.

    Attributes:
        name: a short name, the beginning of file names: ``S012``, or ``M003`` if it is generated.
        variant: the synthesiser's name of the voice.
        definition: lines of a variant file if it is generated; ``variant`` is then only a name.
    """

    name: str
    variant: str
    definition: str = ""


def generate_voices(count: int, seed: int) -> list[Voice]:
    """Generate ``count`` voices; more of them begin with the same ones."""
    definitions = (random_definition(np.random.default_rng([seed, _GENERATED_KEY, i])) for i in range(count))
    return [
        Voice(f"M{number:03d}", f"made {number}", definition)
        for number, definition in enumerate(definitions, start=1)
    ]


def assign_voices(count: int, rng: np.random.Generator) -> dict[str, list[Voice]]:
    """Assign ``count`` of ``VOICES`` to train, dev and test; similar voices go to one split.

    Args:
        count: 3 (one for each split) to all; near-duplicates are used last, and only in train.
        rng: the source of randomness.
    """
    families = _shuffled_families(rng)
    dev = max(1, round(count * _DEV_FRACTION))
    test = max(1, round(count * _TEST_FRACTION))
    assigned: dict[str, list[Voice]] = {"dev": [], "test": [], "train": []}
    for split, size in (("dev", dev), ("test", test), ("train", count - dev - test)):
        while families and len(assigned[split]) < size:
            family = families.pop()
            if split == "train" and count > len(DISTINCT_VOICES):
                family += tuple(variant for name in family for variant in _NEAR_DUPLICATES.get(name, ()))
            # The rest of a family is not used at all.
            chosen = family[: size - len(assigned[split])]
            assigned[split] += [Voice(f"S{VOICES.index(name) + 1:03d}", name) for name in chosen]
    return assigned


def assign_all_voices(count: int, seed: int) -> dict[str, list[Voice]]:
    """Assign ``count`` voices to train, dev and test: voices of the synthesiser, and generated ones.

    At most half of them are voices of the synthesiser, which differ less from each other than people do.

    Raises:
        CorpusError: too few voices for three splits.
    """
    require(count >= 6, f"{count} voices", hint="at least 6: two for each split", error=CorpusError)
    rng = np.random.default_rng([seed, _ASSIGNMENT_KEY])
    own = assign_voices(min(len(DISTINCT_VOICES), count // 2), rng)
    generated = generate_voices(count - sum(map(len, own.values())), seed)
    dev, test = (max(1, round(len(generated) * part)) for part in (_DEV_FRACTION, _TEST_FRACTION))
    parts = {"dev": generated[:dev], "test": generated[dev : dev + test], "train": generated[dev + test :]}
    return {split: own[split] + parts[split] for split in SPLITS}


def _shuffled_families(rng: np.random.Generator) -> list[tuple[str, ...]]:
    """Shuffle the families, the high voices evenly among the low ones: each split has some of both."""
    positions: list[tuple[float, tuple[str, ...]]] = []
    for families in _REGISTERS:
        order = rng.permutation(len(families))
        positions += [((rank + 0.5) / len(order), families[i]) for rank, i in enumerate(order)]
    return [family for _, family in sorted(positions)]


def random_definition(rng: np.random.Generator) -> str:
    """Draw the lines of a variant file; equal generators give equal definitions."""
    base = np.exp(rng.uniform(*np.log(_BASE_HZ)))
    # High voices mostly come from small heads.
    head = float(np.clip((base / 120.0) ** 0.15 * rng.uniform(0.9, 1.12), *_HEAD))
    lines = ["language variant", f"pitch {base:.0f} {base * rng.uniform(*_PITCH_RATIO):.0f}"]
    if rng.random() < _FAST:
        length = rng.uniform(*_FAST_MS)
        lines.append(f"stressLength {' '.join(f'{length * rng.uniform(0.9, 1.1):.0f}' for _ in range(8))}")
    if rng.random() < _KLATT:
        lines.append(f"klatt {rng.integers(1, _KLATT_MODELS + 1)}")
    for number, (frequency, height, width) in enumerate(_FORMANTS):
        percent = 100 * rng.uniform(*frequency) * (head if number else 1.0)
        lines.append(f"formant {number} {percent:.0f} {rng.uniform(*height):.0f} {rng.uniform(*width):.0f}")
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
        # A piecewise linear filter: ascending frequencies, each with an amplitude (0 to 255).
        frequencies = np.sort(rng.uniform(100, 3_500, rng.integers(2, 6)))
        lines.append(f"tone {' '.join(f'{hz:.0f} {rng.uniform(30, 255):.0f}' for hz in frequencies)}")
    return "\n".join(lines) + "\n"
