"""What `manage.py sim` does to machines and pools. Each command does it and says in a sentence what it did."""

from argparse import Namespace

from console.demo.control import Control, SimError, number, title


def reclaim(control: Control, options: Namespace) -> str:
    """Raise other tenants' standard demand until so many machines of ours are owed."""
    pool = control.pool(options.pool)
    ours = len(control.machines(pool))
    body = {"region": pool["region"], "gpu_type": pool["gpu_type"], "auto": False}
    control.ask("POST", "demand", body | {"machines": max(0, pool["total"] - ours) + options.machines})
    if not options.machines:
        return f"Other tenants of {title(pool)} want no machine of ours any more."
    return (
        f"Other tenants of {title(pool)} want {number(options.machines, 'machine')} that Halftide holds or hopes for: "
        "preemptible nodes are drained until they are given back. The demand stays until `sim clear`."
    )


def lose(control: Control, options: Namespace) -> str:
    """A machine dies without a word."""
    for machine in control.machines():
        if options.node in (machine["node_name"], machine["token"]):
            control.ask("POST", f"machines/{machine['token']}/lose")
            return f"The machine of {machine['node_name']} is dead: its kubelet is silent, and its pods never report an end."
    raise SimError(f"No machine is named {options.node}. `sim list` names them.")


def capacity(control: Control, options: Namespace) -> str:
    """A pool grows or shrinks."""
    pool = control.pool(options.pool)
    body = {"region": pool["region"], "gpu_type": pool["gpu_type"], "machines": options.machines}
    now = control.ask("POST", "capacity", body)
    owed = f"; {number(now['owed'], 'machine')} of ours too many, to be given back" if now["owed"] else ""
    return f"The pool {title(pool)} has {number(now['total'], 'machine')} in all now, {now['free']} of them free{owed}."


def slow_boot(control: Control, options: Namespace) -> str:
    """Boots take long."""
    control.ask("POST", "boot", {"seconds": options.seconds})
    return f"Machines launched from now on take about {options.seconds:g} s to boot."


def never_registers(control: Control, options: Namespace) -> str:
    """The next machines run at the provider and become no Node."""
    control.ask("POST", "joins", {"machines": options.machines, "after": None})
    return f"The next {number(options.machines, 'machine')} to be launched will run, but never become a Node."


def registers_late(control: Control, options: Namespace) -> str:
    """The next machines become Nodes long after their boot."""
    control.ask("POST", "joins", {"machines": options.machines, "after": options.seconds})
    after = f"{options.seconds:g} s after its boot"
    return f"The next {number(options.machines, 'machine')} to be launched will become a Node only {after}."
