"""Writes and checks ``corpus.json`` of a generated corpus: settings, their hash, whether it is complete."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from data.synthesis.synthesiser import check_installed
from utils.errors import CorpusError
from utils.files import write_json


@dataclass(frozen=True)
class CorpusCard:
    """The card of a corpus that is to be generated.

    Attributes:
        root: the corpus's folder.
        identity: kind and settings of the corpus, as written to the card.
        parts: values for JSON that determine the bytes of the corpus; their hash identifies it.
    """

    root: Path
    identity: dict[str, Any]
    parts: Sequence[Any]

    def is_complete(self) -> bool:
        """Whether the corpus exists and is complete.

        Raises:
            CorpusError: the folder holds something else.
        """
        path = self._path
        if not path.exists():
            if self.root.is_dir() and any(self.root.iterdir()):
                raise CorpusError(
                    "the folder is not empty and holds no synthetic corpus",
                    where=self.root,
                    hint="choose another folder",
                )
            return False
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
            same, complete = found["hash"] == self._hash, found["complete"]
        except (ValueError, KeyError, TypeError) as error:
            raise CorpusError(f"not readable: {error}", where=path, hint="delete the folder") from error
        if not same:
            raise CorpusError(
                "the folder holds a corpus of other settings or of another version",
                where=self.root,
                hint="choose another folder, or delete this one",
            )
        return complete

    def start(self) -> None:
        """Write the card of an incomplete corpus, after checking that the synthesiser is installed.

        Raises:
            CorpusError: it is not.
        """
        check_installed()
        self._write(complete=False)

    def finish(self, **totals: object) -> None:
        """Write the card of the complete corpus, with its totals."""
        self._write(complete=True, **totals)

    @property
    def _path(self) -> Path:
        return self.root / "corpus.json"

    @property
    def _hash(self) -> str:
        text = json.dumps(self.parts, sort_keys=True, ensure_ascii=False)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def _write(self, **state: object) -> None:
        write_json(self._path, self.identity | {"hash": self._hash} | state)
