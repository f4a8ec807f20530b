"""Turns errors into responses: JSON in OpenAI's form with a hint, without paths of this machine."""

import errno
import logging
from collections.abc import Mapping, Sequence
from typing import Any

from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException
from starlette.responses import Response

from utils.errors import UserError

LOG = logging.getLogger("serving")
INVALID, AUTHENTICATION, LIMIT, SERVER = (
    "invalid_request_error",
    "authentication_error",
    "rate_limit_error",
    "server_error",
)
"""Types of errors, as OpenAI names them."""
_NO_SPACE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_DOCUMENTED = "/docs describes all requests"
# How FastAPI reports a body that is no object, and a text where a file is needed.
_NO_OBJECT = ("model_attributes_type", "dict_type")
_NO_FILE = "Expected UploadFile"
# By type of Pydantic's error: what is wrong with a field, with the limits as Pydantic names them, and advice.
_PROBLEMS = {
    "missing": ("is missing", "send this field"),
    "extra_forbidden": ("is not a known field", "check the spelling, or leave it out"),
    "string_too_long": ("has more than {max_length:,} characters", "send at most {max_length:,}"),
    "string_too_short": ("is empty", "send a text"),
    "greater_than_equal": ("is less than {ge:,g}", "send {ge:,g} or more"),
    "less_than_equal": ("is more than {le:,g}", "send {le:,g} or less"),
    "literal_error": ("is not {expected}", "send one of these values"),
    "finite_number": ("is not a finite number", "send a number"),
    "string_type": ("is not a string", "send a text in quotation marks"),
}
_NUMBERS = {
    "int": ("is not a whole number", "send a whole number"),
    "float": ("is not a number", "send a number"),
    "bool": ("is neither true nor false", "send true or false"),
}


class RequestError(HTTPException):
    """Why a request can't be answered.

    Args:
        status: status code of HTTP.
        message: what is wrong.
        hint: what to do about it.
        kind: one of the types above.
        param: name of the wrong parameter.
        code: short name for programs.
        headers: further headers of the response.
    """

    def __init__(
        self,
        status: int,
        message: str,
        *,
        hint: str | None = None,
        kind: str = INVALID,
        param: str | None = None,
        code: str | None = None,
        headers: Mapping[str, str] | None = None,
    ):
        super().__init__(status, message, dict(headers or {}))
        self.error = {"message": message, "type": kind, "param": param, "code": code, "hint": hint}

    def response(self) -> Response:
        """The response."""
        return JSONResponse({"error": self.error}, self.status_code, headers=self.headers)


def of_user_error(error: UserError) -> RequestError:
    """The response to input that can't be used; ``error.where`` may be a path, and is left out."""
    return RequestError(400, error.message, hint=error.hint)


def of_validation_error(error: RequestValidationError, is_form: bool) -> RequestError:
    """The response to parameters of a wrong type or value; what was sent is not repeated.

    Args:
        error: what FastAPI has found.
        is_form: whether the request is a form that can hold a file.
    """
    first = error.errors()[0]
    if first["type"] == "json_invalid":  # its location is a position in the body, not a name
        message = f"the body is not valid JSON: {first['ctx']['error']}, at character {first['loc'][-1]}"
        return RequestError(400, message, hint=f"check quotes, commas and brackets; {_DOCUMENTED}")
    name = field_name(first["loc"][1:])
    if name is None and first["type"] in _NO_OBJECT:
        hint = f"send an object with the header Content-Type: application/json; {_DOCUMENTED}"
        return RequestError(400, "the body is not a JSON object", hint=hint)
    if first["type"] == "missing" and name == "file" and not is_form:
        hint = "send the recording in a form (multipart/form-data): with curl, -F file=@recording.wav"
        return RequestError(400, "the request is not a form with a file", param=name, hint=hint)
    if _NO_FILE in first["msg"]:
        hint = f"send a file with its name: with curl, -F {name}=@recording.wav, with an @ before the path"
        return RequestError(400, f"{name}: this is a text, not a file", param=name, hint=hint)
    message, advice = field_problem(first)
    hint = f"{advice}; {_DOCUMENTED}" if advice else _DOCUMENTED
    return RequestError(
        400, f"'{name}' {message}" if name else f"the request {message}", param=name, hint=hint
    )


def not_stored(error: OSError) -> RequestError:
    """The response when an upload can't be written to the folder for temporary files; it is logged."""
    LOG.error("an upload can't be stored", extra={"reason": str(error)})
    if error.errno not in _NO_SPACE:
        problem, hint = "the upload can't be stored", "try again; the log of the service says why"
        return RequestError(500, problem, hint=hint, kind=SERVER)
    hint = "try again later; the service needs more space for temporary files"
    return RequestError(507, "there is no space for the upload", hint=hint, kind=SERVER, code="space")


def of_http_error(error: HTTPException) -> RequestError:
    """The response to what the framework refuses: an unknown path or method, a body that is no form."""
    if isinstance(error.__cause__, OSError):  # while a form was read
        return not_stored(error.__cause__)
    return RequestError(error.status_code, str(error.detail), headers=error.headers, hint=_DOCUMENTED)


def field_name(location: Sequence[str | int]) -> str | None:
    """The name of the field at a location of Pydantic, without positions in a list; None for the whole."""
    return ".".join(part for part in location if isinstance(part, str)) or None


def field_problem(error: Mapping[str, Any]) -> tuple[str, str | None]:
    """What is wrong with a field, to be written after its name, and what to do about it.

    Args:
        error: one of the errors that Pydantic lists.

    Returns:
        The advice is None, and the problem in Pydantic's words, for a kind of error that no field of the
        service has.
    """
    kind = error["type"]
    found = _PROBLEMS.get(kind) or _NUMBERS.get(kind.partition("_")[0])
    if found is None:
        return f"can't be used: {error['msg']}", None
    problem, advice = (text.format(**error.get("ctx", {})) for text in found)
    return problem, advice
