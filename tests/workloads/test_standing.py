"""Where a workload stands now: the word, the sentence, and who comes first."""

from datetime import timedelta

import pytest

from console.workloads.facts import LastDrain, Owner
from console.workloads.fit import fit
from console.workloads.standing import rank, stand, troubled
from tests.workloads.made import NOON, ended, owner, pod, waiting

FULL = "0/4 nodes are available: 3 Insufficient nvidia.com/gpu, 1 node(s) didn't match Pod's node affinity/selector."
TAKEN = LastDrain(NOON, "preempted", (("finished", 2),), 1)


@pytest.mark.parametrize(
    ("found", "word", "sentence"),
    [
        (owner(pod("a"), pod("b")), "Running", "2 pods"),
        (owner(waiting(why=FULL)), "Waiting", "1 pod waits: no preemptible node has 8 GPUs free"),
        (owner(pod("a"), waiting("b", FULL)), "Waiting", "1 of 2 pods waits: no preemptible node has 8 GPUs free"),
        (owner(waiting()), "Waiting", "1 pod waits: the scheduler has not looked at it yet"),
        (
            owner(pod("a", why="CrashLoopBackOff"), waiting("b", FULL)),
            "Failing",
            "1 of 2 pods does not run: its container ends again and again; Kubernetes starts it anew, ever more slowly",
        ),
        (owner(pod("a", deleting_since=NOON), pod("b")), "Leaving", "1 of 2 pods was told to stop"),
        (owner(pod("a", phase="Pending"), pod("b")), "Starting", "1 of 2 pods starts"),
        (owner(ended("a", 0), ended("b", 0)), "Ended", "2 pods finished well"),
        (owner(ended("a", 2)), "Failed", "1 pod failed, exit 2; none runs"),
        (owner(ended("a", 143, preempted=True)), "Preempted", "Ended by a preemption, not by itself. None has come back yet"),
        (
            owner(ended("a", 137, disrupted="NodeShutdown"), kind="Pod"),
            "Evicted",
            "Ended by an eviction or the end of its node, not by itself. Nothing starts it again",
        ),
        (owner(), "Gone", "No pod of it is in the cluster"),
        (owner(drained=TAKEN), "Preempted", "Taken with its node. No pod of it has come back"),
        (owner(drained=TAKEN, kind="Pod"), "Preempted", "Taken with its node. Nothing starts it again"),
    ],
)
def test_the_most_urgent_truth_is_said_first(found: Owner, word: str, sentence: str) -> None:
    """Of preempted pods: kubernetes/kubernetes#113278."""
    now = stand(found)
    assert (now.word, now.sentence) == (word, sentence)


def test_the_schedulers_own_words_go_along() -> None:
    now = stand(owner(waiting(why=FULL, waits_since=NOON)))
    assert (now.original, now.since) == (FULL, NOON)


def test_who_needs_a_person_comes_first() -> None:
    def order(found: Owner) -> int:
        return rank(stand(found), fit(found, 300, NOON))

    failing, waits = owner(pod(why="CrashLoopBackOff")), owner(waiting())
    leaving, failed = owner(pod(deleting_since=NOON)), owner(ended(code=2))
    warned = owner(pod(started_at=NOON - timedelta(hours=26)))
    well, done, gone = owner(pod(started_at=NOON)), owner(ended(code=0)), owner()
    ranks = [order(found) for found in (failing, waits, leaving, failed, warned, well, done, gone)]
    assert ranks == sorted(set(ranks))
    assert [troubled(one) for one in ranks] == [True] * 5 + [False] * 3


def test_pods_that_ended_count_nowhere_as_running() -> None:
    """kubernetes/kubernetes#113278: five hundred leftovers are not five hundred pods on the node."""
    found = owner(pod("runs"), *(ended(f"left-{n}", 143, preempted=True) for n in range(500)))
    assert (found.on("preemptible"), found.gpus, stand(found).sentence) == (1, 8, "1 pod")
