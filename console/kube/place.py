"""What a follower decides by: which version to continue from, when to list again, how long to wait.

Kept apart from the stream, so that it can be read and tested without one.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from console.kube.errors import Expired, KubeError, Stale, Throttled
from console.kube.shapes import Listing

# Seconds before the second try, and at most, while trouble lasts.
_FIRST_DELAY = 1.0
_LONGEST_DELAY = 30.0

# After so many failures in a row the version we continue from is itself under suspicion.
_FAILURES_BEFORE_LIST = 3

# No two watches are opened, and no two Heard are told, closer together than this.
_PACE = timedelta(seconds=1)

# A watch that was answered so long ago worked: what ends it is no repeat of what came before it.
_STOOD = timedelta(seconds=15)

# How long we wait at a server's word, in seconds: a mistake of its must not deafen us for a day.
_LONGEST_OBEYED = 300.0


@dataclass(slots=True)
class Place:
    """Where one follower is in the history of its kind, and how well it goes.

    `version` is what the next watch continues from (None: list first); `highest` the latest that was ever seen. `doubted`: the
    next step is to ask whether the API's history is still ours.
    """

    version: str | None
    highest: str | None
    failures: int = 0
    trouble_since: datetime | None = None
    doubted: bool = False
    _partial: bool = False  # the latest list had objects that cannot be read
    _opened: datetime | None = field(default=None)  # when the latest watch was asked for, until a failure after it
    _answered: datetime | None = field(default=None)  # when it was answered: one that hangs unanswered stands nowhere
    _told: datetime | None = field(default=None)

    def listed(self, listing: Listing) -> None:
        """Continue from a list. Raises Stale for one that is older than what was seen."""
        if _older(listing.resource_version, self.highest):
            raise Stale(
                f"The Kubernetes API answered with version {listing.resource_version}, but {self.highest} was seen before. "
                "It may have been restored from a backup; restart the watcher once that is sure."
            )
        self.version = self.highest = listing.resource_version
        self._partial = bool(listing.broken)

    def moved(self, version: str) -> None:
        """The stream brought us to `version`: it works."""
        if version and not _older(version, self.version):
            self.version = self.highest = version
        self.failures = 0
        self.trouble_since = None

    def failed(self, error: KubeError, now: datetime) -> float:
        """Note a failure; seconds until the next try. After a watch that stood for a while it is the first one.

        A watch excuses one failure: of those that follow while none can be opened (lists, say), each is one more. A server that
        asks to wait is waited for (kubernetes/client-go#222).
        """
        if self._answered is not None and now - self._answered >= _STOOD:
            self.failures = 0
        self._opened = self._answered = None
        self.trouble_since = self.trouble_since or now
        self.failures += 1
        if isinstance(error, Expired) or self.failures >= _FAILURES_BEFORE_LIST:
            self.version, self.doubted = None, False  # a list answers the doubt too
        delay: float = min(_LONGEST_DELAY, _FIRST_DELAY * 2 ** min(self.failures - 1, 10))
        if isinstance(error, Throttled):
            delay = max(delay, min(_LONGEST_OBEYED, error.retry_after))
        return delay * random.uniform(1, 1.2)  # noqa: S311 - spreads retries, keeps no secret

    def ended(self, *, quiet: bool) -> None:
        """The server ended a watch in good order.

        A `quiet` one sent not even a bookmark. Its history may not be ours any more (asked for a version from before a restore,
        Kubernetes waits in silence instead of refusing). But a busy server also comes too late with its bookmark, and then a
        list would be all objects of a large cluster for nothing. What was left out of a list is looked for again by the next one:
        nothing else tells that it can be read now.
        """
        self.failures = 0
        self.trouble_since = None
        self.doubted = quiet
        if self._partial:
            self.version, self.doubted = None, False

    def compared(self, newest: str) -> None:
        """The API is at `newest` now. Where that is before our version, or no number, the next step is a list."""
        self.doubted = False
        if not newest.isdecimal() or _older(newest, self.version):
            self.version = None

    def opened(self, now: datetime) -> None:
        """A watch is being asked for."""
        self._opened, self._answered = now, None

    def answered(self, now: datetime) -> None:
        """The server has opened it."""
        self._answered = now

    def wait_for_turn(self, now: datetime) -> float:
        """Seconds until the next watch may be opened."""
        return max(0.0, (self._opened + _PACE - now).total_seconds()) if self._opened else 0.0

    def may_tell(self, now: datetime) -> bool:
        """Whether the last Heard is long enough ago for another."""
        return self._told is None or now - self._told >= _PACE

    def heard(self, now: datetime) -> tuple[datetime, str]:
        """A sign of life is being told: when, and up to which version. Whatever comes next is new trouble, from then on."""
        self._told = now
        self.trouble_since = None
        return now, self.version or ""


def _older(version: str, than: str | None) -> bool:
    # Versions are opaque by contract and integers in fact; what is no integer is not compared.
    return bool(than) and version.isdecimal() and str(than).isdecimal() and int(version) < int(str(than))
