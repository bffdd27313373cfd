"""Static files are sent compressed and kept for ever, under a name that changes with any of them."""

import gzip
import re
from pathlib import Path

import pytest
from django.conf import settings
from django.contrib.staticfiles.finders import AppDirectoriesFinder
from django.templatetags.static import static
from django.test import Client

from console.capacity.models import Pool
from console.pages import pressed
from console.pages.shipped import version_of

# The distributions behind the apps that bring static files.
DISTRIBUTIONS = {"allauth": "django-allauth", "django_ace": "django-ace", "django_htmx": "django-htmx"}


@pytest.mark.parametrize(
    "name", ["css/halftide.css", "js/live.js", "django_htmx/htmx-2.min.js", "django_ace/ace/ace.js", "ninja/swagger-ui.css"]
)
def test_a_file_comes_compressed_and_is_kept_for_ever(client: Client, name: str) -> None:
    answer = client.get(static(name), headers={"Accept-Encoding": "gzip, br"})
    assert answer.headers["Content-Encoding"] == "gzip"
    assert answer.headers["Cache-Control"] == "public, max-age=31536000, immutable"
    plain = client.get(static(name))
    assert "Content-Encoding" not in plain.headers
    assert gzip.decompress(b"".join(answer)) == b"".join(plain)


def test_the_name_changes_with_any_file_and_with_any_package_that_brings_some(tmp_path: Path) -> None:
    (tmp_path / "js").mkdir()
    (tmp_path / "js" / "one.js").write_text("1")
    first = version_of(tmp_path, ["plotly"])
    assert first == version_of(tmp_path, ["plotly"])
    assert first != version_of(tmp_path, ["plotly", "django-htmx"])
    (tmp_path / "js" / "one.js").write_text("2")
    assert first != version_of(tmp_path, ["plotly"])


def test_every_package_that_brings_static_files_counts_in_the_name() -> None:
    with_files = {name.partition(".")[0] for name in AppDirectoriesFinder().storages}
    assert {DISTRIBUTIONS[name] for name in with_files} | {"plotly", "django-ninja"} == set(settings.STATIC_PACKAGES)


def test_modules_and_style_sheets_name_each_other_relatively() -> None:
    """Else a file kept for ever would ask for one of another version."""
    for path in (settings.BASE_DIR / "static").rglob("*.[jc]s*"):
        for name in re.findall(r"""(?:^import .*from |import\(|url\()["']?([^"')]+)""", path.read_text(), re.MULTILINE):
            assert name.startswith(("./", "#", "data:")), (path.name, name)


def test_a_page_from_before_an_update_gets_the_newer_file(pool: Pool, ada: Client) -> None:
    answer = ada.get("/static/0123456789ab/js/live.js")
    assert answer.headers["Location"] == static("js/live.js")
    assert ada.get(static("js/none.js")).status_code == 404


def test_the_copies_appear_whole_and_once(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    (source / "long.css").write_text("a" * 999)
    (source / "short.css").write_text("a")
    for _ in range(2):
        pressed.make([source], tmp_path / "made" / "one", {"some/piece.js": source / "long.css"})
    made = sorted(path.name for path in (tmp_path / "made").rglob("*") if path.is_file())
    assert made == ["long.css", "long.css.gz", "piece.js", "piece.js.gz", "short.css"]
    assert [path.name for path in (tmp_path / "made").iterdir()] == ["one"]
