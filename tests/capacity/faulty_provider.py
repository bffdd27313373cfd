"""A provider as a model, without time of its own, with every fault that real ones have."""

import uuid
from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass
class FaultyProvider:
    """Delays, refuses, answers twice and forgets. A token is a machine, once, for the cluster it was first asked for."""

    total: int
    others: int = 0
    live: set[uuid.UUID] = field(default_factory=set)
    ended: set[uuid.UUID] = field(default_factory=set)
    under_way: list[Callable[[], object]] = field(default_factory=list)  # requests that arrive later
    silent: bool = False
    refuses: bool = False
    omits: set[uuid.UUID] = field(default_factory=set)  # machines that lists leave out
    mood: str = ""  # of the next request: delayed, lost (done, no answer), twice

    @property
    def free(self) -> int:
        return max(0, self.total - self.others - len(self.live))

    @property
    def owed(self) -> int:
        return max(0, self.others + len(self.live) - self.total)

    def launch(self, token: uuid.UUID) -> str:
        """What the caller hears: given, none free, refused, or unclear."""
        return self._asked(lambda: self._launched(token))

    def end(self, token: uuid.UUID) -> str:
        return self._asked(lambda: self._end(token))

    def _asked(self, work: Callable[[], str]) -> str:
        mood, self.mood = self.mood, ""
        if self.silent or mood == "delayed":
            self.under_way.append(work)  # a server that hangs reads it when it wakes
            return "unclear"
        heard = work()
        if mood == "twice":
            heard = work()
        return "unclear" if mood == "lost" else heard

    def _launched(self, token: uuid.UUID) -> str:
        if self.refuses:
            return "refused"
        if token not in self.live | self.ended:
            if not self.free:
                return "none free"
            self.live.add(token)
        return "given"

    def _end(self, token: uuid.UUID) -> str:
        if token in self.live:
            self.live.discard(token)
            self.ended.add(token)
        return "ended"
