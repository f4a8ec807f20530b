"""Converts lines of pinyin to hanzi, with alternatives and reasons: ``/v1/convert``."""

from typing import Annotated, Any

from fastapi import APIRouter, Request
from pydantic import BaseModel, ConfigDict, Field

from model_language.line_conversion import line_values
from serving.disconnection import unless_gone
from serving.endpoints.transcriptions import LONGEST_PROMPT
from serving.work.conversion_tasks import LONGEST_LINE
from serving.work.engine import Engine
from serving.work.models import ConvertJob

router = APIRouter(tags=["pinyin to hanzi"])


class Conversion(BaseModel):
    """A request for a conversion; an unknown field is an error."""

    model_config = ConfigDict(extra="forbid")

    text: Annotated[
        str,
        Field(
            min_length=1,
            max_length=5000,
            description=f"any spelling of pinyin, at most {LONGEST_LINE} syllables in a line",
            examples=["jin1 tian1 tian1 qi4 hen3 hao3"],
        ),
    ]
    n_best: Annotated[int, Field(ge=1, le=20, description="alternatives for each line")] = 1
    words: Annotated[
        str,
        Field(max_length=LONGEST_PROMPT, description="words to prefer, one a line", examples=["喆 zhe2 5"]),
    ] = ""
    recognised: Annotated[bool, Field(description="the pinyin is from a recogniser: correct its errors")] = (
        False
    )
    strict: Annotated[bool, Field(description="a word that is not pinyin is an error")] = False
    second_pass: Annotated[
        bool, Field(description="fewer errors, in up to twice the time: a language model rescores")
    ] = False


@router.post("/v1/convert", summary="Convert pinyin to hanzi")
async def convert(request: Request, conversion: Conversion) -> dict[str, Any]:
    """For each line its n best texts; for each character its confidence, the runner-up and the reasons."""
    engine: Engine = request.app.state.engine
    lines = tuple(conversion.text.splitlines()) or ("",)
    with engine.admitted():
        job = ConvertJob(lines, **conversion.model_dump(exclude={"text"}))
        converted = await unless_gone(request, engine.convert(job))
    return {
        "text": "\n".join(line.text for line in converted),
        "lines": [line_values(line) for line in converted],
    }
