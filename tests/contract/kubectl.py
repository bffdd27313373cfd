"""The real kubectl, pointed at one namespace of one API."""

import re
import subprocess
from dataclasses import dataclass
from pathlib import Path


@dataclass
class Ran:
    """What a command said and how it ended."""

    code: int
    out: str
    err: str

    @property
    def heads(self) -> list[str]:
        """The columns of its table."""
        return re.split(r"\s{2,}", self.out.splitlines()[0].strip())


class Kubectl:
    """`kubectl("get", "nodes")` runs it to its end."""

    def __init__(self, program: Path, kubeconfig: str, namespace: str, home: Path) -> None:
        file = home / "kubeconfig"
        file.write_text(kubeconfig)
        self.namespace = namespace
        self.environment = {"HOME": str(home), "PATH": "/usr/bin:/bin", "KUBECONFIG": str(file)}
        self._base = [str(program), "--namespace", namespace]

    def __call__(self, *words: str, feed: str | None = None, seconds: float = 60) -> Ran:
        run = subprocess.run(
            [*self._base, *words], capture_output=True, text=True, input=feed, timeout=seconds, env=self.environment, check=False
        )
        return Ran(run.returncode, run.stdout, run.stderr)

    def start(self, *words: str) -> subprocess.Popen[str]:
        """One that goes on."""
        command = [*self._base, *words]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=self.environment)
