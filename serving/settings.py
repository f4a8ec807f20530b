"""The settings of the service, checked; access tokens from a file and the environment."""

import ipaddress
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

from utils.errors import ConfigError, require
from utils.limits import Count, Limited, at_least
from utils.run_folder.run import PRETRAINED, PRETRAINED_SPEECH

TOKENS_VARIABLE = "SPEECH_TOKENS"
"""Environment variable with tokens, separated by commas or spaces."""
SHORTEST_TOKEN = 16  # characters
_DEFAULT_PORTS = {"http": 80, "https": 443}
_LOOPBACK_NAMES = {"localhost", "ip6-localhost"}
_Positive = Annotated[float, at_least(1e-3)]


@dataclass(frozen=True)
class Settings(Limited, section="serve"):
    """What a service is to do and what it allows.

    Attributes:
        host, port: where it listens; port 0 is any free one.
        speech, language: run folders of the two models.
        tokens: any of them gives access to everything; none: no token is needed.
        origins: further origins (``https://example.org``) whose pages may use the service from a browser.
        workers: processes that recognise, each with the models in memory.
        upload_megabytes: largest request.
        upload_seconds: longest recording.
        batch_seconds: audio of several requests that a worker computes together; a longer batch makes short
            requests wait longer. A piece of a recording has 20 s at most and may be a batch by itself.
        requests: requests that are processed at the same time; a further one is answered with 429.
        connections: open requests of all clients together.
        rate: requests that a client (its token or address) may begin in a minute; 0: any number.
        receive_seconds: time in which each further part of a request has to arrive.
        live_workers: processes that follow live streams, each with the models in memory.
        streams: live streams at the same time; a further one is refused.
        stream_seconds: sound of a live stream.
        stream_idle_seconds: time without any sound after which a live stream is ended.
    """

    host: str = "127.0.0.1"
    port: Annotated[int, at_least(0)] = 8000
    speech: Path = PRETRAINED_SPEECH
    language: Path = PRETRAINED
    tokens: tuple[str, ...] = field(default=(), repr=False)
    origins: tuple[str, ...] = ()
    workers: Count = field(default_factory=lambda: len(os.sched_getaffinity(0)))
    upload_megabytes: _Positive = 100.0
    upload_seconds: _Positive = 4 * 3600.0
    batch_seconds: _Positive = 10.0
    requests: Count = 64
    connections: Count = 512
    rate: Annotated[int, at_least(0)] = 0
    receive_seconds: _Positive = 20.0
    live_workers: Count = field(default_factory=lambda: len(os.sched_getaffinity(0)))
    streams: Count = 32
    stream_seconds: _Positive = 4 * 3600.0
    stream_idle_seconds: _Positive = 60.0

    def __post_init__(self):
        super().__post_init__()
        for name in ("upload_megabytes", "upload_seconds", "stream_seconds", "stream_idle_seconds"):
            value = getattr(self, name)
            require(math.isfinite(value), f"serve.{name}={value} is not finite", hint="give a large number")
        for origin in self.origins:
            _check_origin(origin)
        if not self.tokens and not is_loopback(self.host):
            raise ConfigError(
                f"the address {self.host} is public and needs a token",
                hint=f"set {TOKENS_VARIABLE}, give --tokens FILE, or listen on 127.0.0.1",
            )

    @property
    def upload_bytes(self) -> int:
        """Bytes of the largest request."""
        return int(self.upload_megabytes * 1e6)


def is_loopback(host: str) -> bool:
    """Whether only programs on this machine reach an address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host in _LOOPBACK_NAMES


def _check_origin(text: str) -> None:
    """Refuse an origin that differs from what browsers send: it would never match.

    Raises:
        ConfigError: it has a path, a default port or capitals, or is no origin.
    """
    try:
        parts = urlsplit(text)
        scheme, host, port = parts.scheme, parts.hostname, parts.port
    except ValueError:
        scheme, host, port = "", None, None
    if not (scheme and host and text.isascii()):
        example = "e.g. --origin https://example.org or --origin http://localhost:3000"
        raise ConfigError(f"{text!r} is not the origin of a page", hint=example)
    shown_host = f"[{host}]" if ":" in host else host
    shown_port = "" if port in (None, _DEFAULT_PORTS.get(scheme)) else f":{port}"
    origin = f"{scheme}://{shown_host}{shown_port}"
    message = f"--origin {text} matches no page: browsers send only scheme, host and port in lower case"
    require(text == origin, f"{message}, without a default port", hint=f"write --origin {origin}")


def read_tokens(path: Path | None, environment: Mapping[str, str]) -> tuple[str, ...]:
    """Tokens of a file, one a line (``#`` starts a comment), and of the environment.

    Raises:
        ConfigError: the file can't be read or has no token, or a token is too short or not ASCII.
    """
    found = dict.fromkeys(environment.get(TOKENS_VARIABLE, "").replace(",", " ").split(), TOKENS_VARIABLE)
    if path:
        try:
            lines = path.read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(
                f"can't read the tokens ({error})",
                where=path,
                hint="a text file, one token on each line",
            ) from error
        tokens = [line.partition("#")[0].strip() for line in lines]
        require(any(tokens), f"no token in {path}", hint="one token a line")
        found |= {token: f"{path}:{number}" for number, token in enumerate(tokens, start=1) if token}
    hint = 'e.g. python -c "import secrets; print(secrets.token_urlsafe())"'
    for token, where in found.items():
        valid = len(token) >= SHORTEST_TOKEN and token.isascii() and token.isprintable()
        require(valid, f"a token needs {SHORTEST_TOKEN} or more ASCII characters", where=where, hint=hint)
    return tuple(found)
