"""The score that a phrase in a stream must reach, by its number of syllables and the allowed false alarms.

Short phrases resemble more of what people say, so they need a higher score. Scores of one acoustic model are
not those of another: ``python -m recognition.phrases.fit_thresholds`` chooses the thresholds of a run and
writes ``phrase_thresholds.json`` into it. A run without this file uses that of its initial run, or else
:data:`DEFAULT`.
"""

import json
import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from utils.errors import ConfigError, RunError
from utils.run_folder.checksums import verified
from utils.run_folder.run import RunFolder


@dataclass(frozen=True)
class PhraseThresholds:
    """Thresholds at a few rates of false alarms.

    Attributes:
        alarms_per_hour: (N,) rates, increasing: false alarms of one phrase in an hour of other speech.
        scores: number of syllables → (N,) least scores, one for each rate. The highest number also serves
            longer phrases.
    """

    alarms_per_hour: tuple[float, ...]
    scores: Mapping[int, tuple[float, ...]]

    def at(self, alarms_per_hour: float, syllables: Sequence[int]) -> np.ndarray:
        """The threshold of each phrase (P,), interpolated over the logarithm of the rate.

        Args:
            alarms_per_hour: allowed false alarms of each phrase in an hour of other speech.
            syllables: (P,) number of syllables of each phrase.

        Raises:
            ConfigError: the allowed false alarms are outside of the fitted ones.
        """
        if not alarms_per_hour > 0:
            raise ConfigError(f"{alarms_per_hour:g} false alarms an hour", hint="above 0, e.g. 1")
        lowest, highest = self.alarms_per_hour[0], self.alarms_per_hour[-1]
        if not lowest <= alarms_per_hour <= highest:
            raise ConfigError(
                f"{alarms_per_hour:g} false alarms an hour: the thresholds of this model are for "
                f"{lowest:g} to {highest:g}",
                hint=f"choose a number from {lowest:g} to {highest:g}",
            )
        log_rate, rates, longest = math.log(alarms_per_hour), np.log(self.alarms_per_hour), max(self.scores)
        return np.array([np.interp(log_rate, rates, self.scores[min(n, longest)]) for n in syllables])


DEFAULT = PhraseThresholds(
    (0.2, 1.0, 3.0),
    {1: (0.0, 0.0, 0.0), 2: (-0.9, -4.4, -6.7), 3: (-11.4, -13.4, -15.6), 4: (-17.5, -20.8, -22.8)},
)
"""Thresholds of ``pretrained/audio_to_pinyin``, fitted on sentences of dev speakers: those of its file."""


def load_phrase_thresholds(run: Path) -> PhraseThresholds:
    """Read the thresholds of a speech run, or else of its initial run.

    Those of an initial run with the same model and features are taken, because adaptation changes little. If
    there are none, a note is printed, and the result is :data:`DEFAULT`.

    Raises:
        RunError: a file is damaged or changed.
    """
    paths = [RunFolder(folder).phrase_thresholds for folder in (run, *_initial_run(run))]
    path = next((path for path in paths if path.is_file()), None)
    if path is None:
        message = f"note: {run} has no {paths[0].name}: it is used with the thresholds of the shipped model;"
        command = f"python -m recognition.phrases.fit_thresholds {run} --manifest dev.tsv --words words.txt"
        print(f"{message} to choose its own: {command}", file=sys.stderr)
        return DEFAULT
    try:
        content = json.loads(verified(path).read_text(encoding="utf-8"))
        rates = tuple(float(rate) for rate in content["alarms_per_hour"])
        scores = {int(key): tuple(map(float, values)) for key, values in content["scores"].items()}
        lengths = {len(values) for values in scores.values()}
        if sorted(scores) != list(range(1, len(scores) + 1)) or lengths != {len(rates)}:
            raise ValueError("one score for each rate, from one syllable on")
        if min(rates) <= 0 or any(second <= first for first, second in pairwise(rates)):
            raise ValueError("rates above 0, increasing")
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        hint = "to write it again: python -m recognition.phrases.fit_thresholds (see --help)"
        raise RunError(f"the thresholds of phrases are damaged ({error})", where=path, hint=hint) from error
    return PhraseThresholds(rates, scores)


def _initial_run(run: Path) -> list[Path]:
    """The run with the initial weights of ``run``, if there is one with the same model and features."""
    config = _config(run)
    source = config.get("initialise_from")
    initial = _config(Path(source)) if source else {}
    is_same = all(config.get(name) == initial.get(name) for name in ("model", "features"))
    return [Path(source)] if source and is_same else []


def _config(run: Path) -> dict[str, Any]:
    folder = RunFolder(run)
    return folder.config() if folder.config_file.is_file() else {}
