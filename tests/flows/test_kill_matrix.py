"""Each process killed at each moment of a preemption and of the refill after it, with two urgent workers and two beats.

Waves of preemptions, shaped so that at one instant every state of a drain is there at once: five nodes are asked back, of which
two have died (they time out) and three are soon empty (drained); at their deadline twenty more, all at once: eight cannot be
closed yet (asked), twelve are told. Their replacements are being launched, and another pool waits in its back-off.
States that would pass are held until the victim has been hit, so that a slow machine changes nothing. Which drains were in which
state is read from the table before the kill and after it; a victim that missed a state gets another wave. What came of it all is
read from the simulator's APIs and request log and from the ledger's tables, never through the console's own code.
"""

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.flows.conftest import settled
from tests.flows.kills import DEATHS, MORE_RESTARTS, Seconds, Victim
from tests.flows.preemption import ALLOWANCE, SERVE, TRAIN, Scene, Taken, until
from tests.flows.promises import judge
from tests.installation import Installation, fresh, within
from tests.reports import report, table

# `make test` takes the short one, `make kills` the full one: a longer window, and every restart.
MATRIX = os.environ.get("KILL_MATRIX", "")
FULL = MATRIX == "full"
pytestmark = pytest.mark.skipif(not MATRIX, reason="the kill matrix takes minutes: `make test` and `make kills` run it")
GROUPS = (*DEATHS, *(MORE_RESTARTS if FULL else ()))
WINDOW = 30 if FULL else 14  # seconds a drain has on a machine that is not overloaded, of the 300 in earnest
BOOTING = 3.0  # seconds, give or take a third
LEAD = timedelta(seconds=1)  # before the first nodes' deadline the twenty are asked back
MOMENTS = ("asked", "telling", "drained", "timed out", "back-off", "refill")
STATES = {"asked": "asked", "cordoned": "asked", "announced": "telling", "terminating": "telling", "timed_out": "timed out"}
WAVES = 3  # that a victim gets to be hit at every moment
BACK = 300.0  # seconds: longer than this nothing that was killed may be away
PROMPT = 5.0  # seconds: what a machine that is not overloaded takes to start any of them; what it takes beyond is not ours
DEATH = timedelta(
    seconds=10
)  # that a worker's death costs at most: its lease of 8 s runs out, and a sweep each second finds the drain

Found = dict[str, set[str]]  # by moment, what is in it


@dataclass
class Fate:
    """What came of one victim."""

    hit: dict[str, int] = field(default_factory=lambda: dict.fromkeys(MOMENTS, 0))
    away: float = 0.0  # seconds, the longest
    taken: list[Taken] = field(default_factory=list)

    @property
    def missed(self) -> list[str]:
        return [moment for moment, number in self.hit.items() if not number]

    @property
    def allowance(self) -> timedelta:
        """What is promised, and what this machine takes to start a process beyond what one that is not overloaded would."""
        return ALLOWANCE + timedelta(seconds=max(0.0, self.away - PROMPT))


