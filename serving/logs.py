"""Writes log records as lines of JSON on standard error."""

import json
import logging
import sys
import uuid
from datetime import UTC, datetime

# Records of uvicorn about WebSockets: the first has the address and the query of a client, which are not for
# the log; the second is no error after a refusal.
_OMITTED = ('%s - "WebSocket ', "ASGI callable returned without completing handshake")
_ORDINARY = frozenset(vars(logging.makeLogRecord({})))


class JsonLines(logging.Formatter):
    """A record as a line of JSON: time, level, event, and what the caller added with ``extra``."""

    def format(self, record: logging.LogRecord) -> str:
        """The line."""
        values = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "event": record.getMessage(),
        }
        values |= {name: value for name, value in vars(record).items() if name not in _ORDINARY}
        values.pop("color_message", None)
        if record.exc_info:
            values["error"] = self.formatException(record.exc_info)
        return json.dumps(values, ensure_ascii=False, default=str)


def new_id() -> str:
    """A random id of a request or stream, for its line of the log."""
    return uuid.uuid4().hex[:12]


def log_to_standard_error() -> None:
    """Write the log of the service, of its server and the warnings of all libraries as lines of JSON."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    handler.addFilter(lambda record: not str(record.msg).startswith(_OMITTED))
    logging.getLogger().handlers = [handler]
    logging.captureWarnings(True)
    for name in ("serving", "uvicorn"):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(logging.INFO)
