"""What an answer means and when to try again. Pure; lengths in seconds."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime

MOST_TRIES = 5
BACK_OFF = (5, 30, 120, 600)  # after the first, second, third, fourth try
JITTER = 0.2  # of each, either way, so that many webhooks of one receiver do not come back together
LONGEST_WAIT = 3600  # a receiver may ask for more; it is asked again after an hour
PAUSES = (429, 503)  # with Retry-After: the receiver means all messages, not only this one


@dataclass(frozen=True)
class Answer:
    """What came of one try. `status` is None where there was no answer; `problem` is empty where it was delivered."""

    status: int | None
    problem: str = ""
    said: str = ""  # the beginning of what the receiver answered
    wait: int | None = None  # Retry-After, in seconds

    @property
    def delivered(self) -> bool:
        return not self.problem


def problem_of(status: int) -> str:
    """Why a status is no delivery, in words; empty for 2xx."""
    if 200 <= status < 300:
        return ""
    if 300 <= status < 400:
        return f"Answered with a redirect ({status}), which is not followed. Put the final address here."
    words = {
        400: "did not understand the message",
        401: "wants other credentials",
        403: "refused it",
        404: "knows no such address",
        410: "says that this address is gone",
        413: "found the message too large",
        429: "asks for fewer messages",
    }
    why = words.get(status, "has a fault of its own" if status >= 500 else "refused it")
    return f"The receiver {why} ({status})."


def retry_after(header: str | None, now: datetime) -> int | None:
    """Seconds that a Retry-After asks for, a number or a date; None where it says nothing that can be read."""
    text = (header or "").strip()
    if text.isascii() and text.isdigit():
        return min(int(text[:9]), LONGEST_WAIT)
    try:
        at = parsedate_to_datetime(text)
    except ValueError:
        return None
    seconds = (at.replace(tzinfo=at.tzinfo or UTC) - now).total_seconds()
    return max(0, min(round(seconds), LONGEST_WAIT))


def next_try(tries: int, most: int, wait: int | None, dice: float, now: datetime) -> datetime | None:
    """When to try again after `tries` of `most`, or None where that was the last. `dice` is from 0 to 1."""
    if tries >= most:
        return None
    back_off = BACK_OFF[min(tries, len(BACK_OFF)) - 1] * (1 - JITTER + 2 * JITTER * dice)
    return now + timedelta(seconds=max(back_off, min(wait or 0, LONGEST_WAIT)))
