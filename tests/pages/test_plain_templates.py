"""A strict CSP holds only if no template carries a style or a script inside; and templates and modules stay short."""

import re
from pathlib import Path

import pytest
from django.conf import settings
from django.test import Client

from console.capacity.models import Pool
from tests.pages import world

TEMPLATES = sorted((settings.BASE_DIR / "templates").rglob("*.html"))
MODULES = sorted((settings.BASE_DIR / "static" / "js").glob("*.js"))
SCRIPT = r"<script(?![^>]*\s(?:src=|type=.application/json.))"  # data is no script
INLINE = re.compile(rf"<style|\sstyle\s*=|{SCRIPT}|\son[a-z]+\s*=|javascript:", re.IGNORECASE)


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda path: path.name)
def test_no_template_has_inline_style_or_script(template: Path) -> None:
    assert INLINE.findall(template.read_text()) == []


@pytest.mark.parametrize("template", [path for path in TEMPLATES if "idp" not in path.parts], ids=lambda path: path.name)
def test_templates_stay_within_sixty_lines(template: Path) -> None:
    assert len(template.read_text().splitlines()) <= 60


@pytest.mark.parametrize("module", MODULES, ids=lambda path: path.name)
def test_modules_stay_within_a_hundred_lines_and_write_no_style_attribute(module: Path) -> None:
    text = module.read_text()
    assert len(text.splitlines()) <= 100
    assert 'setAttribute("style"' not in text
    assert "eval(" not in text


@pytest.mark.parametrize("file", [*TEMPLATES, *MODULES], ids=lambda path: path.name)
def test_every_icon_that_is_named_is_in_the_sprite(file: Path) -> None:
    sprite = (settings.BASE_DIR / "templates" / "_sprite.html").read_text()
    named = re.findall(r"""[#"](i-[a-z]+)["\s{]""", file.read_text())
    assert [icon for icon in named if f'id="{icon}"' not in sprite] == []


@pytest.mark.parametrize("template", [path for path in TEMPLATES if path.name.startswith("_")], ids=lambda path: path.name)
def test_every_piece_is_used(template: Path) -> None:
    name = template.relative_to(settings.BASE_DIR / "templates").as_posix()
    code = (settings.BASE_DIR / "console").rglob("*.py")
    known = ("pages/_clusters_",)  # named by their part
    assert name.startswith(known) or any(f'"{name}"' in other.read_text() for other in [*TEMPLATES, *code])


def test_pages_carry_a_policy_that_allows_nothing_inline(pool: Pool, ada: Client) -> None:
    cluster = world.a_cluster(pool)
    for path in ("/", "/clusters/new", f"/clusters/{cluster.pk}", "/nowhere"):
        answer = ada.get(path)
        policy = answer.headers["Content-Security-Policy"]
        assert "unsafe" not in policy
        assert "default-src 'none'" in policy
        assert INLINE.findall(answer.content.decode()) == []
