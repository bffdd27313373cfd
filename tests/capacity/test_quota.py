"""What a project may ask for in all: its own number or the setting's, set by fleet operators, and never a reason to take back."""

import uuid
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.conf import LazySettings
from django.db import connection

from console.accounts.models import AuditRow, Role
from console.capacity import enqueue, panels, picture, services
from console.capacity.models import Quota
from console.capacity.quotas import asked_for, quota_of
from console.clusters.models import Cluster
from console.http import Forbidden, NotFound, Unprocessable
from tests.capacity.rows import a_cluster, a_pool, a_project, person

pytestmark = pytest.mark.django_db


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch, settings: LazySettings) -> Cluster:
    settings.QUOTA_GPUS = 512
    monkeypatch.setattr(enqueue, "enqueue", lambda *_: True)
    return a_cluster(a_pool(), preemptible=8)


def fleet(name: str = "ada"):
    return person(Role.ADMIN, name, fleet_operator=True)


def test_without_a_row_the_setting_counts_and_with_one_the_row(cluster: Cluster) -> None:
    assert quota_of(cluster.project_id) == 512
    assert services.set_quota(fleet(), cluster.project_id, 24) == 24
    with pytest.raises(Unprocessable, match="Aurora Labs may ask for 24 preemptible GPUs in all; 24 are left") as refused:
        services.set_target(person(), cluster, 32)
    assert (refused.value.code, refused.value.state) == ("quota", {"most": 24})
    assert services.set_target(person(), cluster, 24).desired_preemptible_gpus == 24
    assert services.set_quota(fleet(), cluster.project_id, None) == 512
    assert services.set_target(person(), cluster, 512).desired_preemptible_gpus == 512


@pytest.mark.parametrize(("own", "end"), [(None, 96), (4096, 96), (44, 40)])
def test_the_gauge_ends_at_the_projects_own_quota_in_whole_nodes(cluster: Cluster, own: int | None, end: int) -> None:
    services.set_quota(fleet(), cluster.project_id, own)
    found = picture.read(Cluster.objects.select_related("region", "gpu_type").get(pk=cluster.pk), cluster.created_at)
    assert f'data-max="{end}"' in panels.render_panel(found)


def test_all_clusters_of_a_project_share_it_and_those_of_another_do_not(cluster: Cluster) -> None:
    services.set_quota(fleet(), cluster.project_id, 24)
    second = Cluster(
        project=a_project("borealis"), name="eval", region=cluster.region, gpu_type=cluster.gpu_type,
        created_at=cluster.created_at, desired_standard_gpus=8, desired_preemptible_gpus=400,
    )  # fmt: skip
    second.save()
    assert asked_for(cluster.project_id) == 8
    made = services.create_cluster(fleet(), cluster.project, "second", "eu-north-1", "H100_SXM", 8, 16)
    assert made.desired_preemptible_gpus == 16
    with pytest.raises(Unprocessable, match="0 are left"):
        services.create_cluster(fleet(), cluster.project, "third", "eu-north-1", "H100_SXM", 8, 8)


def test_lowering_it_takes_nothing_back_and_refuses_only_more(cluster: Cluster) -> None:
    services.set_target(person(), cluster, 64)
    services.set_quota(fleet(), cluster.project_id, 16)
    cluster.refresh_from_db()
    assert cluster.desired_preemptible_gpus == 64
    with pytest.raises(Unprocessable, match="16 are left"):
        services.set_target(person(), cluster, 72)
    assert services.set_target(person(), cluster, 32).desired_preemptible_gpus == 32, "asking for less is always fine"


def test_a_quota_of_nothing_is_a_quota(cluster: Cluster) -> None:
    services.set_quota(fleet(), cluster.project_id, 0)
    with pytest.raises(Unprocessable, match="may ask for 0"):
        services.set_target(person(), cluster, 16)


def test_each_change_has_its_audit_row_and_no_change_has_none(cluster: Cluster) -> None:
    services.set_quota(fleet(), cluster.project_id, 64)
    services.set_quota(fleet(), cluster.project_id, 64)
    services.set_quota(fleet(), cluster.project_id, None)
    services.set_quota(fleet(), cluster.project_id, None)
    rows = AuditRow.objects.filter(action="project.quota.set").order_by("pk")
    assert [(row.actor, row.subject, row.before, row.after) for row in rows] == [
        ("ada", "Aurora Labs", {"gpus": 512}, {"gpus": 64}),
        ("ada", "Aurora Labs", {"gpus": 64}, {"gpus": 512, "own": False}),
    ]
    assert not Quota.objects.exists()


def test_who_is_no_fleet_operator_is_refused_whatever_their_role(cluster: Cluster) -> None:
    with pytest.raises(Forbidden, match="Only a fleet operator sets quotas"):
        services.set_quota(person(Role.ADMIN), cluster.project_id, 8)
    assert not Quota.objects.exists()


@pytest.mark.parametrize("gpus", [-1, 1_000_001])
def test_numbers_that_make_no_sense_are_refused(cluster: Cluster, gpus: int) -> None:
    with pytest.raises(Unprocessable, match="from 0 to 1,000,000"):
        services.set_quota(fleet(), cluster.project_id, gpus)


def test_an_unknown_project_is_said(cluster: Cluster) -> None:
    with pytest.raises(NotFound):
        services.set_quota(fleet(), uuid.uuid4(), 8)


@pytest.mark.django_db(transaction=True)
def test_two_clusters_at_once_never_get_more_than_the_quota_together(cluster: Cluster) -> None:
    other = a_cluster(a_pool("us-central-2"), "second", preemptible=0)
    services.set_quota(fleet(), cluster.project_id, 40)
    actor = person()

    def ask(which: Cluster) -> bool:
        try:
            services.set_target(actor, which, 32)
        except Unprocessable:
            return False
        else:
            return True
        finally:
            connection.close()

    with ThreadPoolExecutor(2) as threads:
        answers = list(threads.map(ask, [cluster, other]))
    assert sorted(answers) == [False, True]
    assert asked_for(cluster.project_id) <= 40
