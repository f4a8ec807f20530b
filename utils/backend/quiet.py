"""Loads Keras and its backend without the start-up messages of their C++ code, which mean nothing to users.

A script calls :func:`silence_tensorflow` in the command that needs a model, and imports the modules that load
Keras right after that, not at the top of the file: TensorFlow reads its settings while it loads, and
``--help`` should not wait the seconds that loading takes.
"""

import os
import re
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from types import ModuleType
from typing import Any

from utils.backend.devices import grow_gpu_memory
from utils.errors import ConfigError, missing_package

# Messages of C++ code that ignore the log level: of TensorFlow 2.21 before its logging starts, and of LiteRT
# and its converter at any time.
NATIVE_MESSAGE = re.compile(
    rb"[IWE]\d{4} \d\d:\d\d|\d{4}-\d\d-\d\d .*: [IWE] |WARNING: All log messages|To enable the following"
    rb"|INFO: Created TensorFlow Lite|fully_quantize: "
)


def silence_tensorflow() -> None:
    """Import Keras and the backend that KERAS_BACKEND names, without start-up messages.

    With another backend, TensorFlow is not loaded. ``TF_CPP_MIN_LOG_LEVEL`` is set to 2 unless the user has
    set it, so that later errors are shown; at levels 0 and 1 nothing is suppressed. Other output to standard
    error during the import is printed at its end. The reason why no GPU is found is suppressed too.

    Raises:
        UserError: Keras or TensorFlow isn't installed.
        ConfigError: another backend isn't installed, or Keras has no backend of this name.
    """
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    if "keras" in sys.modules:
        return
    show_all = os.environ["TF_CPP_MIN_LOG_LEVEL"] in ("0", "1")
    with nullcontext() if show_all else hide_native_messages():
        keras = _import_keras()
        if keras.backend.backend() == "tensorflow":
            grow_gpu_memory()  # the search for a GPU prints messages: do it here
        else:
            # Keras and TensorBoard import TensorFlow if it is installed. This makes that import fail, which
            # saves seconds and GPU memory.
            modules: dict[str, Any] = sys.modules
            modules.setdefault("tensorflow", None)


def _import_keras() -> ModuleType:
    try:
        import keras
    except (ImportError, ValueError) as error:  # ValueError: Keras has no backend of this name
        if isinstance(error, ModuleNotFoundError) and error.name in ("keras", "tensorflow"):
            raise missing_package(error.name) from error
        raise ConfigError(
            f"Keras can't load its backend '{os.environ.get('KERAS_BACKEND', 'tensorflow')}' ({error})",
            hint="set KERAS_BACKEND to an installed one; requirements/backends.txt says how to install them",
        ) from error
    return keras


@contextmanager
def hide_native_messages() -> Iterator[None]:
    """Collect what is written to file descriptor 2 in the block; then print all but ``NATIVE_MESSAGE``."""
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
