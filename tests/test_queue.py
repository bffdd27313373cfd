"""The queue carries hints: what is delivered late, twice or never does no harm, and no task can outlive its delivery."""

import re
import subprocess
import sys

import pytest
from django.conf import settings

from console import beat
from console.capacity.enqueue import QUEUES
from console.celery import app
from console.env import ROOT
from console.runner.processes import console_processes


def test_every_task_ends_before_it_would_be_delivered_again() -> None:
    """A visibility timeout shorter than the task runs it several times (celery/kombu#337, celery/celery#2599)."""
    app.loader.import_default_modules()
    visible = settings.CELERY_BROKER_TRANSPORT_OPTIONS["visibility_timeout"]
    limits = {name: task.time_limit or settings.CELERY_TASK_TIME_LIMIT for name, task in app.tasks.items()}
    assert {name for name in limits if name.startswith("capacity.")} >= {"capacity.sweep", "capacity.drive_drains"}
    assert max(limits.values()) < visible


def test_a_task_is_delivered_again_when_its_worker_dies() -> None:
    """A killed child acknowledges or forgets its task even with late acknowledgement (celery/celery#1628, celery/celery#3501)."""
    app.loader.import_default_modules()
    for task in app.tasks.values():
        if not task.name.startswith("celery."):
            assert task.acks_late
            assert task.reject_on_worker_lost


def test_what_the_beat_adds_expires_before_it_can_pile_up() -> None:
    """A run slower than its period, or a night without workers, leaves thousands of stale runs (paperless-ngx/paperless-ngx#2604,
    celery/celery#3153)."""
    for entry in beat.app.conf.beat_schedule.values():
        assert entry["options"]["expires"] <= 2 * entry["schedule"]


@pytest.mark.parametrize("word", ["countdown", "eta"])
def test_no_task_waits_in_the_queue_for_its_time(word: str) -> None:
    """A far ETA is delivered again and again (celery/kombu#337); what is due later says so in its own row."""
    calls = re.compile(rf"(apply_async|send_task|delay)\([^)]*\b{word}\s*=")
    assert [path for path in (ROOT / "console").rglob("*.py") if calls.search(path.read_text(encoding="utf-8"))] == []


def test_a_drain_never_waits_behind_bulk_work() -> None:
    """One queue for all lets long syncs fill every slot while a preemption waits (RedHatProductSecurity/osidb PR#1418)."""
    served = {
        process.name: set(process.command[process.command.index("-Q") + 1].split(","))
        for process in console_processes(ROOT, 8000, 8002)
        if "-Q" in process.command
    }
    assert served["worker-urgent"] & served["worker"] == set()
    assert {beat.app.conf.beat_schedule["sweep"]["options"]["queue"], QUEUES["capacity.drive_drains"]} <= served["worker-urgent"]
    assert beat.app.conf.beat_schedule["relist"]["options"]["queue"] in served["worker"]


def loaded(code: str) -> set[str]:
    """The modules that a new process has after this."""
    command = [sys.executable, "-c", f"import sys; {code}; print(*sys.modules)"]
    return set(subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split())


def test_the_beat_loads_no_task_and_no_model() -> None:
    assert loaded("from console.beat import app; app.loader.init_worker()") & {"console.capacity", "django.db.models"} == set()


def test_a_worker_loads_no_page_and_no_route() -> None:
    """Each of its children would hold them too."""
    found = loaded("from console.celery import app; app.loader.init_worker()")
    assert "console.capacity.tasks" in found
    assert found & {"console.urls", "console.api.framework", "ninja", "pydantic"} == set()
