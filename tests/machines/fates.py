"""The lives of pods on a machine that goes: one table, for real containers and for simulated ones alike.

A real container is a shell that writes what becomes of it into a folder of its machine; a simulated one has the same program in
its annotations. What the engine must say of each stands beside it.
"""

from dataclasses import dataclass, field
from typing import Any

from console.capacity.models import PodVerdict
from tests.machines import image

Verdict = PodVerdict.Verdict
Json = dict[str, Any]

WINDOW = 30  # seconds from the notice to the machine's end
PROGRAM = "simulator.halftide.io/"
KILLED = 137

# `at` writes a word, the seconds since the machine's start and a code; both loops end by themselves within five minutes.
SHELL = """at() { read up rest </proc/uptime; echo "$1 $up $2" >>"/out/$NAME"; }
trap 'at told; %s' TERM
at started
i=0; while [ $i -lt 3000 ]; do sleep 0.1; i=$((i+1)); done"""


@dataclass(frozen=True)
class Container:
    """A program: on SIGTERM it takes `stops_after` seconds and ends with `code`; None: it takes no notice."""

    stops_after: float | None = 1
    code: int = 0

    def command(self) -> list[str]:
        end = "" if self.stops_after is None else f"sleep {self.stops_after}; at ended {self.code}; exit {self.code}"
        return ["/bin/sh", "-c", SHELL % end]


@dataclass(frozen=True)
class Fate:
    """A pod that is told to go, and what must come of it."""

    name: str
    verdict: str
    exit_code: int | None
    container: Container = field(default_factory=Container)
    side: Container | None = None
    grace: int = 20
    spec: Json = field(default_factory=dict)
    metadata: Json = field(default_factory=dict)
    hook: float = 0  # seconds of a preStop hook, before SIGTERM
    pulled: bool = True  # else its image never comes

    @property
    def containers(self) -> dict[str, Container]:
        return {"main": self.container, **({"side": self.side} if self.side else {})}

    def steps(self) -> list[str]:
        """What a watch sees of it once it is told: still as before, ended while listed, gone."""
        if not self.pulled:
            return ["Pending told: waiting", "gone"]
        running = ", ".join("running" for _ in self.containers)
        codes = [KILLED if one.stops_after is None else one.code for one in self.containers.values()]
        end = f"{'Failed' if any(codes) else 'Succeeded'} told: {', '.join(f'exit {code}' for code in codes)}"
        gone = [] if "finalizers" in self.metadata else ["gone"]
        return [f"Running told: {running}", end, *gone]

    def ends(self) -> bool:
        """Whether it ends by itself."""
        return self.pulled and all(one.stops_after is not None for one in self.containers.values())

    def body(self, node: str, out: str, nowhere: str) -> Json:
        """The pod for one node, both programs in it. `out`: where real containers write; `nowhere`: an image that never comes."""
        notes = {PROGRAM + key: value for key, value in self._program().items()}
        metadata = {**self.metadata, "name": self.name, "annotations": notes}
        containers = [
            self._container(name, each, image.BOX if self.pulled else nowhere) for name, each in self.containers.items()
        ]
        return {
            "metadata": metadata,
            "spec": {
                "nodeName": node, "hostNetwork": True, "restartPolicy": "Never", "terminationGracePeriodSeconds": self.grace,
                "volumes": [{"name": "out", "hostPath": {"path": out}}], "containers": containers, **self.spec,
            },
        }  # fmt: skip

    def _container(self, name: str, program: Container, image_name: str) -> Json:
        body: Json = {
            "name": name, "image": image_name, "command": program.command(),
            "imagePullPolicy": "Never" if self.pulled else "Always",
            "env": [{"name": "NAME", "value": f"{self.name}.{name}"}],
            "volumeMounts": [{"name": "out", "mountPath": "/out"}],
        }  # fmt: skip
        if self.hook:
            body["lifecycle"] = {"preStop": {"exec": {"command": ["/bin/sleep", str(self.hook)]}}}
        return body

    def _program(self) -> dict[str, str]:
        notes = {} if self.pulled else {"pull-seconds": "3600"}
        for name, each in self.containers.items():
            if each.stops_after is None:
                notes[f"{name}.ignore-sigterm"] = "true"
            else:
                notes |= {f"{name}.exit-seconds": str(each.stops_after + self.hook), f"{name}.exit-code": str(each.code)}
        return notes


FIRST = {"name": "first", "image": image.BOX, "imagePullPolicy": "Never", "command": ["/bin/sleep", "0.2"]}

FATES = (
    Fate("saver", Verdict.FINISHED, 0, Container(2, 0)),
    Fate("failing", Verdict.FINISHED, 3, Container(1, 3)),
    Fate("deaf", Verdict.KILLED, KILLED, Container(None), grace=5),
    Fate("notebook", Verdict.FINISHED, 0, Container(3, 0), grace=3600),
    Fate("deaf-for-an-hour", Verdict.KILLED, KILLED, Container(None), grace=3600),
    Fate("hooked", Verdict.FINISHED, 0, Container(1, 0), hook=3),
    Fate(
        "pair", Verdict.FINISHED, 5, Container(1, 0), side=Container(3, 5),
        spec={"initContainers": [FIRST]},
    ),
    Fate("held-by-finalizer", Verdict.FINISHED, 0, metadata={"finalizers": ["halftide.test/hold"]}),
    Fate("pulling", Verdict.KILLED, None, pulled=False),
    Fate("always", Verdict.FINISHED, 0, spec={"restartPolicy": "Always"}),
)  # fmt: skip

# What stays until the machine goes: nobody tells it.
STAYS = Fate("stays", "", None)
