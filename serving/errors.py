"""Turns errors into answers: JSON in OpenAI's form with a hint, without paths of this machine."""

from collections.abc import Mapping

from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from utils.errors import UserError

INVALID, AUTHENTICATION, LIMIT, SERVER = (
    "invalid_request_error",
    "authentication_error",
    "rate_limit_error",
    "server_error",
)
"""Types of errors, as OpenAI names them."""
_DOCUMENTED = "/docs describes all requests"


class RequestError(HTTPException):
    """Why a request can't be answered.

    Args:
        status: status code of HTTP.
        message: what is wrong.
        hint: what to do about it.
        kind: one of the types above.
        param: name of the wrong parameter.
        code: short name for programs.
        headers: further headers of the answer.
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

    def response(self) -> JSONResponse:
        """The answer."""
        return JSONResponse({"error": self.error}, self.status_code, headers=self.headers)


def of_user_error(error: UserError) -> RequestError:
    """The answer to input that can't be used; ``error.where`` may be a path, and is left out."""
    return RequestError(400, error.what, hint=error.hint)


def of_validation_error(error: RequestValidationError) -> RequestError:
    """The answer to parameters of a wrong type or value; what was sent is not repeated."""
    first = error.errors()[0]
    name = ".".join(str(part) for part in first["loc"][1:]) or None
    return RequestError(400, f"{name or 'the request'}: {first['msg']}", param=name, hint=_DOCUMENTED)


def of_http_error(error: HTTPException) -> RequestError:
    """The answer to what the framework refuses: an unknown path or method, a body that is no form."""
    return RequestError(error.status_code, str(error.detail), headers=error.headers, hint=_DOCUMENTED)
