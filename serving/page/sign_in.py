"""Signs a browser in: a form takes the token, a cookie then opens the page and its requests.

Browsers can't send a token with a page that they open. Instead of the page they get a form, in which the user
enters the token once; the cookie has it then, out of reach of scripts and of other sites.
"""

import base64
import hashlib
import re
from pathlib import Path
from string import Template
from typing import Annotated

from fastapi import APIRouter, Form, Request, Response
from fastapi.datastructures import Headers
from fastapi.responses import HTMLResponse, RedirectResponse

from serving.authentication import COOKIE
from serving.errors import AUTHENTICATION, RequestError

PATH = "/session"
PAGE = (Path(__file__).parent / "sign_in.html").read_text(encoding="utf-8")
TEXTS = {
    "en": {
        "language": "en",
        "title": "This server asks for a token",
        "note": "You get it from whoever runs the server.",
        "label": "Token",
        "go": "Continue",
        "wrong": "This token is not valid.",
    },
    "zh": {
        "language": "zh-Hans",
        "title": "本服务器需要令牌",
        "note": "请向服务器的管理员索取。",
        "label": "令牌",
        "go": "继续",
        "wrong": "令牌无效。",
    },
}
# The form is the only thing without a token, so its style is in it, and only this style is allowed.
_STYLE = PAGE.partition("<style>")[2].partition("</style>")[0].encode()
_HASH = base64.b64encode(hashlib.sha256(_STYLE).digest()).decode()
HEADERS = {
    "Content-Security-Policy": f"default-src 'none'; style-src 'sha256-{_HASH}'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
    "WWW-Authenticate": "Bearer",
}

router = APIRouter(include_in_schema=False)


class SignInNeeded(RequestError):
    """A browser opens a page without a token, or with a wrong one: the response is the form."""

    def __init__(self, path: str, headers: Headers, is_wrong: bool = False):
        super().__init__(401, "a token is needed", kind=AUTHENTICATION, headers=HEADERS)
        # Relative, because a proxy may have removed a prefix from the path.
        self._action = "../" * (path.count("/") - 1) + PATH.removeprefix("/")
        self._request_headers, self._is_wrong = headers, is_wrong

    def response(self) -> Response:
        """The form, in Chinese or English as the browser prefers."""
        texts = TEXTS["zh" if _prefers_chinese(self._request_headers.get("accept-language", "")) else "en"]
        problem = f'<p class="wrong" id="wrong" role="alert">{texts["wrong"]}</p>' if self._is_wrong else ""
        invalid = ' aria-invalid="true" aria-describedby="wrong"' if self._is_wrong else ""
        page = Template(PAGE).substitute(texts, action=self._action, problem=problem, invalid=invalid)
        return HTMLResponse(page, self.status_code, headers=self.headers)


@router.post(PATH)
async def sign_in(request: Request, token: Annotated[str, Form(max_length=1000)] = "") -> Response:
    """Go to the page with a cookie that has the token; the form again if the token is wrong."""
    if not request.app.state.tokens.accepts(token):
        raise SignInNeeded(PATH, request.headers, is_wrong=True)
    response = RedirectResponse("./", 303)
    secure = request.url.scheme == "https" or request.headers.get("x-forwarded-proto") == "https"
    # Without a path the cookie is for the folder of the address that the browser has requested: a proxy may
    # have removed a prefix, below which alone the cookie is to be sent.
    response.set_cookie(COOKIE, token, path=None, httponly=True, samesite="strict", secure=secure)
    return response


def opens_page(headers: Headers) -> bool:
    """Whether a browser opens a page with a request: by its address, or by a form as that of the report."""
    return "text/html" in headers.get("accept", "")


def _prefers_chinese(languages: str) -> bool:
    found = re.findall(r"\b(zh|en)\b", languages.lower())
    return bool(found) and found[0] == "zh"
