"""Loads Keras and its backend without the native start-up messages that no user of ours can act on.

A script calls :func:`silence_tensorflow` in the command that needs a model, and imports what loads Keras
right after it, there. That is our one exception to imports at the top: TensorFlow reads its settings while it
is loaded, nothing of ours runs at import, and ``--help`` answers without the seconds that loading takes.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from types import ModuleType

from utils.backend.devices import grow_gpu_memory
from utils.errors import ConfigError

# Lines that the C++ side writes past its own log level: before its logging is set up (TensorFlow 2.21), and
# by LiteRT and its converter at any time.
NATIVE_MESSAGE = re.compile(
    rb"[IWE]\d{4} \d\d:\d\d|\d{4}-\d\d-\d\d .*: [IWE] |WARNING: All log messages|To enable the following"
    rb"|INFO: Created TensorFlow Lite|fully_quantize: "
)


def silence_tensorflow() -> None:
    """Import Keras (and the backend that KERAS_BACKEND names) quietly; later calls cost nothing.

    Another backend than TensorFlow keeps it out of the process. Sets ``TF_CPP_MIN_LOG_LEVEL=2`` unless
    the user has set it, so that real errors still show afterwards. What is written to the standard error
    while loading is passed on at its end, without native log lines; at the levels 0 and 1 all is shown. The
    reason why no GPU is found is among what is held back: :func:`utils.backend.devices.no_gpu_messages` asks
    for it.

    Raises:
        ConfigError: the backend isn't installed, or Keras knows none of this name.
    """
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    if "keras" in sys.modules:
        return
    wanted = os.environ["TF_CPP_MIN_LOG_LEVEL"] in ("0", "1")
    with nullcontext() if wanted else hide_native_messages():
        keras = _import_keras()
        if keras.backend.backend() == "tensorflow":
            grow_gpu_memory()  # looking for a GPU complains if there is none: have that happen here
        else:
            # Keras and TensorBoard take TensorFlow where it is installed, whatever the backend: this keeps it
            # out (an import then fails, as if it weren't there), and with it seconds and a GPU's memory.
            sys.modules.setdefault("tensorflow", None)


def _import_keras() -> ModuleType:
    try:
        import keras
    except (ImportError, ValueError) as error:  # ValueError: Keras knows no backend of this name
        what = f"Keras can't load its backend '{os.environ.get('KERAS_BACKEND', 'tensorflow')}' ({error})"
        hint = "set KERAS_BACKEND to an installed one; requirements/backends.txt says how to install them"
        raise ConfigError(what, hint=hint) from error
    return keras


@contextmanager
def hide_native_messages() -> Iterator[None]:
    """Hold back file descriptor 2 (C++ doesn't write through sys.stderr); then pass on all but the notes."""
    sys.stderr.flush()
    kept = os.dup(2)
    with tempfile.TemporaryFile() as caught:
        os.dup2(caught.fileno(), 2)
        try:
            yield
        finally:
            sys.stderr.flush()
            os.dup2(kept, 2)
            os.close(kept)
            caught.seek(0)
            for line in caught:
                if not NATIVE_MESSAGE.match(line):
                    os.write(2, line)
