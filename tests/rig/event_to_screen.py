# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The Topiary authors
"""How long after a process begins to compute, or to move, the screen of topiary top shows it."""
import os
import subprocess
import sys
import time
from contextlib import contextmanager

from rig.paths import BUILD
from rig.terminal import Terminal

# Computes from "burn" on its input to "rest".
SWITCH = """import os, select
burns = False
print("ready", flush=True)
while True:
    if not burns or select.select([0], [], [], 0)[0]:
        burns = os.read(0, 99).endswith(b"burn")
    elif burns:
        sum(range(1000))
"""


@contextmanager
def program(text):
    """Python, which does something from a word on its input to the next."""
    with subprocess.Popen([sys.executable, "-c", text], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout.readline() == b"ready\n"
            yield process
        finally:
            process.kill()


def seen(screen, process, word, shows, rests, hz, events, **how):
    """Seconds of events at equal distances over the period between two ticks; shows() and rests() look at the
    screen."""
    times = []
    for i in range(events):
        screen.wait(rests, **how)
        later = time.monotonic() + i / events / hz
        while time.monotonic() < later:
            screen.read(0.01)
        begun = time.monotonic()
        os.write(process.stdin.fileno(), word)
        screen.wait(shows, quiet=0, **how)
        times.append(time.monotonic() - begun)
        os.write(process.stdin.fileno(), b"rest")
    return sorted(times)


def delays(hz, events):
    with program(SWITCH) as process:
        screen = Terminal(BUILD / "topiary", "top", f"--hz={hz}", f"--pid={process.pid}")
        try:
            def busy():
                return [value for name, (value, *_) in screen.boxes().items() if name.startswith("Machine")]
            return seen(screen, process, b"burn", lambda: busy() and busy()[0] > 0.1,
                        lambda: busy() and busy()[0] < 0.01, hz, events)
        finally:
            screen.close()
