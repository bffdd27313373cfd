"""Write the requirements files: what pyproject.toml asks for, and all that this needs, as installed here (`make pins`).

Runs inside the virtual environment whose packages passed the tests, so that a new one gets the very same.
"""

import tomllib
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from console.env import ROOT

HEAD = "# Made by `make pins` from pyproject.toml; edit that file, not this one.\n"


def closure(wanted: Iterable[str]) -> dict[str, str]:
    """Every package that `wanted` needs on this platform, with its installed version."""
    found: dict[str, str] = {}
    seen: set[tuple[str, str]] = set()
    todo = [(Requirement(line), "") for line in wanted]
    while todo:
        requirement, parent_extra = todo.pop()
        if requirement.marker and not requirement.marker.evaluate({"extra": parent_extra}):
            continue
        name = canonicalize_name(requirement.name)
        distribution = metadata.distribution(name)
        found[name] = distribution.version
        for extra in {"", *requirement.extras} - {done for package, done in seen if package == name}:
            seen.add((name, extra))
            todo += [(Requirement(line), extra) for line in distribution.requires or ()]
    return found


def write(file: Path, pins: dict[str, str]) -> None:
    """One pinned package a line, sorted."""
    file.write_text(HEAD + "".join(f"{name}=={version}\n" for name, version in sorted(pins.items())), encoding="utf-8")


def main() -> None:
    """Write both files; the second holds only what the first does not."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    running = closure(project["dependencies"])
    testing = closure(project["optional-dependencies"]["test"])
    write(ROOT / "requirements.txt", running)
    write(ROOT / "requirements-test.txt", {name: pin for name, pin in testing.items() if name not in running})


if __name__ == "__main__":
    main()
