"""Input methods packaged by Debian: a small program of native/ is compiled for each and run as a process.

Only terra-pinyin reads tones. If a package or the compiler is missing, the converter is skipped and named.
All of them, on Debian 12:

    apt-get install g++ pkg-config libpinyin15-dev libpinyin-data libimepinyin-dev libimecore-dev \\
        libfcitx5utils-dev libboost-dev libime-data libime-data-language-model libsunpinyin-dev \\
        sunpinyin-data libgooglepinyin0-dev libpyzy-dev librime-dev libgoogle-glog-dev rime-prelude \\
        rime-essay rime-data-luna-pinyin rime-data-pinyin-simp rime-data-terra-pinyin
"""

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from benchmarks.converters.entry import SMALL_SAMPLE, Command, Entry, without_tone
from benchmarks.peers.environment import Missing, bytes_of

SOURCES = Path(__file__).parent / "native"
_RIME = "/usr/share/rime-data"
_LIBRARIES = "/usr/lib/*"  # with the machine's name, such as x86_64-linux-gnu
# Keys of the tones in terra-pinyin; the neutral tone has none.
_TONE_KEYS = {"1": "-", "2": "/", "3": "<", "4": "\\", "5": ""}


@dataclass(frozen=True)
class Native:
    """A program of native/ and the packages that it needs.

    Attributes:
        source: file name without ``.cpp``.
        packages: packages to install.
        flags: compiler flags.
        pkg_config: name of the library for pkg-config, if it has one.
        arguments: command-line arguments after its own folder; path patterns are resolved.
        reads: path patterns of the library and its data, for its size.
    """

    source: str
    packages: tuple[str, ...]
    flags: tuple[str, ...] = ()
    pkg_config: str = ""
    arguments: tuple[str, ...] = ()
    reads: tuple[str, ...] = ()

    def find(self, folder: Path) -> Command:
        """The command; the program is compiled into ``folder`` if it is missing or older than its source.

        Raises:
            Missing: no compiler, or no such packages.
        """
        install = f"apt-get install {' '.join(self.packages)}"
        read = [_resolved(pattern, install) for pattern in self.reads]
        arguments = [
            str(_resolved(argument, install)[0]) if argument.startswith("/") else argument
            for argument in self.arguments
        ]
        program, state = folder / self.source, folder / "state"
        state.mkdir(parents=True, exist_ok=True)
        self._compile(program, install)
        size = bytes_of(path for paths in read for path in paths)
        return Command((str(program), str(state), *arguments), size)

    def _compile(self, program: Path, install: str) -> None:
        source = SOURCES / f"{self.source}.cpp"
        written = max(path.stat().st_mtime for path in (source, SOURCES / "lines.h"))
        if program.is_file() and program.stat().st_mtime > written:
            return
        compiler = shutil.which("g++")
        if not compiler:
            raise Missing("no compiler found: apt-get install g++ pkg-config")
        command = [compiler, "-O2", "-std=c++17", str(source), "-o", str(program)]
        if self.pkg_config:
            command += _output(["pkg-config", "--cflags", "--libs", self.pkg_config], install).split()
        _output([*command, *self.flags], install)


def _output(command: list[str], install: str) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        lines = str(getattr(error, "stderr", "") or error).strip().splitlines()
        reason = next((line for line in lines if "error" in line), lines[0])
        raise Missing(f"cannot be compiled ({reason}): {install}") from error
    return done.stdout


def _resolved(pattern: str, install: str) -> list[Path]:
    found = sorted(Path("/").glob(pattern.removeprefix("/")))
    if not found:
        raise Missing(f"{pattern} does not exist: {install}")
    return found


def _without_u_umlaut(syllable: str) -> str:
    """``lve4`` → ``lue``, as Android's engine spells it."""
    return without_tone(syllable).replace("ve", "ue")


