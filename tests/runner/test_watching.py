"""What the terminal says while everything runs: each process that died and came back, in a line."""

from console.runner.supervise import Status
from console.runner.up import changes, settled


def said(*looks: Status) -> list[str]:
    """Lines about one process in a row of looks, the first of which is the start's."""
    before, lines = {looks[0].name: looks[0]}, []
    for look in looks[1:]:
        lines += changes(before, {look.name: look})
        before |= settled({look.name: look})
    return lines


def test_a_process_that_came_back_between_two_looks_is_told():
    """supervisord has it up again in a tenth of a second, so a look finds it starting under its new pid."""
    assert said(Status("web", 7, "RUNNING"), Status("web", 8, "STARTING"), Status("web", 8, "RUNNING")) == ["web is back (pid 8)"]


def test_one_that_ends_again_and_again_is_told_once_and_then_that_it_is_back():
    looks = [Status("web", 7, "RUNNING"), Status("web", 0, "BACKOFF"), Status("web", 8, "STARTING"), Status("web", 0, "BACKOFF")]
    assert said(*looks, Status("web", 9, "RUNNING")) == ["web ended: see its log", "web is back (pid 9)"]


def test_nothing_happened_is_no_line():
    assert said(*[Status("web", 7, "RUNNING")] * 3) == []
