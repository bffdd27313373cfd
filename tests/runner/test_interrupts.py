"""Ctrl-C ends a runner wherever it comes."""

import subprocess
import sys

from console.env import ROOT

# An interrupt inside a finalizer is printed and forgotten by Python; whoever waits next must learn of it all the same.
PROGRAM = """
import os, signal
from console.runner import interrupts

class Last:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGINT)
        for _ in range(1000):
            pass

interrupts.listen()
interrupts.heed()
Last()
print("still here", flush=True)
interrupts.heed()
print("never said")
"""


def test_an_interrupt_that_python_loses_is_heard_at_the_next_look():
    ended = subprocess.run([sys.executable, "-c", PROGRAM], cwd=ROOT, capture_output=True, text=True, check=False)
    assert ended.stdout == "still here\n"
    assert "Exception ignored in" in ended.stderr
    assert ended.returncode != 0