def _with_tone_key(syllable: str) -> str:
    base = without_tone(syllable)
    return base + "".join(_TONE_KEYS[digit] for digit in syllable[len(base) :])


def _rime(schema: str, option: str, dictionary: str, package: str) -> Native:
    return Native(
        "rime",
        ("librime-dev", "libgoogle-glog-dev", "libboost-dev", "rime-prelude", "rime-essay", package),
        flags=("-lrime",),
        arguments=(_RIME, schema, option),
        reads=(f"{_LIBRARIES}/librime.so.1", f"{_RIME}/build/{dictionary}*.bin"),
    )


LIBPINYIN = Native(
    "libpinyin",
    ("libpinyin15-dev", "libpinyin-data"),
    pkg_config="libpinyin",
    arguments=(f"{_LIBRARIES}/libpinyin/data",),
    reads=(f"{_LIBRARIES}/libpinyin.so.15", f"{_LIBRARIES}/libpinyin/data"),
)
_LIBIME_DATA = ("libime-data", "libime-data-language-model")
_LIBIME_HEADERS = ("-I/usr/include/LibIME", "-I/usr/include/Fcitx5/Utils")
_LIBIME_WORDS, _LIBIME_MODEL = "/usr/share/libime/sc.dict", f"{_LIBRARIES}/libime/zh_CN.lm"
LIBIME = Native(
    "libime",
    ("libimepinyin-dev", "libimecore-dev", "libfcitx5utils-dev", "libboost-dev", *_LIBIME_DATA),
    flags=(*_LIBIME_HEADERS, "-lIMEPinyin", "-lIMECore", "-lFcitx5Utils"),
    arguments=(_LIBIME_WORDS, _LIBIME_MODEL),
    reads=(f"{_LIBRARIES}/libIME[PC]*.so.0", _LIBIME_WORDS, _LIBIME_MODEL),
)
SUNPINYIN = Native(
    "sunpinyin",
    ("libsunpinyin-dev", "sunpinyin-data"),
    pkg_config="sunpinyin-2.0",
    reads=(f"{_LIBRARIES}/libsunpinyin.so.3", f"{_LIBRARIES}/sunpinyin/data"),
)
_GOOGLE_WORDS = f"{_LIBRARIES}/googlepinyin/data/dict_pinyin.dat"
GOOGLE = Native(
    "googlepinyin",
    ("libgooglepinyin0-dev",),
    flags=("-lgooglepinyin",),
    arguments=(_GOOGLE_WORDS,),
    reads=(f"{_LIBRARIES}/libgooglepinyin.so.0", _GOOGLE_WORDS),
)
PYZY = Native(
    "pyzy",
    ("libpyzy-dev",),
    pkg_config="pyzy-1.0",
    reads=(f"{_LIBRARIES}/libpyzy-1.0.so.0", "/usr/share/pyzy/db/open-phrase.db"),
)
LUNA = _rime("luna_pinyin_simp", "zh_simp", "luna_pinyin", "rime-data-luna-pinyin")
SIMPLE = _rime("pinyin_simp", "simplified", "pinyin_simp", "rime-data-pinyin-simp")
TERRA = _rime("terra_pinyin", "simplification", "terra_pinyin", "rime-data-terra-pinyin")

ENTRIES = (
    Entry("libpinyin", LIBPINYIN.find),
    Entry("libime (fcitx 5)", LIBIME.find),
    Entry("SunPinyin", SUNPINYIN.find),
    Entry("Google Pinyin (Android)", GOOGLE.find, spelling=_without_u_umlaut),
    Entry("Rime luna-pinyin", LUNA.find),
    Entry("Rime pinyin-simp", SIMPLE.find),
    Entry("Rime terra-pinyin", TERRA.find, tones=True, spelling=_with_tone_key),
    # It looks up all candidates after each letter: half a second for each sentence.
    Entry("PyZy (ibus-pinyin)", PYZY.find, limit=SMALL_SAMPLE),
)
