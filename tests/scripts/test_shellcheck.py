"""ShellCheck advises and never stands in the way: it may be slow, broken or missing."""

from pathlib import Path

import pytest

from console.scripts import shellcheck, templates
from console.scripts.checks import remarks
from console.scripts.kinds import KINDS
from console.scripts.shellcheck import check


def program(folder: Path, body: str) -> Path:
    made = folder / "shellcheck"
    made.write_text(f"#!/bin/sh\n{body}\n")
    made.chmod(0o755)
    return made


def test_findings_come_with_their_place_and_level() -> None:
    found = check("#!/bin/bash\nfor one in $list; do\n\techo $one\ndone\n")
    assert found.why_not == ""
    assert [(one.line, one.column, one.level, one.code) for one in found.findings] == [
        (2, 12, "warning", "SC2154"),
        (3, 7, "info", "SC2086"),
    ]


def test_it_reads_no_other_file(tmp_path: Path) -> None:
    other = tmp_path / "other.sh"
    other.write_text("echo $unquoted\n")
    found = check(f"#!/bin/bash\n# shellcheck source={other}\n. {other}\n")
    assert found.findings == ()


def test_the_text_is_never_an_argument(tmp_path: Path) -> None:
    recorder = program(tmp_path, f'echo "$#: $*" >{tmp_path}/arguments; cat >{tmp_path}/input; echo \'{{"comments": []}}\'')
    text = "#!/bin/bash\necho $(touch /tmp/owned) --help\n"
    assert check(text, recorder).findings == ()
    assert "owned" not in (tmp_path / "arguments").read_text()
    assert (tmp_path / "input").read_text() == text


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("exec sleep 60", "takes more than"),
        ("while :; do :; done", "takes more than"),
        ("cat >/dev/null; head -c 9000000 /dev/zero", "takes more than"),
        ("cat >/dev/null; echo surprise", "answered in a way"),
        ("cat >/dev/null; echo '{\"comments\": [{}]}'", "answered in a way"),
        ("exit 4", "takes more than"),
        ("exec 0<&-; sleep 0.1; exit 127", "takes more than"),
    ],
)
def test_whatever_the_program_does_the_answer_is_not_checked(tmp_path: Path, body: str, words: str) -> None:
    found = check("#!/bin/bash\n" + "echo\n" * 10_000, program(tmp_path, body), seconds=1)
    assert found.findings == ()
    assert found.why_not.startswith("Not checked: ")
    assert words in found.why_not


def test_a_missing_program_and_another_language_are_said(tmp_path: Path) -> None:
    assert "not installed" in check("#!/bin/bash\n", tmp_path / "nothing").why_not
    assert "not python3" in check("#!/usr/bin/python3\nprint()\n").why_not
    assert check("  \n").why_not == ""


def test_more_than_two_at_once_wait_and_then_are_not_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    for _ in range(shellcheck.AT_ONCE):
        assert shellcheck._turn.acquire(timeout=0)
    try:
        assert "others are being checked" in check("#!/bin/bash\n").why_not
    finally:
        for _ in range(shellcheck.AT_ONCE):
            shellcheck._turn.release()


def test_many_findings_are_cut_and_counted() -> None:
    found = check("#!/bin/bash\n" + "echo $a\n" * 250)
    assert len(found.findings) == shellcheck.MOST
    assert found.more > 0


@pytest.mark.parametrize("template", templates.templates(), ids=lambda one: one.name)
def test_each_template_passes_without_a_finding(template: templates.Template) -> None:
    assert check(template.text).findings == ()
    assert check(template.text).why_not == ""
    assert remarks(template.text) == []
    assert set(template.kinds) <= {kind.name for kind in KINDS}
