"""Under which name the static files are served: one that changes with them, so that browsers may keep each for ever.

Modules and style sheets name each other by relative paths, which names with hashes would break, and a strict CSP allows no inline
import map. So the version stands in the folder: `/static/<version>/js/live.js` imports `./times.js` of the same version.
"""

import hashlib
from collections.abc import Iterable
from importlib.metadata import version
from pathlib import Path

DIGITS = 12


def version_of(folder: Path, packages: Iterable[str]) -> str:
    """Of a folder's content and of installed packages that bring static files of their own."""
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            digest.update(f"{path.relative_to(folder)}\0{path.stat().st_size}\0".encode() + path.read_bytes())
    for package in packages:
        digest.update(f"{package}=={version(package)}\0".encode())
    return digest.hexdigest()[:DIGITS]
