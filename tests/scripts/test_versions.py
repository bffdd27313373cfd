"""Every save is a version, and nothing is ever written over."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.db import connection

from console.accounts.access import Actor
from console.accounts.models import AuditRow, Role
from console.accounts.services import actor_for_session
from console.clusters.models import Cluster
from console.http import Conflict, Forbidden, NotFound, Unprocessable
from console.scripts import queries
from console.scripts.kinds import KINDS, NODE_INIT, kind_named, kinds_of
from console.scripts.models import Version
from console.scripts.services import restore, save
from console.timeline.models import Entry
from tests.pages import world

HEAD = "#!/bin/bash\n"


@pytest.fixture
def cluster(db: None) -> Cluster:
    world.an_installation()
    return world.a_cluster(world.a_pool())


def actor(name: str = "ada", role: Role = Role.OPERATOR) -> Actor:
    return actor_for_session(world.a_person(name, role, "aurora"), "10.0.0.1")


def told(cluster: Cluster) -> list[tuple[str, str, str]]:
    rows = Entry.objects.filter(stream_id=cluster.stream).order_by("revision")
    return list(rows.values_list("reason", "actor_name", "message"))


def test_a_save_is_a_version_an_entry_and_an_audit_row(cluster: Cluster) -> None:
    ada = actor()
    save(ada, cluster, NODE_INIT, f"{HEAD}echo one\n", "First", based_on=0)
    row = save(ada, cluster, NODE_INIT, f"{HEAD}echo two\necho three\n", "Mirror moved", based_on=1).version
    assert row is not None
    assert (row.number, row.saved_by, row.user, row.message) == (2, "ada", ada.user, "Mirror moved")
    assert (row.added, row.removed, row.size) == (2, 1, 32)
    assert told(cluster) == [
        ("ScriptSaved", "ada", "node_init v1 saved: First"),
        ("ScriptSaved", "ada", "node_init v2 saved: Mirror moved"),
    ]
    audited = AuditRow.objects.latest("pk")
    assert (audited.action, audited.subject, audited.address) == ("script.save", "aurora-train node_init", "10.0.0.1")
    assert (audited.before["version"], audited.after["version"], audited.after["sha256"]) == (1, 2, row.sha256)


def test_five_unchanged_saves_are_no_version(cluster: Cluster) -> None:
    ada = actor()
    first = save(ada, cluster, NODE_INIT, f"{HEAD}echo\n", based_on=0)
    again = [save(ada, cluster, NODE_INIT, "#!/bin/bash\r\necho\r\n", based_on=number) for number in (1, 1, 1, 0, 7)]
    assert [(one.made, one.version) for one in again] == [(False, first.version)] * 5
    assert Version.objects.count() == 1
    assert len(told(cluster)) == 1
    assert save(ada, cluster, KINDS[1], "", based_on=0).version is None, "nothing is not a first version either"


def test_a_save_on_an_older_version_is_refused_and_writes_nothing(cluster: Cluster) -> None:
    """authgear/authgear-server#1364, NotYuSheng/TracePcap#444: the last one won and nobody noticed."""
    ada, olu = actor(), actor("olu")
    save(ada, cluster, NODE_INIT, f"{HEAD}echo one\n", based_on=0)
    save(olu, cluster, NODE_INIT, f"{HEAD}echo olu\n", based_on=1)
    with pytest.raises(Conflict) as refused:
        save(ada, cluster, NODE_INIT, f"{HEAD}echo ada\n", based_on=1)
    assert refused.value.state == {"version": 2, "saved_by": "olu"}
    newest = queries.current(cluster, NODE_INIT)
    assert newest is not None
    assert newest.text == f"{HEAD}echo olu\n"
    save(ada, cluster, NODE_INIT, f"{HEAD}echo ada\n", based_on=2)
    assert [row.text for row in Version.objects.order_by("number")] == [f"{HEAD}echo {who}\n" for who in ("one", "olu", "ada")]


def test_a_restore_is_a_new_version_with_the_old_text(cluster: Cluster) -> None:
    ada = actor()
    for number, word in enumerate(("one", "two", "three")):
        save(ada, cluster, NODE_INIT, f"{HEAD}echo {word}\n", based_on=number)
    row = restore(ada, cluster, NODE_INIT, 1, based_on=3).version
    assert row is not None
    assert (row.number, row.text, row.restored_from, row.message) == (4, f"{HEAD}echo one\n", 1, "Restored from v1")
    assert told(cluster)[-1][0] == "ScriptRestored"
    with pytest.raises(Conflict):
        restore(ada, cluster, NODE_INIT, 2, based_on=3)
    with pytest.raises(NotFound):
        restore(ada, cluster, NODE_INIT, 9, based_on=4)
    assert restore(ada, cluster, NODE_INIT, 4, based_on=4).made is False


def test_an_emptied_script_is_a_version_that_says_so(cluster: Cluster) -> None:
    ada = actor()
    save(ada, cluster, NODE_INIT, HEAD, based_on=0)
    row = save(ada, cluster, NODE_INIT, "", based_on=1).version
    assert row is not None
    assert (row.number, row.size, row.message) == (2, 0, "Emptied: nothing runs")


def test_what_cannot_be_kept_changes_nothing(cluster: Cluster) -> None:
    with pytest.raises(Unprocessable):
        save(actor(), cluster, NODE_INIT, "a\x00b")
    with pytest.raises(Forbidden):
        save(actor("vic", Role.VIEWER), cluster, NODE_INIT, HEAD)
    assert not Version.objects.exists()
    assert told(cluster) == []


def test_a_cluster_that_is_being_deleted_takes_no_script(cluster: Cluster) -> None:
    Cluster.objects.update(status=Cluster.Status.DELETING)
    with pytest.raises(Conflict):
        save(actor(), cluster, NODE_INIT, HEAD)


def test_slurm_kinds_are_for_slurm_clusters(cluster: Cluster) -> None:
    assert [kind.name for kind in kinds_of(cluster)] == ["node_init"]
    with pytest.raises(NotFound, match="worker_prolog is for SLURM clusters"):
        kind_named(cluster, "worker_prolog")
    with pytest.raises(NotFound, match="no such kind"):
        kind_named(cluster, "nonsense")
    cluster.kind = Cluster.Kind.SLURM
    assert {kind.name for kind in kinds_of(cluster)} >= {
        "node_init", "nodeset_init_script", "login_init_script", "worker_prolog", "worker_epilog", "controller_prolog",
        "controller_epilog", "extra_slurm_conf",
    }  # fmt: skip


def test_each_kind_counts_for_itself(cluster: Cluster) -> None:
    ada = actor()
    save(ada, cluster, NODE_INIT, HEAD)
    save(ada, cluster, KINDS[1], HEAD)
    save(ada, cluster, KINDS[1], f"{HEAD}echo\n")
    assert {name: row.number for name, row in queries.currents(cluster).items()} == {"node_init": 1, "nodeset_init_script": 2}


def test_of_saves_at_the_same_time_one_wins_and_the_others_are_told(transactional_db: None) -> None:
    world.an_installation()
    cluster, ada = world.a_cluster(world.a_pool()), actor()

    def attempt(word: int) -> Any:
        try:
            return save(ada, cluster, NODE_INIT, f"{HEAD}echo {word}\n", based_on=0).version
        except Conflict as error:
            return error
        finally:
            connection.close()

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(attempt, range(4)))
    assert sum(isinstance(one, Version) for one in found) == 1
    assert sum(isinstance(one, Conflict) for one in found) == 3
    assert Version.objects.count() == 1
