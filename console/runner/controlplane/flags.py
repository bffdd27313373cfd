"""The command line of each program, as tried: loopback only, RBAC, nothing that leaves the machine."""

# Long enough that a machine which never says anything is never missed.
NEVER = "8760h"

LOOPBACK = ("--bind-address=127.0.0.1", "--leader-elect=false", "--secure-port=0")


def etcd(port: int) -> list[str]:
    """The store. Without fsync: what is lost in a power cut was a test's or the demo's."""
    address = f"http://127.0.0.1:{port}"
    return [
        "--data-dir=etcd", f"--listen-client-urls={address}", f"--advertise-client-urls={address}",
        "--listen-peer-urls=http://127.0.0.1:0", "--unsafe-no-fsync", "--log-level=error",
    ]  # fmt: skip


def apiserver(port: int, store: int) -> list[str]:
    """The API server, with every answered request in `audit.log`."""
    return [
        f"--etcd-servers=http://127.0.0.1:{store}", f"--secure-port={port}", "--bind-address=127.0.0.1",
        "--advertise-address=127.0.0.1", "--endpoint-reconciler-type=none", "--service-cluster-ip-range=10.0.0.0/24",
        "--authorization-mode=Node,RBAC", "--client-ca-file=ca.crt", "--tls-cert-file=tls.crt", "--tls-private-key-file=tls.key",
        "--service-account-key-file=accounts.pub", "--service-account-signing-key-file=accounts.key",
        "--service-account-issuer=https://kubernetes.default.svc.cluster.local", "--token-auth-file=tokens.csv",
        "--allow-privileged=true", "--profiling=false",
        # Else a node without an address would be looked up by name at this machine's resolver.
        "--kubelet-preferred-address-types=InternalIP",
        "--audit-log-path=audit.log", "--audit-policy-file=audit.yaml", "--audit-log-maxsize=100", "--audit-log-maxbackup=1",
    ]  # fmt: skip


def scheduler() -> list[str]:
    """The scheduler, without a port of its own."""
    return ["--kubeconfig=scheduler.kubeconfig", *LOOPBACK]


def controllers(heartbeats: bool) -> list[str]:
    """The controllers; without `heartbeats` a node stays Ready although nothing reports for it."""
    patient = [] if heartbeats else [f"--node-monitor-grace-period={NEVER}", f"--node-startup-grace-period={NEVER}"]
    return [
        "--kubeconfig=controllers.kubeconfig", "--service-account-private-key-file=accounts.key", "--root-ca-file=ca.crt",
        "--use-service-account-credentials=true", "--controllers=*,-cloud-node-lifecycle-controller", *LOOPBACK, *patient,
    ]  # fmt: skip
