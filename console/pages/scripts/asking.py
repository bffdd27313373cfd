"""What an edit carries: the text byte by byte, the version it is based on, and a line about it."""

from dataclasses import dataclass
from urllib.parse import parse_qsl

from django.http import HttpRequest

from console.http import BadInput, Unprocessable, wants_json
from console.pages.asking import line_of_text
from console.scripts.checks import PARAM

LONGEST_MESSAGE = 200
FORM = "application/x-www-form-urlencoded"


@dataclass(frozen=True)
class Edit:
    raw: bytes
    based_on: int
    message: str

    @property
    def text(self) -> str:
        """As a page can show it again, whatever it was."""
        return self.raw.decode(errors="replace")


def edit_of(request: HttpRequest) -> Edit:
    """Raises Unprocessable, BadInput."""
    raw = typed_script(request)
    message = line_of_text(request.POST.get("message", ""), "message", "The message", LONGEST_MESSAGE)
    return Edit(raw, number_of(request, "based_on"), message)


def typed_script(request: HttpRequest) -> bytes:
    """The field `script` as it was sent: Django's own reading replaces in silence what is no UTF-8.

    A plain form's browser writes every line end as CRLF, whatever was typed, so those say nothing and are LF here. Our script
    sends the text as it is.
    """
    body = request.body.decode("latin-1") if request.content_type == FORM else ""
    fields = dict(parse_qsl(body, keep_blank_values=True, encoding="latin-1"))
    if PARAM not in fields:
        raise Unprocessable("The script is missing: send it as the form field script.", param=PARAM, code="missing")
    raw = fields[PARAM].encode("latin-1")
    return raw if wants_json(request) else raw.replace(b"\r\n", b"\n")


def number_of(request: HttpRequest, name: str) -> int:
    """A version's number; 0 stands for none."""
    typed = request.POST.get(name, "")
    if not (typed.isascii() and typed.isdigit() and len(typed) < 10):
        raise BadInput(f"{name} is the number of a version.", param=name)
    return int(typed)


def optional_number(request: HttpRequest, name: str) -> int | None:
    """Of an address; what makes no sense there is as good as left out."""
    typed = request.GET.get(name, "")
    return int(typed) if typed.isascii() and typed.isdigit() and len(typed) < 10 else None
