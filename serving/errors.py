"""An error in; JSON in OpenAI's form with a hint, without paths of this machine, out."""

from collections.abc import Mapping

from fastapi.responses import JSONResponse

from utils.errors import UserError

INVALID, AUTHENTICATION, LIMIT, SERVER = (
    "invalid_request_error",
    "authentication_error",
    "rate_limit_error",
    "server_error",
)
"""Types of errors, as OpenAI names them."""


class RequestError(Exception):
    """Why a request can't be answered.

    Args:
        status: of HTTP.
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
        self.status, self.headers = status, dict(headers or {})
        self.error = {"message": message, "type": kind, "param": param, "code": code, "hint": hint}
        super().__init__(message)

    def response(self) -> JSONResponse:
        """The answer."""
        return JSONResponse({"error": self.error}, self.status, headers=self.headers)


def of_user_error(error: UserError, param: str | None = None) -> RequestError:
    """The answer to input that can't be used; ``error.where`` may be a path, and is left out."""
    return RequestError(400, error.what, hint=error.hint, param=param)
