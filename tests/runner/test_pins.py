"""The requirements files and pyproject.toml say the same."""

import re
import tomllib

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from console.env import ROOT


def pins(name: str) -> dict[str, str]:
    lines = (ROOT / name).read_text().splitlines()
    return dict(line.split("==") for line in lines if not line.startswith("#"))


def test_every_dependency_is_pinned_to_a_version_that_it_allows() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    running, testing = pins("requirements.txt"), pins("requirements-test.txt")
    for line in project["dependencies"]:
        wanted = Requirement(line)
        assert wanted.specifier.contains(running[canonicalize_name(wanted.name)]), line
    for line in project["optional-dependencies"]["test"]:
        wanted = Requirement(line)
        assert wanted.specifier.contains({**running, **testing}[canonicalize_name(wanted.name)]), line


def test_no_requirements_file_names_a_host() -> None:
    """Which index a machine uses is its own setting; a host in here would be wrong everywhere else."""
    for file in ROOT.glob("requirements*.txt"):
        assert not re.search(r"://|--(extra-)?index-url|--find-links|--trusted-host", file.read_text()), file.name
