"""The request for a wake word (word, clips, recipe, calibration), with a key that identifies its result."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from data.synthesis.wake_word_clips import WakeWordSettings
from data.synthesis.wake_words import WakeWord
from utils.config import flatten, read_yaml, with_overrides

RECIPE = Path(__file__).parents[1] / "configs" / "keyword" / "wake_word.yaml"


@dataclass(frozen=True)
class Request:
    """A request for a wake word.

    Attributes:
        word: word to detect.
        output: folder for all results.
        settings: settings of the clips.
        config: recipe (training config).
        overrides: values that replace those of the recipe.
        backgrounds: recordings without the word.
        alarms_per_hour: allowed false alarms per hour.
        hours: duration of the synthesised speech for the calibration.
        workers: number of synthesisers, and of processes that read clips.
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
    def clips(self) -> Path:
        """Folder of the clips."""
        return self.output / "clips"

    @property
    def key(self) -> dict[str, Any]:
        """What the result depends on besides the clips: the recipe of the training, and the calibration."""
        states = [(path, path.stat()) for path in self.backgrounds]
        recordings = [[str(path), state.st_size, state.st_mtime_ns] for path, state in states]
        return {
            "recipe": flatten(with_overrides(read_yaml(self.config), self.overrides)),
            "background": recordings,
            "alarms_per_hour": self.alarms_per_hour,
            "hours": self.hours,
        }
