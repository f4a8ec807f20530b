"""Requests on the standard input, speech on the standard output: the child process that holds espeak-ng.

``espeak-ng`` (GPL-3.0, from the wheel ``espeakng-loader``) is loaded here and nowhere else;
``synthesiser.py`` starts this module as a program of its own and talks to it through pipes. It imports
nothing of ours.

A request is a line of JSON: ``{"voice": "f3", "text": "ni3 hao3", "speed": 175, "pitch": 50, "range": 50}``.
The reply is a line of JSON and the speech: ``{"samples": n}`` and n 16-bit samples at 22,050 Hz, or
``{"error": why}``. With a ``"definition"``, the lines of a variant file, ``voice`` is only its name. With
``"trace": true`` the reply is ``{"phonemes": [...]}`` instead: what is really said, a list for each stretch
without a pause.

Every request is answered by a fork of this process, for two reasons found by measuring:

- espeak-ng dies (segmentation fault) on rare pairs of voice and text; so only the fork is lost;
- what it says depends on what it said before, even after it was initialised anew. A fork always starts in the
  same state, so an utterance is the same whichever process makes it, and in whatever order.

What the voice ``cmn`` makes of pinyin with tone digits, each syllable a word (the tests hold its trace
against every syllable of the grammar):

- each syllable has phonemes of its own; but xiong, qiong, jiong are spelled out as English letters and have
  to be given as phonemes. ü after l and n is written v; lü, lu:, jv are not understood.
- the neutral tone is the digit 5 (a syllable without a digit is read as English); its pitch is 22, 33, 44 or
  11 after the tones 1 to 4.
- a third tone before a third tone becomes a second, over words and in chains (我想买水: 2 2 2 3), not over a
  comma; before any other tone it is low ("half third", 21). The tones of 不 and 一 are left as written.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

SAMPLE_RATE = 22050  # Hz
LANGUAGE = "cmn"
FORK_SECONDS = 10  # a fork still busy after this hangs; a usual utterance takes 6 ms

# From espeak-ng's speak_lib.h.
_AUDIO_OUTPUT_SYNCHRONOUS = 2
_RATE, _PITCH, _RANGE = 1, 3, 4
_CHARS_UTF8, _PHONEMES = 1, 0x100  # the text is UTF-8; [[...]] in it are phonemes
_CALLBACK = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_short), ctypes.c_int, ctypes.c_void_p)


class Espeak:
    """The library, initialised; ``say`` and ``trace`` speak once in the state they find.

    Args:
        own: an empty folder, for variants that requests define.
    """

    def __init__(self, own: Path) -> None:
        import espeakng_loader  # only the child that speaks loads the GPL library

        self._library = ctypes.CDLL(espeakng_loader.get_library_path())
        data = _own_data(Path(espeakng_loader.get_data_path()), own)
        self._made = data / "voices" / "!v" / "made"
        self._variants = {path.name for path in self._made.parent.iterdir()}
        rate = self._library.espeak_Initialize(_AUDIO_OUTPUT_SYNCHRONOUS, 0, os.fsencode(data), 0)
        if rate != SAMPLE_RATE:
            raise RuntimeError(f"espeak-ng speaks at {rate} Hz instead of {SAMPLE_RATE}")
        self._heard: list[bytes] = []
        self._callback = _CALLBACK(self._hear)  # kept: the library calls it for as long as it lives
        self._library.espeak_SetSynthCallback(self._callback)
        # The dictionary takes longer to load than a sentence to say: load it once, before the forks.
        self._library.espeak_SetVoiceByName(LANGUAGE.encode())

    def say(self, request: dict) -> bytes:
        """16-bit samples of a request's text."""
        variant = request["voice"]
        if request.get("definition"):
            variant = self._made.name
            self._made.write_text(request["definition"], encoding="utf-8")
        elif variant and variant not in self._variants:  # the library itself would speak with its plain voice
            raise ValueError(f"espeak-ng has no voice {variant!r}")
        name = f"{LANGUAGE}+{variant}" if variant else LANGUAGE
        self._library.espeak_SetVoiceByName(name.encode())
        for parameter, key in ((_RATE, "speed"), (_PITCH, "pitch"), (_RANGE, "range")):
            self._library.espeak_SetParameter(parameter, int(request[key]), 0)
        text = request["text"].encode() + b"\0"
        self._library.espeak_Synth(text, len(text), 0, 1, 0, _CHARS_UTF8 | _PHONEMES, None, None)
        return b"".join(self._heard)

    def trace(self, request: dict) -> list[list[str]]:
        """The phonemes said: one list for each stretch between pauses, one mnemonic a syllable."""
        libc = ctypes.CDLL(None)
        libc.fopen.restype = ctypes.c_void_p
        with tempfile.NamedTemporaryFile() as file:
            stream = ctypes.c_void_p(libc.fopen(file.name.encode(), b"w"))
            self._library.espeak_SetPhonemeTrace(1, stream)
            self.say(request)
            libc.fflush(stream)
            lines = file.read().decode().splitlines()
        return [[part.strip() for part in line.split("_|") if part.strip()] for line in lines]

    def _hear(self, samples: object, count: int, _events: object) -> int:
        if samples and count > 0:
            self._heard.append(ctypes.string_at(samples, count * 2))
        return 0


def _own_data(data: Path, own: Path) -> Path:
    """espeak-ng's data as links in a folder of our own, where variants can be added."""
    variants = own / "voices" / "!v"
    variants.mkdir(parents=True)
    for source, folder in (
        (data, own),
        (data / "voices", own / "voices"),
        (data / "voices" / "!v", variants),
    ):
        for path in source.iterdir():
            if not (folder / path.name).exists():
                (folder / path.name).symlink_to(path)
    return own


def answer(espeak: Espeak, request: dict) -> bytes:
    """The whole reply to a request: a line of JSON, then the samples."""
    try:
        if request.get("trace"):
            return _line({"phonemes": espeak.trace(request)})
        samples = espeak.say(request)
    except (KeyError, TypeError, ValueError) as error:
        return _line({"error": str(error)})
    return _line({"samples": len(samples) // 2}) + samples


def serve(reply_in_fork: Callable[[dict], bytes], replies: int) -> None:
    """Answer the requests on the standard input until it ends, each in a fork of this process.

    Args:
        reply_in_fork: what the fork calls; it may crash or hang.
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
            why = f"died of {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
            _write(replies, _line({"error": why}))


def _line(value: dict) -> bytes:
    return json.dumps(value).encode() + b"\n"


def _write(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]


def main() -> None:
    """Serve; whatever the library prints goes to the standard error, not among the replies."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to handle; it closes our input
    replies = os.dup(sys.stdout.fileno())
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    espeak = Espeak(Path(sys.argv[1]))
    serve(lambda request: answer(espeak, request), replies)


if __name__ == "__main__":
    main()
