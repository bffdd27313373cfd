"""What is refused before anything is asked of a cluster, with a sentence."""

import pytest

from console.capacity.connecting import connect
from console.clusters.models import Cluster
from console.http import Unavailable, Unprocessable
from console.kube.kubeconfig import Connection
from tests.capacity.rows import a_pool, a_project

pytestmark = pytest.mark.django_db(transaction=True)

NOWHERE = Connection("http://127.0.0.1:1", token="t").to_kubeconfig("x")
COMMAND = NOWHERE.replace("token: t", "exec: {apiVersion: client.authentication.k8s.io/v1, command: sh}")


@pytest.mark.parametrize(
    ("text", "error", "words"),
    [
        ("a: b", Unprocessable, "This is no kubeconfig"),
        (COMMAND, Unprocessable, "sh"),
        (NOWHERE, Unavailable, "leads to no cluster that can be read. The Kubernetes API cannot be reached"),
    ],
    ids=["no kubeconfig", "a command", "nowhere"],
)
def test_a_kubeconfig_that_leads_nowhere_connects_nothing(text: str, error: type[Exception], words: str) -> None:
    a_pool()
    with pytest.raises(error, match=words):
        connect(a_project(), "prod", text, "eu-north-1", "H100_SXM")
    assert not Cluster.objects.exists()


def test_a_pool_that_is_not_there_is_said_before_the_cluster_is_asked() -> None:
    with pytest.raises(Unprocessable, match="no pool of B200 in eu-north-1"):
        connect(a_project(), "prod", NOWHERE, "eu-north-1", "B200")
