"""``corpus.json`` of a corpus that was made here: of which settings it is, and whether it is complete."""

from __future__ import annotations

import json
from pathlib import Path

from utils.errors import CorpusError


def read_card(card: Path, identity: dict) -> dict:
    """The card of a corpus that is there already, or one that says that there is none.

    Args:
        card: the file, in the corpus's folder.
        identity: of the corpus that is asked for, with a ``hash`` of all that its bytes depend on.

    Raises:
        CorpusError: the folder holds something else.
    """
    if not card.exists():
        if card.parent.is_dir() and any(card.parent.iterdir()):
            what = "the folder is not empty and holds no synthetic corpus"
            raise CorpusError(what, where=card.parent, hint="choose another folder")
        return {"complete": False}
    try:
        found = json.loads(card.read_text(encoding="utf-8"))
        same = found["hash"] == identity["hash"]
    except (ValueError, KeyError, TypeError) as error:
        raise CorpusError(f"not readable: {error}", where=card, hint="delete the folder") from error
    if not same:
        hint = "choose another folder, or delete this one"
        raise CorpusError(
            "a corpus of other settings or of another version lies here", where=card.parent, hint=hint
        )
    return found
