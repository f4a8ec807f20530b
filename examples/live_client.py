"""A client for live recognition (`python serve.py`): sends a recording or a pipe, prints the text.

    python examples/live_client.py examples/recordings/common_voice_18776500.ogg
    arecord -q -t raw -f S16_LE -r 16000 | python examples/live_client.py -
Needs: pip install websockets soundfile
"""

import argparse
import asyncio
import json
import sys
from collections.abc import Iterator

import soundfile
import websockets


def chunks(sound: str, rate: int) -> Iterator[bytes]:
    """16-bit mono samples of a file or of a pipe, 0.1 s at a time."""
    if sound == "-":
        return iter(lambda: sys.stdin.buffer.read(2 * rate // 10), b"")
    blocks = soundfile.blocks(sound, rate // 10, dtype="float32", always_2d=True)
    return ((32768 * block.mean(axis=1)).clip(-32768, 32767).astype("<i2").tobytes() for block in blocks)


async def main() -> None:
    """Send audio as fast as it is spoken; show partial results on stderr, finals on stdout."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sound", help="a recording; - is raw 16-bit mono audio of 16 kHz")
    parser.add_argument("--url", default="ws://127.0.0.1:8000/v1/stream")
    parser.add_argument("--token")
    options = parser.parse_args()
    headers = {"Authorization": f"Bearer {options.token}"} if options.token else None
    try:
        rate = 16_000 if options.sound == "-" else soundfile.info(options.sound).samplerate
        socket = await websockets.connect(options.url, additional_headers=headers)
    except soundfile.SoundFileError as error:
        parser.exit(2, f"error: {error}\n")
    except (OSError, websockets.WebSocketException) as error:
        parser.exit(2, f"error: {options.url}: {error}\nhint: start python serve.py, or check the --token\n")
    async with socket:

        async def send() -> None:
            blocks = chunks(options.sound, rate)
            while chunk := await asyncio.to_thread(next, blocks, b""):
                await socket.send(chunk)
                await asyncio.sleep(0 if options.sound == "-" else 0.1)
            await socket.send('{"type":"end"}')

        await socket.send(json.dumps({"type": "start", "rate": rate}))
        sending = asyncio.create_task(send())
        async for text in socket:
            message = json.loads(text)
            if "syllables" in message:  # partial or final
                pinyin = " ".join(each["pinyin"] for each in message["syllables"])
                print(f"\r\x1b[K{pinyin}", end="", file=sys.stderr, flush=True)
            if message["type"] == "final":
                print("", file=sys.stderr)
                print(message["hanzi"], flush=True)
            elif message["type"] == "error":
                sys.exit(f"{message['message']} ({message['hint']})")
        await sending


if __name__ == "__main__":
    asyncio.run(main())
