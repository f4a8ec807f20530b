"""Tests of the encoding that the hint of an error names."""

import subprocess
from pathlib import Path

import pytest

from utils.files import conversion_hint, likely_encoding

SIMPLIFIED, TRADITIONAL = "该地区的希腊人供奉圣尼各老，镕", "該地區的希臘人供奉聖尼各老，後來"


@pytest.mark.parametrize(
    ("text", "codec", "encoding"),
    [
        (SIMPLIFIED, "gbk", "GB18030"),
        (TRADITIONAL, "big5", "BIG5"),
        (TRADITIONAL, "gbk", "GB18030"),
        (SIMPLIFIED, "utf-16", "UTF-16"),
        (f"{SIMPLIFIED}\n", "utf-16-le", "UTF-16LE"),
        (f"{SIMPLIFIED}\n", "utf-16-be", "UTF-16BE"),
    ],
)
def test_the_encoding_is_recognised_and_the_command_converts(text, codec, encoding, tmp_path: Path):
    path = tmp_path / "a text.txt"
    path.write_bytes(text.encode(codec))
    assert likely_encoding(path.read_bytes()) == encoding
    command = conversion_hint(path, path.read_bytes()).removeprefix("convert it: ")
    converted = subprocess.run(command.replace("> FILE", ""), shell=True, capture_output=True, check=True)
    assert converted.stdout.decode("utf-8") == text
