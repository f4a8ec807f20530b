"""The headers of the frames of MP3 and AAC (ADTS) audio: the length of a frame, and the number of frames."""

from collections.abc import Callable

# MPEG audio layer III: kbit/s of MPEG 1 and of MPEG 2 and 2.5; Hz of MPEG 1 (MPEG 2: half, 2.5: a quarter).
_MP3_KILOBITS = (
    (32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320),
    (8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160),
)
_MP3_HERTZ = (44100, 48000, 32000)
_ADTS_HEADER_BYTES, _ID3_HEADER_BYTES = 7, 10
_SEARCHED_BYTES = 1 << 14  # in which the first frame must begin: more than a frame has
# Where the Xing or Info tag of a first frame begins: after the header and the side information, whose length
# depends on (MPEG 1, mono). VBRI always comes 32 bytes after the header.
_TAG_OFFSETS = {(True, False): 36, (True, True): 21, (False, False): 21, (False, True): 13}
_VBRI_OFFSET = 36
_HAS_COUNT, _HAS_BYTES = 1, 2  # flags of a Xing or Info tag: the number of frames, of bytes follows
_HIGHEST_BIT_RATE = 0xE0  # in the third byte of a header


def mp3_frame_bytes(header: bytes) -> int:
    """Length of the MP3 frame whose first four bytes are ``header``; 0 if it is not such a header."""
    if len(header) < 4 or header[0] != 0xFF or header[1] & 0xE6 != 0xE2:  # sync bits, and layer III
        return 0
    version, bit_rate, rate = header[1] >> 3 & 3, header[2] >> 4, header[2] >> 2 & 3
    if version == 1 or not 1 <= bit_rate <= 14 or rate == 3:  # reserved values
        return 0
    is_mpeg1 = version == 3
    hertz = _MP3_HERTZ[rate] // {3: 1, 2: 2, 0: 4}[version]
    kilobits = _MP3_KILOBITS[0 if is_mpeg1 else 1][bit_rate - 1]
    return (144 if is_mpeg1 else 72) * 1000 * kilobits // hertz + (header[2] >> 1 & 1)


def adts_frame_bytes(header: bytes) -> int:
    """Length of the AAC frame whose first seven bytes are ``header``; 0 if it is not such a header."""
    if len(header) < _ADTS_HEADER_BYTES or header[0] != 0xFF or header[1] & 0xF6 != 0xF0:
        return 0
    length = (header[3] & 3) << 11 | header[4] << 3 | header[5] >> 5
    return length if length > _ADTS_HEADER_BYTES else 0


def begins_with_frames(head: bytes) -> bool:
    """Whether two frames of MP3 or AAC audio are at the beginning: raw samples may look like one."""
    return _are_frames(head, 0, mp3_frame_bytes) or _are_frames(head, 0, adts_frame_bytes)


def find_mp3_frame(content: bytes, searched: int = _SEARCHED_BYTES) -> tuple[int, bytes] | None:
    """Where the frames of an MP3 file begin, after an ID3 tag or a part of a frame, and the first of them.

    They must begin within ``searched`` bytes.
    """
    position = 0
    if content[:3] == b"ID3" and len(content) >= _ID3_HEADER_BYTES:
        size = 0
        for byte in content[6:_ID3_HEADER_BYTES]:
            size = size << 7 | byte & 0x7F
        position = _ID3_HEADER_BYTES + size
    last = position + searched
    while 0 <= position <= last:
        if _are_frames(content, position, mp3_frame_bytes):
            return position, content[position : position + mp3_frame_bytes(content[position : position + 4])]
        position = content.find(b"\xff", position + 1)
    return None


def _are_frames(content: bytes, position: int, frame_bytes: Callable[[bytes], int]) -> bool:
    """Whether two consecutive frames begin at ``position``."""
    first = frame_bytes(content[position : position + _ADTS_HEADER_BYTES])
    second = position + first
    return bool(first) and bool(frame_bytes(content[second : second + _ADTS_HEADER_BYTES]))


def has_tag(frame: bytes) -> bool:
    """Whether the first frame of an MP3 file has facts about the file (Xing, Info, VBRI) instead of sound."""
    tag = _tag(frame)
    return tag[:4] in (b"Xing", b"Info") or frame[_VBRI_OFFSET : _VBRI_OFFSET + 4] == b"VBRI"


def has_frame_count(frame: bytes) -> bool:
    """Whether the first frame states the number of frames so that libsndfile finds it (not in VBRI)."""
    tag = _tag(frame)
    return tag[:4] in (b"Xing", b"Info") and bool(tag[7] & _HAS_COUNT)


def same_format(frame: bytes, other: bytes) -> bool:
    """Whether two MP3 frames have the same sample rate and number of channels."""
    of_each = [(each[1] >> 3 & 3, each[2] >> 2 & 3, each[3] >> 6 == 3) for each in (frame, other)]
    return of_each[0] == of_each[1]


def stated_bytes(frame: bytes) -> int | None:
    """The length of an MP3 file from its first frame on, as that frame states it; None if it does not."""
    tag = _tag(frame)
    if tag[:4] not in (b"Xing", b"Info") or not tag[7] & _HAS_BYTES:
        return None
    begin = 12 if tag[7] & _HAS_COUNT else 8
    return int.from_bytes(tag[begin : begin + 4], "big")


def _tag(frame: bytes) -> bytes:
    """The name and the flags of a tag, and the two numbers that may follow; zeros where there are none."""
    is_mpeg1, is_mono = frame[1] >> 3 & 3 == 3, frame[3] >> 6 == 3
    offset = _TAG_OFFSETS[is_mpeg1, is_mono]
    return frame[offset : offset + 16].ljust(16, b"\0")


def count_mp3_frames(content: bytes, start: int) -> int:
    """The number of complete frames from ``start`` on; bytes between frames are passed over."""
    count, position = 0, start
    while position < len(content):
        length = mp3_frame_bytes(content[position : position + 4])
        if not length:
            position = content.find(b"\xff", position + 1)
            if position < 0:
                break
        else:
            position += length
            count += position <= len(content)
    return count


def info_frame(frame: bytes, count: int) -> bytes:
    """A silent frame that states the number of frames after it, made from the header of another one."""
    is_mpeg1, is_mono = frame[1] >> 3 & 3 == 3, frame[3] >> 6 == 3
    # Without a checksum, and at the highest bit rate: a short frame has no room for the tag.
    header = bytes([frame[0], frame[1] | 1, frame[2] & 0x0F | _HIGHEST_BIT_RATE, frame[3]])
    tag = b"Info" + _HAS_COUNT.to_bytes(4, "big") + count.to_bytes(4, "big")
    return (header + bytes(_TAG_OFFSETS[is_mpeg1, is_mono] - 4) + tag).ljust(mp3_frame_bytes(header), b"\0")
