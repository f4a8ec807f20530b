"""Recordings in; their texts out, by a service of this project and OpenAI's own client, unchanged.

    python serve.py &
    python examples/transcribe_with_openai.py examples/recordings/common_voice_18776500.ogg
    python examples/transcribe_with_openai.py --format srt talk.m4a
    python examples/transcribe_with_openai.py --stream --url https://speech.example.org/v1 talk.m4a

Needs: pip install openai. The token is in the environment variable OPENAI_API_KEY, as for OpenAI's service.
"""

import argparse
import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import openai


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the texts, or what is wrong in one line."""
    parser = _parser()
    options = parser.parse_args(arguments)
    try:
        transcribe(options)
    except openai.APIConnectionError:
        parser.exit(2, f"error: no service at {options.url}; start python serve.py\n")
    except (FileNotFoundError, openai.APIStatusError) as error:
        parser.exit(2, f"error: {error}\n")


def transcribe(options: argparse.Namespace) -> None:
    """Send each recording, print the answer."""
    client = openai.OpenAI(base_url=options.url, api_key=os.environ.get("OPENAI_API_KEY", "none"))
    send: Any = partial(client.audio.transcriptions.create, model="whisper-1", prompt=options.words)
    for path in options.recordings:
        if options.stream:
            for event in send(file=path, stream=True):
                if event.type == "transcript.text.delta":
                    print(event.delta, end="", flush=True)
            print()
        elif options.format == "words":
            answer = send(file=path, response_format="verbose_json", timestamp_granularities=["word"])
            for word in answer.words or []:
                print(f"{word.start:.2f}\t{word.end:.2f}\t{word.word}")
        else:
            answer = send(file=path, response_format=options.format)
            print(answer if isinstance(answer, str) else answer.text)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("recordings", nargs="+", type=Path, help="WAV, FLAC, OGG, MP3, M4A, WebM …")
    parser.add_argument("--url", default="http://127.0.0.1:8000/v1", help="default: %(default)s")
    forms = ("json", "text", "srt", "vtt", "words")
    parser.add_argument("--format", choices=forms, default="json", help="default: %(default)s")
    parser.add_argument("--words", default="", help="words to prefer, one a line")
    parser.add_argument("--stream", action="store_true", help="print the text while it is recognised")
    return parser


if __name__ == "__main__":
    main()
