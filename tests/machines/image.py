"""The two images of a real machine, made on the spot from Debian's static busybox, so that nothing is pulled from anywhere."""

import hashlib
import io
import json
import platform
import tarfile
from pathlib import Path
from typing import Any

BUSYBOX = Path("/bin/busybox")
PAUSE, BOX = "halftide.test/pause:1", "halftide.test/box:1"
APPLETS = ("sh", "sleep", "date", "cat", "mv")

# A pause that nobody ended ends by itself, long after any test.
PAUSE_SECONDS = 1800

COMMANDS: dict[str, dict[str, Any]] = {
    PAUSE: {"Entrypoint": ["/bin/sleep", str(PAUSE_SECONDS)]},
    BOX: {"Cmd": ["/bin/sh"]},
}
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}  # of Linux, and of images
CREATED = "2026-01-01T00:00:00Z"


def write(archive: Path) -> None:
    """Write both images as one archive that `ctr images import` takes."""
    layer = _layer()
    digest = hashlib.sha256(layer).hexdigest()
    with tarfile.open(archive, "w") as tar:
        _add(tar, f"{digest}/layer.tar", layer)
        manifest = []
        for tag, config in COMMANDS.items():
            body = json.dumps(
                {
                    "architecture": ARCHITECTURES[platform.machine()], "os": "linux", "created": CREATED, "config": config,
                    "history": [{"created": CREATED}], "rootfs": {"type": "layers", "diff_ids": [f"sha256:{digest}"]},
                }
            ).encode()  # fmt: skip
            name = hashlib.sha256(body).hexdigest() + ".json"
            _add(tar, name, body)
            manifest.append({"Config": name, "RepoTags": [tag], "Layers": [f"{digest}/layer.tar"]})
        _add(tar, "manifest.json", json.dumps(manifest).encode())


def _layer() -> bytes:
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w") as tar:
        tar.add(BUSYBOX, "bin/busybox")
        for name in APPLETS:
            link = tarfile.TarInfo(f"bin/{name}")
            link.type, link.linkname = tarfile.SYMTYPE, "busybox"
            tar.addfile(link)
    return data.getvalue()


def _add(tar: tarfile.TarFile, name: str, data: bytes) -> None:
    info = tarfile.TarInfo(name)
    info.size = len(data)
    tar.addfile(info, io.BytesIO(data))
