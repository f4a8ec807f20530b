"""What a wake word is to be made of: word, clips, recipe, calibration; a finished one is known by it."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from data.synthesis.wake_word_clips import WakeWordSettings
from data.synthesis.wake_words import WakeWord
from utils.config import flatten, read_yaml, with_overrides

RECIPE = Path(__file__).parents[1] / "configs" / "keyword" / "wake_word.yaml"


@dataclass(frozen=True)
class Request:
    """What is asked for.

    Attributes:
        word: to be heard.
        output: folder of everything.
        settings: of the clips.
        config: recipe of the training; ``overrides`` win over its values.
        backgrounds: recordings without the word.
        alarms_per_hour: allowed false alarms.
        hours: of synthesised speech that is listened to.
        workers: synthesisers, and processes that read clips.
    """

    word: WakeWord
    output: Path
    settings: WakeWordSettings = field(default_factory=WakeWordSettings)
    config: Path = RECIPE
    overrides: tuple[str, ...] = ()
    backgrounds: tuple[Path, ...] = ()
    alarms_per_hour: float = 1.0
    hours: float = 1.0
    workers: int = 2

    @property
    def key(self) -> dict[str, Any]:
        """What the result depends on, beside the clips: the recipe of the training, and the calibration."""
        recordings = [[str(path), path.stat().st_size] for path in self.backgrounds]
        return {
            "recipe": flatten(with_overrides(read_yaml(self.config), self.overrides)),
            "background": recordings,
            "alarms_per_hour": self.alarms_per_hour,
            "hours": self.hours,
        }
