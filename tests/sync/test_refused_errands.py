"""What an account has no right to do is said in the timeline, once, and not once a node."""

from datetime import timedelta

from console.kube.errors import Forbidden
from console.sync import errands
from console.sync.errands import Announce, LastProof
from console.timeline.models import Entry
from tests.sync.world import NOON, Line

NO = Forbidden('Kubernetes says: events is forbidden: User "x" cannot create resource "events"')


def test_a_right_that_is_missing_is_one_row_an_hour_for_each_kind_of_errand(line: Line) -> None:
    for number in range(5):
        arrival = Announce(f"e-{number}", f"gpu-dp-{number}", f"uid-{number}", "Ready", NOON)
        errands.note(line.cluster.pk, arrival, NO, NOON + timedelta(minutes=number))
    assert line.reasons == ["KubernetesRefused"]
    said = Entry.objects.get().message
    assert said.startswith(
        "Halftide may not say on a Node that it has arrived in aurora-train. Kubernetes says: events is forbidden"
    )
    errands.note(line.cluster.pk, LastProof("gpu-dp-1", line.cluster.pk), NO, NOON)
    errands.note(line.cluster.pk, arrival, NO, NOON + timedelta(hours=2))
    assert line.reasons == ["KubernetesRefused"] * 3