@dataclass
class Matrix:
    """An installation with its scene, and the fate of each victim so far."""

    here: Installation
    scene: Scene
    window: int
    fates: dict[str, Fate] = field(default_factory=dict)
    began: float = field(default_factory=time.monotonic)

    def text(self) -> str:
        scene = self.scene
        minutes, seconds = divmod(int(time.monotonic() - self.began), 60)
        head = ["killed", *MOMENTS, "back after", "preempted", "gone, of deadline", "outcome"]
        rows = [[name, *(str(fate.hit[moment]) for moment in MOMENTS), *self._end(fate)] for name, fate in self.fates.items()]
        about = (
            f"Drain window {self.window} s, two urgent workers, two beats, twenty preemptions at once in each wave; "
            f"{minutes}:{seconds:02} min.\n"
            "A cell says how many drains (back-off: clusters; refill: machines) were in that state when it was killed.\n"
            f"In all {len(scene.taken)} preemptions. {self._tellings()}"
        )
        wrong = "".join(f"\n- {line}" for line in scene.wrong)
        return f"# Kill matrix\n\n{about}\n\n{table(head, rows)}\n{wrong}"

    def _tellings(self) -> str:
        scene = self.scene
        unlogged = (scene.pods & scene.unlogged) - scene.told
        excused = (scene.pods & scene.excused) - scene.told - unlogged
        return (
            f"Of {len(scene.pods)} pods {len(scene.pods & scene.told)} tellings are in the simulator's log. "
            f"{len(unlogged)} went with that log when the simulator was killed, and stand in the rows. "
            f"{len(excused)} are excused: their time was over before this machine had started again what was killed."
        )

    def _end(self, fate: Fate) -> list[str]:
        late = [self.scene.late(one) for one in fate.taken]
        gone = [one for one in late if one is not None]
        good = not fate.missed and gone == late and max(gone) <= fate.allowance
        last = f"{max(gone).total_seconds():+.1f} s" if gone else "–"
        return [f"{fate.away:.1f} s", str(len(late)), last, "as promised" if good else "BROKEN"]


def slowness() -> float:
    """How many times longer a process takes here and now than it needs: its time on the clock by that on a core."""
    began = time.monotonic()
    process = subprocess.Popen([sys.executable, "-c", "import django.db.models, celery.app, channels.layers, httpx"])
    _, _, used = os.wait4(process.pid, 0)
    process.returncode = 0
    return max(1.0, (time.monotonic() - began) / (used.ru_utime + used.ru_stime))


@pytest.fixture(scope="module")
def matrix(pytestconfig: pytest.Config) -> Iterator[Matrix]:
    """An installation of its own, with two urgent workers and two beats."""
    window = min(300, round(WINDOW * slowness()))
    quick = {
        "HALFTIDE_SIM_BOOT_SECONDS": str(BOOTING),
        "HALFTIDE_SIM_DEMAND": "off",
        "HALFTIDE_SIM_FIXTURE": str(Path(__file__).with_name("kills.json")),
        "HALFTIDE_DRAIN_WINDOW": str(window),
    }
    here = fresh("kills", **quick)
    try:
        here.up()
        assert within(300, lambda: settled(here), 0.3), here.rows("SELECT name, status, status_why FROM clusters_cluster")
        made = Matrix(here, Scene(here), window)
        with Seconds(here):
            made.scene.prepare()
            with made.scene.witnessed():
                yield made
        report(pytestconfig, "kill-matrix.md", made.text())
    finally:
        here.reset()


def states(scene: Scene) -> Found:
    """What is in each moment just now, by the tables. Drained and timed out: while the provider ends the machine."""
    found: Found = {moment: set() for moment in MOMENTS}
    open_drains = "SELECT id, state FROM capacity_drain WHERE state NOT IN ('removed', 'stopped') AND terminated_at IS NULL"
    for row in scene.rows(open_drains):
        found[STATES.get(row["state"], row["state"])].add(str(row["id"]))
    for row in scene.rows("SELECT w.cluster_id FROM capacity_wait w JOIN capacity_pool p ON p.next_try_at > now()"):
        found["back-off"].add(str(row["cluster_id"]))
    for row in scene.rows("SELECT id FROM clusters_machine WHERE state IN ('asked', 'booting')"):
        found["refill"].add(str(row["id"]))
    return found


