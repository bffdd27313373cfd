"""Each process killed at each moment of a preemption and of the refill after it, with two urgent workers and two beats.

One preemption a victim: other tenants ask back all preemptible machines of two clusters at once (twenty in the first). While it
goes through its states the victim is killed with SIGKILL in each of them, each time as soon as it serves again. What came of it
is read from the simulator's APIs and request log and from the ledger's tables, never through the console's own code.
"""

import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import pytest

from tests.flows.conftest import settled
from tests.flows.kills import VICTIMS, Seconds, Victim
from tests.flows.preemption import Preemption, Rows, until
from tests.flows.promises import ALLOWANCE, adds_up_while_waiting, judge
from tests.installation import Installation, fresh, within
from tests.reports import report, table

# Each kill is a race against a real clock, so the matrix wants the machine for itself.
pytestmark = pytest.mark.skipif(
    not os.environ.get("KILL_MATRIX"), reason="THE KILL MATRIX DID NOT RUN: `make kills` runs it, alone on the machine"
)

WINDOW = 25  # seconds a drain has here, of the 300 in earnest
MOMENTS = ("asked", "telling", "drained", "timed out", "back-off", "refill")
BACK = 40.0  # seconds: longer than this nothing that was killed may be away
DEATH = 10.0  # seconds that a worker's death costs at most: its lease of 8 s runs out, and a sweep each second finds the drain
PROMPT = 5.0  # seconds: what a machine that is not overloaded takes to start any of them; what it takes beyond is not ours
FEW, MANY = {"aurora-train": 4, "atlas-serve": 2}, {"aurora-train": 12, "atlas-serve": 8}


@dataclass
class Matrix:
    """The outcome of each kill, by victim and moment."""

    cells: dict[str, dict[str, str]] = field(default_factory=dict)
    ends: dict[str, list[str]] = field(default_factory=dict)
    began: float = field(default_factory=time.monotonic)

    def text(self) -> str:
        head = ["killed (SIGKILL)", *MOMENTS, "preempted, told", "gone, of deadline", "launches", "outcome"]
        rows = [[name, *(cells.get(moment, "–") for moment in MOMENTS), *self.ends[name]] for name, cells in self.cells.items()]
        minutes, seconds = divmod(int(time.monotonic() - self.began), 60)
        about = (
            f"Drain window {WINDOW} s, allowance {ALLOWANCE.seconds} s, two urgent workers, two beats; "
            f"{minutes}:{seconds:02} min.\n"
            "A cell says what was in that state when the process was killed, and after how long it served again."
        )
        return f"# Kill matrix\n\n{about}\n\n{table(head, rows)}"


@pytest.fixture(scope="module")
def matrix(pytestconfig: pytest.Config) -> Iterator[Matrix]:
    made = Matrix()
    yield made
    report(pytestconfig, "kill-matrix.md", made.text())


@pytest.fixture(scope="module")
def twice(matrix: Matrix) -> Iterator[Installation]:
    """An installation of its own, with two urgent workers and two beats."""
    quick = {"HALFTIDE_SIM_BOOT_SECONDS": "0.5", "HALFTIDE_SIM_DEMAND": "off", "HALFTIDE_DRAIN_WINDOW": str(WINDOW)}
    here = fresh("kills", **quick)
    try:
        here.up()
        assert within(120, lambda: settled(here)), here.rows("SELECT name, status, status_why FROM clusters_cluster")
        with Seconds(here):
            more = {"namespace": "training", "image": "registry.example/more:1", "grace": 120, "class": "preemptible"}
            fills = {"kind": "ReplicaSet", "gpus": 4, "program": {"exit-seconds": "2-9", "exit-code": "0"}}
            for name, replicas in (("aurora-train", 6), ("atlas-serve", 12)):
                [row] = here.rows("SELECT id FROM clusters_cluster WHERE name = %s", name)
                here.control(
                    "POST", "workloads", {"cluster_id": str(row["id"]), "name": "more", "replicas": replicas, **more, **fills}
                )
            yield here
    finally:
        here.reset()


