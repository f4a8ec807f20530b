"""The models in the memory that all workers share.

They take most of the memory of a worker, and do not change. The process from which workers are forked imports
this module before (:func:`share_models` says of which runs), so that each worker has them at once.
"""

import ctypes
import gc
import os
from contextlib import suppress
from multiprocessing import get_context
from pathlib import Path

from model_speech.packed_run import is_packed
from serving.work.models import Models
from utils.backend.onnx_session import session_threads
from utils.errors import UserError
from utils.run_folder.run import RunFolder

_SPEECH, _LANGUAGE = "SPEECH_SHARED_FOR", "SPEECH_SHARED_CONVERTER"  # environment variables: run folders
Runs = tuple[Path, Path]


def share_models(speech: Path, language: Path, *modules: str) -> None:
    """Processes of the method ``forkserver`` have the models of two runs and ``modules`` from their start."""
    os.environ[_SPEECH], os.environ[_LANGUAGE] = str(speech), str(language)
    get_context("forkserver").set_forkserver_preload([*modules, __name__])


def models_of(speech: Path, language: Path) -> Models:
    """The models of two runs: the shared ones, or new ones.

    Raises:
        UserError: a run is damaged or of another kind.
    """
    return _SHARED.get((speech, language)) or Models(speech, language)


def _of_environment() -> dict[Runs, Models]:
    if _LANGUAGE not in os.environ:
        return {}
    speech, language = Path(os.environ[_SPEECH]), Path(os.environ[_LANGUAGE])
    # Threads are lost in a fork, and what needs them hangs: those of Keras, and of networks with several.
    if RunFolder(language).best_weights.is_file():
        return {}
    try:
        models = Models(speech, language)
        if is_packed(RunFolder(speech)) and session_threads() == 1:
            models.load_networks()
    except UserError:
        return {}  # the workers meet the same error and report it
    gc.freeze()  # collections would write to the shared pages
    with suppress(AttributeError):  # only glibc has it: memory that loading took goes back to the system
        ctypes.CDLL(None).malloc_trim(0)
    return {(speech, language): models}


_SHARED = _of_environment()
"""The models by their run folders."""
