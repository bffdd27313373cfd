"""Static files: ours, htmx, what is used of Ace and Swagger UI; a compressed copy beside each, made once for each version.

The static file server sends a compressed copy where one stands beside the file. They are made in the state folder and not
committed, as Plotly's are (`plotly.py`), which has a finder of its own because its style sheet is made too.
"""

import gzip
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import django_ace
import django_htmx
import ninja
from django.conf import settings
from django.contrib.staticfiles.finders import BaseFinder
from django.contrib.staticfiles.utils import get_files
from django.core.files.storage import FileSystemStorage

LEAST = 256  # bytes; what is smaller does not get smaller
SOURCES = (*settings.STATICFILES_DIRS, Path(django_htmx.__file__).parent / "static")
ACE = Path(django_ace.__file__).parent / "static"
OF_ACE = ("ace.js", "mode-sh.js", "css/ace.css")  # of its 660 files those that a page asks for
NINJA = Path(ninja.__file__).parent / "static"
OF_NINJA = ("swagger-ui.css", "swagger-ui-bundle.js", "swagger-ui-init.js")
PIECES = {
    **{f"django_ace/ace/{name}": ACE / "django_ace" / "ace" / name for name in OF_ACE},
    # Not an installed application: each process would load it, and with it pydantic, to find three files that one of them serves.
    **{f"ninja/{name}": NINJA / "ninja" / name for name in OF_NINJA},
}


def make(sources: Iterable[Path], folder: Path, pieces: Mapping[str, Path]) -> None:
    """Whole folders, and single files by the name they get. Appears whole, so that two processes may do it at once."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    draft = Path(tempfile.mkdtemp(dir=folder.parent))
    draft.chmod(0o755)
    for source in sources:
        shutil.copytree(source, draft, dirs_exist_ok=True)
    for name, piece in pieces.items():
        (draft / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(piece, draft / name)
    for path in [path for path in draft.rglob("*") if path.is_file() and path.stat().st_size >= LEAST]:
        path.with_name(f"{path.name}.gz").write_bytes(gzip.compress(path.read_bytes(), 9, mtime=0))
    with suppress(OSError):  # another process was faster: its folder is the same
        draft.rename(folder)
    shutil.rmtree(draft, ignore_errors=True)


class PressedFinder(BaseFinder):
    """Stands before the other finders, which would find the same files without their copies."""

    def __init__(self) -> None:
        folder = settings.STATE_DIR / "made" / f"pressed-{settings.STATIC_VERSION}"
        if not folder.exists():
            make(SOURCES, folder, PIECES)
        self.storage = FileSystemStorage(location=folder)

    def check(self, **_options: Any) -> list[Any]:
        return []

    def find(self, path: str, find_all: bool = False, **_options: Any) -> Any:
        found = self.storage.path(path) if self.storage.exists(path) else None
        return ([found] if found else []) if find_all else found

    def list(self, ignore_patterns: Iterable[str] | None) -> Iterator[tuple[str, Any]]:
        return ((path, self.storage) for path in get_files(self.storage, list(ignore_patterns or [])))
