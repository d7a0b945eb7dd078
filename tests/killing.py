"""Starts a writer in a process of its own, kills it at some point, and counts what it has told to be done."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable


def killed_writers(write: Callable[[int], object], writers: int, seconds: float) -> int:
    """Run ``write`` again and again in ``writers`` processes for about ``seconds``, then kill all of them at once.

    ``write`` gets the number of the writer. Returns how many of its calls came back. POSIX only.
    """
    reading, writing = os.pipe()
    children = []
    for number in range(writers):
        child = os.fork()
        if child == 0:  # no test runs twice, whatever happens here
            try:
                while True:
                    write(number)
                    os.write(writing, b"x")
            finally:
                os._exit(1)
        children.append(child)
    os.close(writing)
    told = len(os.read(reading, 1))  # they have begun
    time.sleep(seconds)
    for child in children:
        os.kill(child, signal.SIGKILL)
    for child in children:
        os.waitpid(child, 0)
    while some := os.read(reading, 65536):
        told += len(some)
    os.close(reading)
    return told
