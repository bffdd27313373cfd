"""What becomes of a script's bytes: line ends, odd first lines, bytes that are no text, and size."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from console.http import BadInput, DomainError, Unprocessable
from console.scripts.checks import LIMIT, clean, interpreter, remarks


def test_crlf_becomes_lf_and_is_said() -> None:
    """canonical/cloud-init#2183, coreos/coreos-cloudinit#289, OnionIoT/Onion-Console#54: the node found no interpreter."""
    found = clean(b"#!/bin/bash\r\necho one\r\necho two\n")
    assert found.text == "#!/bin/bash\necho one\necho two\n"
    assert found.size == len(found.text)
    assert found.said == "2 lines ended in CRLF, as on Windows; kept with LF."
    assert clean("#!/bin/bash\n").said == ""


@pytest.mark.parametrize(
    ("raw", "kind", "code", "place"),
    [
        (b"#!/bin/bash\necho a\rb\n", Unprocessable, "lone_cr", "Line 2, byte 7"),
        (b"#!/bin/bash\r\necho\r\r\n", Unprocessable, "lone_cr", "Line 2, byte 5"),
        (b"\n\nab\x00c", Unprocessable, "nul", "Line 3, byte 3"),
        (b"echo ok\r\n\xc3\xa4\xff\n", BadInput, "not_utf8", "Line 2, byte 3"),
        ("echo ok\n\ud800", BadInput, "not_text", "Line 2"),
    ],
)
def test_what_is_no_script_is_refused_with_the_place(raw: bytes | str, kind: type[DomainError], code: str, place: str) -> None:
    with pytest.raises(kind) as refused:
        clean(raw)
    assert refused.value.code == code
    assert refused.value.message.startswith(place)


def test_size_is_counted_in_bytes_of_the_final_text() -> None:
    assert clean(b"\r\n" * LIMIT).size == LIMIT
    assert clean("ä" * (LIMIT // 2)).size == LIMIT
    with pytest.raises(Unprocessable) as refused:
        clean("ä" * (LIMIT // 2) + "x")
    assert refused.value.state == {"bytes": LIMIT + 1, "limit": LIMIT}


@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r\x00"), max_size=200))
def test_whatever_else_there_is_stays_byte_for_byte(text: str) -> None:
    """Tabs, a byte order mark, blank lines, control characters, no line end at the end: all kept."""
    assert clean(text.encode()).text == text
    assert clean(text.replace("\n", "\r\n")).text == text


@pytest.mark.parametrize(
    ("text", "code", "words"),
    [
        ("echo\n", "no-shebang", "No interpreter"),
        ("\ufeff#!/bin/bash\n", "bom", "byte order mark"),
        ("\n\n#!/bin/bash\n", "blank-first", "A blank line stands before"),
        ("  #!/bin/bash\n", "blank-first", "Blanks stand before"),
        ("#!bash\n", "odd-shebang", "whole path"),
        ("#!\n", "odd-shebang", "whole path"),
        ("#!/usr/bin/env bash -e\n", "odd-shebang", "env -S"),
        ("#!/usr/bin/env fish\n", "odd-shebang", "may not be on every node"),
        ("#!/opt/tool/bin/bash\n", "odd-shebang", "may not be on every node"),
        (f"#!/bin/bash {'x' * 260}\n", "odd-shebang", "255 bytes"),
        ("#!/bin/bash\n<<<<<<< yours\n", "merge-marks", "mark of the merge"),
        ("#!/bin/bash\necho \u202e\n", "turned-text", "turns the text around"),
    ],
)
def test_what_is_odd_is_kept_and_said(text: str, code: str, words: str) -> None:
    assert clean(text).text == text
    [found] = remarks(text)
    assert found.code == code
    assert words in found.message


@pytest.mark.parametrize(
    "line", ["#!/bin/bash", "#! /bin/sh -e", "#!/usr/bin/env bash", "#!/usr/bin/env -S bash -e", "#!/usr/bin/python3"]
)
def test_an_ordinary_first_line_is_not_remarked_on(line: str) -> None:
    assert remarks(f"{line}\necho\n") == []


def test_a_piece_of_configuration_needs_no_first_line() -> None:
    assert remarks("PrologFlags=Alloc\n", shell=False) == []
    assert remarks("") == []


def test_the_place_of_a_remark_is_that_of_the_text() -> None:
    first, second = remarks("#!/bin/sh\n>>>>>>> v9 by olu\n\techo \u2066x\n")
    assert (first.line, first.column, second.line, second.column) == (2, 1, 3, 7)


@pytest.mark.parametrize(
    ("line", "name"),
    [("#!/bin/bash -e", "bash"), ("#!/usr/bin/env -S A=1 dash", "dash"), ("echo", ""), ("#!", ""), ("#!/usr/bin/env", "")],
)
def test_the_interpreter_is_the_programs_name(line: str, name: str) -> None:
    assert interpreter(line) == name
