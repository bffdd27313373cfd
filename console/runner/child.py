"""Start a process that cannot outlive its parent: `python -m console.runner.child SIGNAL USER [-m module | program] …`

The kernel sends SIGNAL to the process when its parent ends, however it ended; so a `kill -9` of the runner takes down
supervisord, and a `kill -9` of supervisord takes down everything under it. Three details make it hold:
changing the user clears the setting, so that comes first; a parent that died before the call is found by its pid; and
a Python program that forks (a Celery worker's pool) gets the same in each child, or a killed worker would leave its
pool behind, still working on a task that is about to be delivered again.
"""

import ctypes
import fcntl
import os
import pwd
import runpy
import signal
import sys

PR_SET_PDEATHSIG = 1
PARENT = "HALFTIDE_PARENT_PID"
LOCK = "HALFTIDE_LOCK_FD"

# Above supervisord's `minfds` (256), below which it closes every descriptor it did not open.
LOCK_FD_FLOOR = 512


def die_with_parent(death: signal.Signals, parent: int | None) -> None:
    """Ask the kernel for `death` when the parent ends; leave at once if it has ended already (pid known and another)."""
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, death.value, 0, 0, 0)
    if parent is not None and os.getppid() != parent:
        os._exit(1)


def become(user: str) -> None:
    """Drop root for good, with the groups of `user`, and stand in a folder that user can read."""
    entry = pwd.getpwnam(user)
    os.initgroups(user, entry.pw_gid)
    os.setgid(entry.pw_gid)
    os.setuid(entry.pw_uid)
    os.chdir("/")


def keep_lock() -> None:
    """Hold the state folder's lock as long as this process lives, out of reach of what closes low descriptors."""
    given = os.environ.pop(LOCK, None)
    if given is not None:
        fcntl.fcntl(int(given), fcntl.F_DUPFD_CLOEXEC, LOCK_FD_FLOOR)
        os.close(int(given))


def main(death_name: str, user: str, *command: str) -> None:
    """Become `command` ("-" for no other user)."""
    parent = os.environ.get(PARENT)
    if user != "-":
        become(user)
    die_with_parent(signal.Signals[death_name], int(parent) if parent else None)
    keep_lock()
    me = os.getpid()
    os.environ[PARENT] = str(me)
    if command[0] != "-m":
        os.execv(command[0], command)
    os.register_at_fork(after_in_child=lambda: die_with_parent(signal.SIGKILL, None))
    sys.argv = list(command[1:])
    runpy.run_module(command[1], run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
