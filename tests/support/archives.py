"""Archives for tests of downloading and unpacking."""

import io
import tarfile


def tar_bytes(members: dict[str, bytes]) -> bytes:
    """A gzipped tar archive: name → content."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return buffer.getvalue()
