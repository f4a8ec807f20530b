"""Child process that speaks with espeak-ng: reads requests from standard input, writes samples to its output.

``espeak-ng`` (GPL-3.0, from the wheel ``espeakng-loader``) is loaded only here; ``synthesiser.py`` starts
this module as a separate program and communicates with it through pipes. The module imports nothing from this
repository.

A request is a line of JSON: ``{"voice": "f3", "text": "ni3 hao3", "speed": 175, "pitch": 50, "range": 50}``.
The reply is a line of JSON and the speech: ``{"samples": n}`` and n 16-bit samples at 22,050 Hz, or
``{"error": why}``. With a ``"definition"``, the lines of a variant file, ``voice`` is only a name.

Every request is answered by a fork of this process, for two reasons that experiments showed:

- espeak-ng crashes (segmentation fault) on rare pairs of voice and text; then only the fork is lost;
- its output depends on its earlier output, even after a new initialisation. A fork always starts in the same
  state, so an utterance does not depend on the process that speaks it, or on the order.

How the voice ``cmn`` reads pinyin with tone digits, each syllable a word (as its phonemes show for every
syllable of the grammar):

- each syllable has its own phonemes; but xiong, qiong, jiong are spelled as English letters and must be
  written as phonemes. ü after l and n is written v; lü, lu:, jv are not understood.
- the neutral tone is the digit 5 (a syllable without a digit is read as English); its pitch is 22, 33, 44 or
  11 after the tones 1 to 4.
- a third tone before a third tone becomes a second, across words and in chains (我想买水: 2 2 2 3), but not
  across a comma; before any other tone it is low ("half third", 21). The tones of 不 and 一 stay as written.
"""

import ctypes
import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

SAMPLE_RATE = 22050  # Hz
LANGUAGE = "cmn"
FORK_SECONDS = 10  # after this a fork counts as hung; a typical utterance takes 6 ms

# From espeak-ng's speak_lib.h.
_AUDIO_OUTPUT_SYNCHRONOUS = 2
_RATE, _PITCH, _RANGE = 1, 3, 4
_CHARS_UTF8, _PHONEMES = 1, 0x100  # the text is UTF-8; [[...]] in it are phonemes
_SEED = 1  # of the library's random numbers
_CALLBACK = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_short), ctypes.c_int, ctypes.c_void_p)


class Espeak:
    """The initialised library; ``synthesise`` is meant to be called once, in a fork.

    Args:
        folder: an empty folder, for variants that requests define.
    """

    def __init__(self, folder: Path) -> None:
        import espeakng_loader  # only the child that speaks loads the GPL library

        self._library = ctypes.CDLL(espeakng_loader.get_library_path())
        data = _link_data(Path(espeakng_loader.get_data_path()), folder)
        self._definition = data / "voices" / "!v" / "made"
        self._variants = {path.name for path in self._definition.parent.iterdir()}
        rate = self._library.espeak_Initialize(_AUDIO_OUTPUT_SYNCHRONOUS, 0, os.fsencode(data), 0)
        if rate != SAMPLE_RATE:
            raise RuntimeError(f"espeak-ng speaks at {rate} Hz instead of {SAMPLE_RATE}")
        self._samples: list[bytes] = []
        self._callback = _CALLBACK(self._receive)  # keeps a reference: the library calls it
        self._library.espeak_SetSynthCallback(self._callback)
        # Loading the dictionary takes longer than speaking a sentence: load it once, before the forks.
        self._library.espeak_SetVoiceByName(LANGUAGE.encode())

    def synthesise(self, request: dict) -> bytes:
        """Speak a request's text; returns 16-bit samples."""
        variant = request["voice"]
        if request.get("definition"):
            variant = self._definition.name
            self._definition.write_text(request["definition"], encoding="utf-8")
        elif variant and variant not in self._variants:  # the library would use its default voice
            raise ValueError(f"espeak-ng has no voice {variant!r}")
        name = f"{LANGUAGE}+{variant}" if variant else LANGUAGE
        self._library.espeak_SetVoiceByName(name.encode())
        for parameter, key in ((_RATE, "speed"), (_PITCH, "pitch"), (_RANGE, "range")):
            self._library.espeak_SetParameter(parameter, int(request[key]), 0)
        # Breathy voices have random noise, seeded with the time by default: seed each request.
        self._library.espeak_ng_SetRandSeed(ctypes.c_long(_SEED))
        ctypes.CDLL(None).srand(_SEED)
        text = request["text"].encode() + b"\0"
        self._library.espeak_Synth(text, len(text), 0, 1, 0, _CHARS_UTF8 | _PHONEMES, None, None)
        return b"".join(self._samples)

    def _receive(self, samples: Any, count: int, _events: object) -> int:
        if samples and count > 0:
            self._samples.append(ctypes.string_at(samples, count * 2))
        return 0


def _link_data(data: Path, folder: Path) -> Path:
    """Link espeak-ng's data into a folder in which variants can be added; returns the folder."""
    (folder / "voices" / "!v").mkdir(parents=True)
    for name in ("", "voices", "voices/!v"):
        for path in (data / name).iterdir():
            link = folder / name / path.name
            if not link.exists():
                link.symlink_to(path)
    return folder


def answer(espeak: Espeak, request: dict) -> bytes:
    """Make the complete reply to a request: a line of JSON, then the samples."""
    try:
        samples = espeak.synthesise(request)
    except (KeyError, TypeError, ValueError) as error:
        return _line({"error": str(error)})
    return _line({"samples": len(samples) // 2}) + samples


def serve(reply_in_fork: Callable[[dict], bytes], replies: int) -> None:
    """Answer the requests on standard input until it ends, each in a fork of this process.

    Args:
        reply_in_fork: called in the fork; it may crash or hang.
        replies: the file descriptor to write to.
    """
    for line in sys.stdin.buffer:
        child = os.fork()
        if child == 0:
            signal.alarm(FORK_SECONDS)
            _write(replies, reply_in_fork(json.loads(line)))
            os._exit(0)
        _, status = os.waitpid(child, 0)
        if status != 0:
            code = os.waitstatus_to_exitcode(status)
            reason = f"died of {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
            _write(replies, _line({"error": reason}))


def _line(value: dict) -> bytes:
    return json.dumps(value).encode() + b"\n"


def _write(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]


def main() -> None:
    """Serve; output of the library goes to standard error, so that it does not mix with the replies."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles Ctrl-C and closes our input
    replies = os.dup(sys.stdout.fileno())
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    espeak = Espeak(Path(sys.argv[1]))
    serve(lambda request: answer(espeak, request), replies)


if __name__ == "__main__":
    main()
