"""What a cluster is called and how one gets in: all that is remembered of it beside its objects."""

from dataclasses import asdict, dataclass, field

from console.simulator.values import Json


@dataclass(frozen=True)
class Identity:
    """`kubeconfig` is there where the API is a real Kubernetes, `token` where it is ours."""

    id: str
    name: str
    region: str
    version: str
    token: str = field(default="", repr=False)
    kubeconfig: str = field(default="", repr=False)

    def kept(self) -> Json:
        """As the journal keeps it."""
        return asdict(self)
