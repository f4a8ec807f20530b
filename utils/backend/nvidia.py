"""Lists the machine's NVIDIA GPUs, whether or not a framework can use them: by nvidia-smi, or the PCI bus."""

import csv
import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

VISIBLE = "CUDA_VISIBLE_DEVICES"
_FIELDS = ("name", "driver_version")
_VENDOR, _DISPLAY_CLASSES = "0x10de", ("0x0300", "0x0302")  # PCI: NVIDIA; VGA and 3D controllers
_ANSWER_SECONDS = 20  # after which nvidia-smi is stopped


@dataclass(frozen=True)
class NvidiaGpu:
    """A GPU as described by its driver.

    Attributes:
        name: name of the GPU model.
        driver: version of the driver; ``""`` if none is loaded.
    """

    name: str
    driver: str = ""

    def __str__(self) -> str:
        return f"{self.name}, {f'driver {self.driver}' if self.driver else 'no driver loaded'}"


def nvidia_gpus(root: Path = Path("/")) -> list[NvidiaGpu]:
    """The GPUs that nvidia-smi lists; if it fails, those on the PCI bus.

    Args:
        root: root folder of the file system; tests give another one.
    """
    return _from_nvidia_smi() or _from_pci_bus(root)


def gpus_hidden(environment: Mapping[str, str] = os.environ) -> bool:
    """Whether the user hides all GPUs: ``CUDA_VISIBLE_DEVICES`` is empty or -1."""
    return environment.get(VISIBLE, "0").strip() in ("", "-1")


def _from_nvidia_smi() -> list[NvidiaGpu]:
    program = shutil.which("nvidia-smi")
    if program is None:
        return []
    query = [f"--query-gpu={','.join(_FIELDS)}", "--format=csv,noheader,nounits"]
    try:
        done = subprocess.run(
            [program, *query], capture_output=True, text=True, timeout=_ANSWER_SECONDS, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return []
    rows = [[value.strip() for value in row] for row in csv.reader(done.stdout.splitlines())]
    return [NvidiaGpu(*row) for row in rows if len(row) == len(_FIELDS)]


def _from_pci_bus(root: Path) -> list[NvidiaGpu]:
    """The GPUs that Linux has found, also without a driver."""
    driver = _driver(root)
    described = {}
    for path in root.glob("proc/driver/nvidia/gpus/*/information"):
        with suppress(OSError):
            if found := re.search(r"Model:\s*(.+)", path.read_text(encoding="utf-8", errors="replace")):
                described[path.parent.name] = found[1].strip()
    gpus = []
    for folder in sorted(root.glob("sys/bus/pci/devices/*")):
        with suppress(OSError):
            vendor, kind = ((folder / name).read_text().strip() for name in ("vendor", "class"))
            if vendor == _VENDOR and kind.startswith(_DISPLAY_CLASSES):
                name = described.get(folder.name, f"an NVIDIA GPU (PCI {folder.name})")
                gpus.append(NvidiaGpu(name, driver))
    return gpus


def _driver(root: Path) -> str:
    """Version of the loaded kernel module; ``""`` if there is none."""
    with suppress(OSError):
        text = (root / "proc/driver/nvidia/version").read_text(encoding="utf-8", errors="replace")
        if found := re.search(r"Kernel Module.*?\s(\d+(?:\.\d+)+)\s", text):
            return found[1]
    return ""
