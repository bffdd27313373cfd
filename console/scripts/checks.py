"""What is done to a script's bytes before they are kept, and what is said about them. Pure.

Only line ends are touched: CRLF becomes LF, because a kernel looks for an interpreter named "bash\\r" otherwise. Whatever else
is odd is kept as it came and said, or refused with the place; nothing is mended in silence. A carriage return that ends no line
is refused and not kept: a browser turns it into a line break on the next save, so it could not stay what it is. Who means one
writes it as `\\r`.
"""

import re
from dataclasses import dataclass
from typing import Literal

from console.http import BadInput, Unprocessable

LIMIT = 64 * 1024  # bytes of one script as kept: all kinds of a cluster together fit a Secret, which holds 1 MiB
FIRST_LINE = 255  # bytes: what a kernel reads of `#!`
BOM = "\ufeff"
PARAM = "script"

# What turns the order of text on the screen around, so that a line reads otherwise than it runs (CVE-2021-42574).
TURNING = re.compile("[\u202a-\u202e\u2066-\u2069]")
MARKERS = re.compile(r"^(<<<<<<< |>>>>>>> )", re.MULTILINE)
SHELLS = ("bash", "sh", "dash", "ksh", "busybox", "python3", "perl")
ON_EVERY_NODE = {f"{folder}/{name}" for folder in ("/bin", "/usr/bin") for name in SHELLS}

Level = Literal["error", "warning", "info", "style"]


@dataclass(frozen=True)
class Finding:
    """One remark at a place, lines and columns from 1. `code` is ShellCheck's (SC2046) or a word of ours."""

    line: int
    column: int
    level: Level
    code: str
    message: str


@dataclass(frozen=True)
class Clean:
    """A script as it is kept, and the sentence about what was changed in it, empty where nothing was."""

    text: str
    size: int  # bytes in UTF-8
    said: str = ""


def clean(raw: bytes | str) -> Clean:
    """The text to keep. Raises BadInput for what is no text, Unprocessable for what no script can hold; both with the place."""
    data = raw if isinstance(raw, bytes) else _encoded(raw)
    crlf = data.count(b"\r\n")
    data = data.replace(b"\r\n", b"\n")
    _refuse_byte(data, b"\x00", "nul", "a NUL byte, which ends a text for most programs. Take it out")
    _refuse_byte(data, b"\r", "lone_cr", "a carriage return inside the line. Write it as \\r if you mean it, or break the line")
    text = _decoded(data)
    if len(data) > LIMIT:
        raise Unprocessable(
            f"The script has {len(data):,} bytes; at most {LIMIT:,} (64 KiB) are kept. Fetch what is large from where it lies.",
            param=PARAM,
            code="too_long",
            bytes=len(data),
            limit=LIMIT,
        )
    many = "One line" if crlf == 1 else f"{crlf:,} lines"
    return Clean(text, len(data), f"{many} ended in CRLF, as on Windows; kept with LF." if crlf else "")


def remarks(text: str, shell: bool = True) -> list[Finding]:
    """What is odd about a text that is kept all the same, in the order of its lines."""
    found = _first_line(text) if shell and text else []
    for expression, level, code, message in (
        (MARKERS, "error", "merge-marks", "A mark of the merge is still here: keep one side and take the marks out."),
        (TURNING, "warning", "turned-text", "A character here turns the text around: it reads otherwise than it runs."),
    ):
        found += [_at(text, match.start(), level, code, message) for match in list(expression.finditer(text))[:20]]  # type: ignore[arg-type]
    return sorted(found, key=lambda one: (one.line, one.column))


def interpreter(text: str) -> str:
    """The program that the first line names, without folders and options: "bash". Empty where there is none."""
    if not text.startswith("#!"):
        return ""
    words = text[2:].split("\n", 1)[0].split()
    if words and words[0].rpartition("/")[2] == "env":
        words = [word for word in words[1:] if not word.startswith("-") and "=" not in word]
    return words[0].rpartition("/")[2] if words else ""


def _first_line(text: str) -> list[Finding]:
    bare = text.lstrip(f"{BOM} \t\n")
    if text.startswith("#!"):
        return _program(text[2:].split("\n", 1)[0])
    if not bare.startswith("#!"):
        return [_say("warning", "no-shebang", "No interpreter: begin with #!/bin/bash, or the node cannot run this.")]
    ahead = text[: len(text) - len(bare)]
    if ahead.startswith(BOM):
        return [
            _say("error", "bom", "A byte order mark stands before #!, so the node finds no interpreter. It is kept; take it out.")
        ]
    what = "A blank line stands" if "\n" in ahead else "Blanks stand"
    return [_say("error", "blank-first", f"{what} before #!, so the node finds no interpreter. Kept as written; take it out.")]


def _program(line: str) -> list[Finding]:
    words = line.split()
    if not words or not words[0].startswith("/"):
        return [_say("error", "odd-shebang", "The interpreter after #! is a whole path, such as /bin/bash.")]
    if len(line.encode()) + 2 > FIRST_LINE:
        return [_say("error", "odd-shebang", f"A node reads {FIRST_LINE} bytes of the first line; the rest is cut off.")]
    name = words[0].rpartition("/")[2]
    if name == "env" and len(words) > 2 and not words[1].startswith("-S"):
        return [_say("warning", "odd-shebang", "env takes one word here; more need env -S.")]
    known = name == "env" and interpreter(f"#!{line}") in SHELLS
    if not known and words[0] not in ON_EVERY_NODE:
        return [_say("info", "odd-shebang", f"{' '.join(words[:2]) if name == 'env' else words[0]} may not be on every node.")]
    return []


def _say(level: Level, code: str, message: str) -> Finding:
    return Finding(1, 1, level, code, message)


def _at(text: str, place: int, level: Level, code: str, message: str) -> Finding:
    start = text.rfind("\n", 0, place) + 1
    return Finding(text.count("\n", 0, place) + 1, place - start + 1, level, code, message)


def _encoded(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        line = text.count("\n", 0, error.start) + 1
        raise BadInput(
            f"Line {line} holds half of a character (a lone surrogate), which is no text.",
            param=PARAM,
            code="not_text",
            line=line,
        ) from None


def _decoded(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        line, column = _place(data, error.start)
        raise BadInput(
            f"Line {line}, byte {column}: 0x{data[error.start]:02x} is not UTF-8. Save the script as UTF-8 and send it again.",
            param=PARAM,
            code="not_utf8",
            line=line,
        ) from None


def _refuse_byte(data: bytes, byte: bytes, code: str, what: str) -> None:
    where = data.find(byte)
    if where >= 0:
        line, column = _place(data, where)
        raise Unprocessable(f"Line {line}, byte {column}: {what}.", param=PARAM, code=code, line=line)


def _place(data: bytes, where: int) -> tuple[int, int]:
    return data.count(b"\n", 0, where) + 1, where - data.rfind(b"\n", 0, where)
