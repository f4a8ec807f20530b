"""Recognises only the phrases of a list in a recording, with their slots: ``/v1/phrases``."""

from typing import Annotated, Any

from fastapi import APIRouter, Depends, File, Form, Request, UploadFile

from recognition.options import PHRASE_THRESHOLD
from serving.endpoints.files import PHRASES, one_recording
from serving.endpoints.responses import whole_text
from serving.endpoints.transcriptions import LONGEST_PROMPT, collected
from serving.work.models import Search
from utils.hypotheses.transcript_formats import segment_values

router = APIRouter(tags=["recognition"])
_EXAMPLE = "打开[客厅|卧室]的灯\n温度调到<温度:数字 16-30>度"


@router.post(PHRASES, summary="Recognise only phrases of a list", dependencies=[Depends(one_recording)])
async def recognise_phrases(
    request: Request,
    file: Annotated[UploadFile, File(description="WAV, FLAC, OGG, MP3, M4A, MP4, WebM …")],
    phrases: Annotated[
        str,
        Form(
            min_length=1,
            max_length=LONGEST_PROMPT,
            description="one a line, see docs/phrases.md",
            examples=[_EXAMPLE],
        ),
    ],
    threshold: Annotated[
        float,
        Form(
            ge=0.0,
            le=1.0,
            allow_inf_nan=False,
            description="least probability that a phrase of the list was spoken",
        ),
    ] = PHRASE_THRESHOLD,
    n_best: Annotated[int, Form(ge=1, le=20, description="phrases for each utterance")] = 1,
) -> dict[str, Any]:
    """Each utterance with the phrases that fit it best, and whether the first one is accepted.

    An accepted phrase has its text and slots; of anything else the syllables are given, without text.
    """
    search = Search(phrases=phrases, threshold=threshold, n_best=n_best)
    with request.app.state.engine.admitted():
        segments, seconds = await collected(request, file, search)
    accepted = [segment for segment in segments if segment.phrase and segment.phrase.accepted]
    utterances = [segment_values(segment) for segment in segments]
    return {"text": whole_text(accepted), "duration": round(seconds, 3), "utterances": utterances}
