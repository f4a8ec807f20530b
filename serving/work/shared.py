"""The language models in the memory that all workers share.

They take most of the memory of a worker, and do not change. The process from which workers are forked imports
this module before (:func:`share_models` says of which runs), so that each worker has them at once.
"""

import gc
import os
from multiprocessing import get_context
from pathlib import Path

from model_language.converters.base import Converter
from model_language.language_model import HanziLanguageModel
from model_language.registry import load_converter
from recognition.loading import load_language_model_for
from utils.errors import UserError

_SPEECH, _LANGUAGE = "SPEECH_SHARED_FOR", "SPEECH_SHARED_CONVERTER"  # environment variables: run folders
Runs = tuple[Path, Path]
Shared = tuple[Converter, HanziLanguageModel | None]


def share_models(speech: Path, language: Path, *modules: str) -> None:
    """Processes of the method ``forkserver`` have the language models and ``modules`` from their start."""
    os.environ[_SPEECH], os.environ[_LANGUAGE] = str(speech), str(language)
    get_context("forkserver").set_forkserver_preload([*modules, __name__])


def language_models(speech: Path, language: Path) -> Shared:
    """The converter, and the model for a second pass if the speech run has one: the shared ones, or new ones.

    Raises:
        UserError: a run is damaged or of another kind.
    """
    return _SHARED.get((speech, language)) or _loaded(speech, language)


def _loaded(speech: Path, language: Path) -> Shared:
    return load_converter(language), load_language_model_for(speech)


def _of_environment() -> dict[Runs, Shared]:
    if _LANGUAGE not in os.environ:
        return {}
    runs = Path(os.environ[_SPEECH]), Path(os.environ[_LANGUAGE])
    try:
        found = {runs: _loaded(*runs)}
    except UserError:
        return {}  # the workers meet the same error and report it
    gc.freeze()  # collections would write to the shared pages
    return found


_SHARED = _of_environment()
