"""The scheduler's message in plain words; what it says most of is not what decides."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from console.workloads.reasons import LONGEST, plain_reason

PREEMPTION = " preemption: 0/9 nodes are available: 9 Preemption is not helpful for scheduling."


@pytest.mark.parametrize(
    ("message", "wish", "plain"),
    [
        (
            "0/9 nodes are available: 2 Insufficient nvidia.com/gpu, 7 node(s) didn't match Pod's node affinity/selector."
            + PREEMPTION,
            "required",
            "no preemptible node has 8 GPUs free",
        ),
        ("0/2 nodes are available: 2 Insufficient nvidia.com/gpu.", "refused", "no standard node has 8 GPUs free"),
        ("0/2 nodes are available: 2 Insufficient nvidia.com/gpu.", "", "no node has 8 GPUs free"),
        (
            "0/9 nodes are available: 9 node(s) didn't match Pod's node affinity/selector." + PREEMPTION,
            "",
            "nothing matches its nodeSelector or affinity",
        ),
        (
            "0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector.",
            "required",
            "nothing matches its nodeSelector or affinity: no preemptible node is there",
        ),
        (
            "0/3 nodes are available: 1 Insufficient nvidia.com/gpu, 2 node(s) were unschedulable.",
            "required",
            "no preemptible node has 8 GPUs free; 2 nodes are cordoned or draining",
        ),
        (
            "0/3 nodes are available: 1 node(s) were unschedulable, 2 node(s) didn't match Pod's node affinity/selector.",
            "required",
            "1 node is cordoned or draining; no other node matches its nodeSelector or affinity",
        ),
        (
            "0/1 nodes are available: 1 node(s) had untolerated taint {halftide.io/startup: pending}." + PREEMPTION,
            "",
            "1 node has a taint that it does not tolerate (halftide.io/startup)",
        ),
        (
            "0/2 nodes are available: 2 node(s) had untolerated taint(s).",
            "",
            "2 nodes have a taint that it does not tolerate",
        ),
        ("0/2 nodes are available: 2 Insufficient memory.", "", "no node has enough memory free"),
        ("no nodes available to schedule pods", "", "the cluster has no node at all"),
        (
            "0/1 nodes are available: pod has unbound immediate PersistentVolumeClaims. not found",
            "",
            "a volume that it claims is not there yet",
        ),
        ("SchedulingGated", "", "it is held back by a scheduling gate, usually a queue such as Kueue"),
        ('ImagePullBackOff: Back-off pulling image "x"', "", "its image cannot be pulled"),
        ("", "", ""),
        ("something a plug-in of ours said", "", "something a plug-in of ours said"),
    ],
)
def test_the_nearest_obstacle_is_said(message: str, wish: str, plain: str) -> None:
    assert plain_reason(message, 8, wish) == plain


def test_one_gpu_is_not_ones_gpus() -> None:
    assert plain_reason("0/1 nodes are available: 1 Insufficient nvidia.com/gpu.", 1) == "no node has 1 GPU free"


@given(st.text(max_size=700))
def test_any_message_gives_a_short_answer(message: str) -> None:
    assert len(plain_reason(message)) <= LONGEST


@given(st.text(alphabet="0123456789 ,./{}:nodes are available Insufficient taint", max_size=300))
def test_anything_like_the_schedulers_words_gives_an_answer(rest: str) -> None:
    assert plain_reason(f"0/9 nodes are available: {rest}", 8, "required")