def wave(matrix: Matrix, victims: Sequence[Victim], name: str) -> None:
    """Ask nodes back so that all states are there at once, and kill one victim after the other."""
    scene, known = matrix.scene, set(matrix.scene.taken)
    assert until(240, scene.full, 0.3), scene.rows(
        "SELECT name, desired_preemptible_gpus, allocated_preemptible_gpus FROM clusters_cluster"
    )
    early = scene.ready(TRAIN)[:5]
    many = scene.ready(TRAIN)[5:17]
    names = [node["metadata"]["name"] for node in (*early, *many[:2])]
    for node in names:  # the last two are being told for as long as their time lasts
        scene.pod(node, f"own-{name}-{node}", exits=matrix.window if node in names[5:] else 2)
    assert until(60, lambda: all(scene.running(TRAIN, names).values()), 0.2), "the pods do not run"
    scene.die(names[:2])
    deadline = scene.reclaim(TRAIN, early)
    with scene.held():
        until(matrix.window, lambda: datetime.now(UTC) > deadline - LEAD)
        scene.reclaim(SERVE, scene.ready(SERVE))
        scene.reclaim(TRAIN, many)
        taken = [one for uid, one in scene.taken.items() if uid not in known]
        for victim in victims:
            _kill(matrix, victim, name, taken)


def _kill(matrix: Matrix, victim: Victim, name: str, taken: Sequence[Taken]) -> None:
    here, scene, fate = matrix.here, matrix.scene, matrix.fates[victim.name]
    fate.taken += taken
    assert until(60, scene.collected), "the simulator does not answer"
    until(30, lambda: all(states(scene).values()), 0.05)
    sizes, before = victim.sizes(here), states(scene)
    at, killed = datetime.now(UTC), victim.kill(here)
    assert killed, f"{victim.name} did not run"
    after = states(scene) if victim.part != "bin/postgres" else before
    for moment in MOMENTS:
        fate.hit[moment] += len(before[moment] & after[moment])
    if victim.name == "simulator":
        scene.unlogged |= {pod for one in taken for pod in one.pods}
    scene.give_one_back()
    scene.mark(f"marker-{name}-{len(matrix.fates)}-{victim.part.split()[-1].replace('/', '-')}")
    back = until(BACK, lambda: victim.serves(here, killed, sizes), 0.1)
    away = datetime.now(UTC) - at
    fate.away = max(fate.away, away.total_seconds())
    assert back, f"{victim.name} is not back within {BACK:g} s"
    if fate.away > PROMPT and not victim.bystander:
        scene.excused |= {pod for one in taken if one.deadline < at + away + DEATH for pod in one.pods}


@pytest.mark.parametrize("victims", GROUPS, ids=lambda victims: "; ".join(victim.name for victim in victims))
def test_it_is_killed_at_each_moment_and_serves_again(matrix: Matrix, victims: Sequence[Victim]) -> None:
    fates = matrix.fates
    fates |= {victim.name: Fate() for victim in victims}
    for number in range(WAVES):
        if missing := [victim for victim in victims if fates[victim.name].missed]:
            wave(matrix, missing, f"{GROUPS.index(victims)}-{number}")
    assert {victim.name: fates[victim.name].missed for victim in victims} == {victim.name: [] for victim in victims}


def test_whatever_is_killed_the_machines_are_gone_by_their_deadline(matrix: Matrix) -> None:
    """Killed workers lose work even with late acknowledgement, and two schedulers do everything twice (celery/celery#1628,
    celery/celery#2856); a worker lives on but takes nothing after its queue came back (celery/celery#8030)."""
    scene = matrix.scene
    until(matrix.window + 60, lambda: scene.taken.keys() <= scene.gone.keys(), 0.2)
    for name, fate in matrix.fates.items():
        for one in fate.taken:
            late = scene.late(one)
            if late is None or late > fate.allowance:
                scene.wrong.append(f"{name}: {one.name} {'is there' if late is None else f'was gone {late} late'}")
    assert not scene.wrong


def test_after_all_of_it_everybody_was_told_once_and_no_launch_or_entry_is_lost_or_doubled(matrix: Matrix) -> None:
    scene = matrix.scene
    until(60, lambda: scene.full() and scene.waits(), 0.3)
    until(30, lambda: not scene.rows("SELECT 1 FROM capacity_drain WHERE state NOT IN ('removed', 'stopped')"), 0.3)
    judge(scene)
    assert not scene.wrong
