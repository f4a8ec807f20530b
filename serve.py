"""Serve recognition over HTTP and WebSocket, so that OpenAI's clients can use it."""

from utils.command.entry import run_command

import os
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path

from utils.command.arguments import language_run, not_negative, positive
from utils.command.parser import CommandParser
from utils.errors import ConfigError
from utils.run_folder.run import open_run

COMMON_OPTIONS = ("--host", "--port", "--tokens", "--speech", "--language", "--origin", "--workers")
EXAMPLES = """\
examples:
  python serve.py                                   # http://127.0.0.1:8000, this machine only
  python serve.py --port 9000 --workers 4
  python serve.py --speech runs/compact --language runs/ngram
  python serve.py --host 0.0.0.0 --tokens tokens.txt

Needs: pip install -r requirements/serve.txt. Without --speech and --language the models of this project are
used (pretrained/). A public address needs a token: one a line in a file, or in the environment variable
SPEECH_TOKENS. Ctrl-C and SIGTERM end the service after every accepted request is answered.

  curl -F file=@recording.wav http://127.0.0.1:8000/v1/audio/transcriptions

Every option but --tokens can be set in the environment too: SPEECH_PORT=9000, SPEECH_ORIGINS="https://a.org
https://b.org". docs/serving.md describes the requests, and how to run the service behind a proxy.
"""


def main(arguments: Sequence[str] | None = None) -> None:
    """Parse the command line, serve until a signal."""
    parser = _parser()
    parser.set_environment_defaults("SPEECH_", leave_out=("tokens", "origins"))
    origins = os.environ.get("SPEECH_ORIGINS", "").split()
    options = parser.parse_args(arguments)
    try:
        from serving.server import serve
        from serving.settings import Settings, read_tokens
        from utils.vocabulary import Vocabulary
    except ModuleNotFoundError as error:
        raise ConfigError(
            f"the package {error.name} is missing", hint="pip install -r requirements/serve.txt"
        ) from error
    given = {name: value for name, value in vars(options).items() if value is not None}
    names = {each.name for each in fields(Settings)}
    given["tokens"] = read_tokens(options.tokens, os.environ)
    given["origins"] = tuple(options.origins or origins)
    settings = Settings(**{name: value for name, value in given.items() if name in names})
    # A wrong folder is reported before processes start.
    speech = open_run(settings.speech, "speech")
    vocabulary = Vocabulary.load(speech.vocabulary("acoustic.txt"))
    vocabulary.require_tonal_syllables("the service needs an acoustic model", speech.path)
    open_run(settings.language, "language")
    serve(settings)


def _parser() -> CommandParser:
    parser = CommandParser(description=__doc__, epilog=EXAMPLES, common=COMMON_OPTIONS)
    parser.add_argument("--host", help="address to listen on (default: 127.0.0.1, this machine only)")
    parser.add_argument("--port", type=not_negative, help="default: 8000; 0 is any free one")
    parser.add_argument("--tokens", type=Path, metavar="FILE", help="tokens that give access, one a line")
    parser.add_argument("--speech", type=Path, metavar="RUN", help="run of the acoustic model")
    parser.add_argument("--language", type=language_run, metavar="RUN", help="run of the language model")
    parser.add_argument(
        "--origin",
        action="append",
        dest="origins",
        metavar="URL",
        help="pages of this origin (https://example.org) may use the service from a browser",
    )
    parser.add_argument(
        "--workers", type=positive, metavar="N", help="processes that recognise (default: one for each core)"
    )
    parser.add_argument(
        "--live-workers", type=positive, metavar="N", help="processes for live streams (default: one a core)"
    )
    limits = parser.add_argument_group("limits")
    limits.add_argument(
        "--requests", type=positive, metavar="N", help="requests at the same time (default: 64)"
    )
    limits.add_argument("--connections", type=positive, metavar="N", help="open connections (default: 512)")
    limits.add_argument("--rate", type=positive, metavar="N", help="requests of a client per minute")
    limits.add_argument(
        "--upload-megabytes", type=float, metavar="MB", help="size of a request (default: 100)"
    )
    limits.add_argument(
        "--upload-seconds", type=float, metavar="S", help="length of a recording (default: 14400)"
    )
    limits.add_argument(
        "--receive-seconds", type=float, metavar="S", help="time for each part of a request (default: 20)"
    )
    limits.add_argument(
        "--streams", type=positive, metavar="N", help="live streams at the same time (default: 32)"
    )
    limits.add_argument(
        "--stream-seconds", type=float, metavar="S", help="length of a live stream (default: 14400)"
    )
    limits.add_argument(
        "--stream-idle-seconds",
        type=float,
        metavar="S",
        help="time without audio in a live stream (default: 60)",
    )
    return parser


if __name__ == "__main__":
    run_command(main)
