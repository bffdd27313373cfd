"""What processes use, as the kernel counts it: memory in MiB, processor time in seconds."""

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Processes:
    """Some processes of an installation; those that have ended meanwhile count for nothing."""

    pids: tuple[int, ...]

    def cpu(self) -> float:
        """Of all of them together, user and system."""
        return sum(_cpu(_read(pid, "stat")) for pid in self.pids)

    def resident(self) -> float:
        """Of the largest of them, now."""
        return self._largest("status", "VmRSS:")

    def peak(self) -> float:
        """The most that one of them has had resident since `forget_peaks`."""
        return self._largest("status", "VmHWM:")

    def proportional(self) -> float:
        """Of the largest of them, what it shares with others counted in parts."""
        return self._largest("smaps_rollup", "Pss:")

    def forget_peaks(self) -> None:
        for pid in self.pids:
            Path(f"/proc/{pid}/clear_refs").write_text("5")  # proc(5): resets the peak resident set size

    def _largest(self, file: str, name: str) -> float:
        return max(_kilobytes(_read(pid, file).splitlines(), name) for pid in self.pids) / 1024


def _read(pid: int, file: str) -> str:
    try:
        return Path(f"/proc/{pid}/{file}").read_text()
    except OSError:
        return ""


def _kilobytes(lines: Iterable[str], name: str) -> int:
    return next((int(line.split()[1]) for line in lines if line.startswith(name)), 0)


def _cpu(stat: str) -> float:
    """The command may hold anything, so fields count from its closing bracket."""
    fields = stat.rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS if fields else 0.0
