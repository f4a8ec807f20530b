"""The recordings of examples/recordings, and the syllables that their card gives for them."""

from pathlib import Path

FOLDER = Path(__file__).parents[2] / "examples" / "recordings"
RECORDINGS = sorted(FOLDER.glob("*.ogg"))
RECORDING = FOLDER / "common_voice_18776500.ogg"  # the shortest one
SYLLABLES = {
    "common_voice_18735239.ogg": "ci3 wai4 yi4 xie1 qi2 ta1 guo2 ji4 bi3 sai4 ye3 shi3 yong4 ci3 gui1 ze2",
    "common_voice_18776500.ogg": "ru2 guo3 wu2 fa3 kong4 zhi4",
    "common_voice_18662996.ogg": "gai1 di4 qu1 de5 xi1 la4 ren2 gong4 feng4 sheng4 ni2 ge4 lao3",
}