class Kills:
    """The kills of one victim, one at each moment."""

    def __init__(self, here: Installation, victim: Victim, preemption: Preemption) -> None:
        self.here, self.victim, self.preemption = here, victim, preemption
        self.cells: dict[str, str] = {}
        self.away: dict[str, float] = {}  # seconds
        self.times: dict[str, datetime] = {}

    def at(self, moment: str, found: Callable[[], Rows], seconds: float) -> None:
        """Wait for the moment, kill, and wait until it serves again; the preemption goes on meanwhile."""
        rows = until(seconds, found, 0.1)
        if rows is None:
            # While the last victim came back, the drains went through this state: nothing was there to be killed in it.
            self.cells[moment] = "passed meanwhile"
            return
        until(5, self._collected)
        sizes = self.victim.sizes(self.here)
        killed = self.victim.kill(self.here, self.victim.part)
        at, self.times[moment] = time.monotonic(), datetime.now(UTC)
        self.preemption.mark(len(self.cells))
        if not killed or not until(BACK, lambda: self.victim.serves(self.here, killed, sizes), 0.1):
            self.preemption.wrong.append(f"{moment}: not back within {BACK:g} s")
        self.away[moment] = time.monotonic() - at
        self.cells[moment] = f"{len(rows)}, back {self.away[moment]:.1f} s"

    def allowance(self, deadline: datetime) -> timedelta:
        """What is promised holds for one death: one just before the last takes its own time, and so does a slow machine."""
        slow = sum(max(0.0, self.away.get(moment, 0.0) - PROMPT) for moment in ("drained", "timed out"))
        left = (self.times["drained"] - deadline).total_seconds() + DEATH if "drained" in self.times else 0.0
        before = max(0.0, min(DEATH, left)) if self.victim.part == "-n urgent" and "timed out" in self.times else 0.0
        return ALLOWANCE + timedelta(seconds=slow + before)

    def _collected(self) -> bool:
        if self.victim.name == "simulator":  # its log goes with it
            self.preemption.collect()
        return True


@pytest.mark.parametrize("victim", VICTIMS, ids=lambda victim: victim.name)
def test_whatever_is_killed_whenever_everybody_is_told_once_and_the_machines_go_and_come_in_time(
    twice: Installation, matrix: Matrix, victim: Victim
) -> None:
    """Killed workers lose work even with late acknowledgement, and two schedulers do everything twice (celery/celery#1628,
    celery/celery#2856); a worker lives on but takes nothing after its queue came back (celery/celery#8030)."""
    targets = MANY if victim is VICTIMS[0] else FEW
    scene = Preemption(twice, targets, marker=str(VICTIMS.index(victim)))
    scene.prepare()
    kills = Kills(twice, victim, scene)
    scene.begin()
    with scene.witnessed():
        kills.at("asked", lambda: scene.drains("asked", "cordoned"), 20)
        kills.at("telling", lambda: scene.drains("announced", "terminating"), 20)
        kills.at("drained", lambda: scene.drains("drained"), WINDOW + 10)
        kills.at("timed out", lambda: scene.drains("timed_out"), WINDOW + 10)
        until(60, lambda: scene.gone_at, 0.1)
    kills.at("back-off", scene.waits, 30)
    adds_up_while_waiting(scene)
    scene.give_back()
    kills.at("refill", scene.launching, 30)
    refilled = until(90, scene.full, 0.2)
    if not refilled:
        scene.wrong.append("not refilled within 90 s")
    drains = scene.drains()
    deadline = max((drain["deadline"] for drain in drains), default=scene.began)
    judge(scene, kills.allowance(deadline))
    late = (scene.gone_at - deadline).total_seconds() if scene.gone_at else 0.0
    launched = scene.number if refilled else "?"
    matrix.cells[victim.name] = kills.cells
    matrix.ends[victim.name] = [
        f"{len(drains)}, {len(scene.pods & scene.told)} of {len(scene.pods)} pods",
        f"{late:+.1f} s",
        f"{launched} of {scene.number}",
        "as promised" if not scene.wrong else f"{len(scene.wrong)} broken",
    ]
    assert not scene.wrong
