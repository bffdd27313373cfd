"""`make controlplane`: build it if need be, run it alone until Ctrl-C, and say where its kubeconfig is.

With a folder it is one of several (`python -m console.runner.controlplane FOLDER`, as the simulator starts them under
`make up KUBERNETES=real`): it says `prepared` once the kubeconfig is there, `ready` once pods can be made,
and goes on until SIGTERM.
"""

import signal
import sys
import time
from pathlib import Path

from console.env import SettingError, integer, state_dir
from console.runner.controlplane.build import SERVERS, programs
from console.runner.controlplane.plane import ControlPlane
from console.runner.errors import RunnerError
from console.runner.state import open_state

CHECK_SECONDS = 0.5


def alone() -> None:
    """For a person."""
    state = state_dir()
    open_state(state)
    port = integer("HALFTIDE_CONTROLPLANE_PORT", 8600, 1, 65535)
    folder = programs(say=lambda text: print(f"  {text}", flush=True))
    began = time.monotonic()
    with ControlPlane(state / "controlplane", folder, heartbeats=False, port=port) as plane:
        print(
            f"  Kubernetes ready after {time.monotonic() - began:.1f} s at {plane.url}; nodes need no kubelet\n\n"
            f"  export KUBECONFIG={plane.kubeconfig}\n  {folder / 'kubectl'} get nodes\n\n  Ctrl-C stops it.",
            flush=True,
        )
        _watch(plane)


def one(home: Path) -> None:
    """For another program; machines report to it as real ones do."""
    plane = ControlPlane(home, programs(SERVERS))
    plane.prepare()
    print("prepared", flush=True)
    with plane:
        print("ready", flush=True)
        _watch(plane)


def _watch(plane: ControlPlane) -> None:
    while True:
        plane.check()
        time.sleep(CHECK_SECONDS)


if __name__ == "__main__":
    for name in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(name, signal.default_int_handler)
    try:
        one(Path(sys.argv[1])) if sys.argv[1:] else alone()
    except (RunnerError, SettingError) as problem:
        sys.exit(f"halftide: {problem}")
    except KeyboardInterrupt:
        sys.exit(0)
