"""`make controlplane`: build it if need be, run it alone until Ctrl-C, and say where its kubeconfig is.

State stays in `controlplane/` of the state folder, so that it is there again at the next start.
"""

import signal
import sys
import time

from console.env import SettingError, integer, state_dir
from console.runner.controlplane.build import programs
from console.runner.controlplane.plane import ControlPlane
from console.runner.errors import RunnerError
from console.runner.state import open_state

CHECK_SECONDS = 0.5


def main() -> None:
    """Run until told to stop."""
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
        while True:
            plane.check()
            time.sleep(CHECK_SECONDS)


if __name__ == "__main__":
    for name in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(name, signal.default_int_handler)
    try:
        main()
    except (RunnerError, SettingError) as problem:
        sys.exit(f"halftide: {problem}")
    except KeyboardInterrupt:
        sys.exit(0)
